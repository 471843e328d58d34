// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "server/server.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

/// A flag for a time in whole seconds.
void add_seconds(CLI::App& verb, const std::string& flag, std::chrono::seconds& value,
                 const std::string& text, int least, int most) {
  verb.add_option_function<int>(
          flag, [&value](const int& seconds) { value = std::chrono::seconds(seconds); }, text)
      ->type_name("SECONDS")
      ->default_str(std::to_string(value.count()))
      ->check(CLI::Range(least, most));
}

int run_serve(ServeOptions options) {
  auto policy = read_config(options.config);
  if (!policy) return complain("serve", policy.error());
  options.policy = std::move(*policy);
  const Result<int> code = serve(options);
  if (code) return *code;
  std::fprintf(stderr, "rayhook serve: %s\n", code.error().what.c_str());
  return code.error().code == Errc::bad_usage ? 2 : 1;
}

}  // namespace

void add_serve(CLI::App& app, std::function<int()>& run) {
  const auto options = std::make_shared<ServeOptions>();
  const auto level = std::make_shared<std::string>(word(options->log_level));
  CLI::App& verb = *app.add_subcommand("serve", "Run the webhook; SIGTERM drains it");
  verb.add_option("--listen", options->listen, "Where to serve HTTPS (IP:PORT, :PORT)")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  verb.add_option("--ops-listen", options->ops_listen,
                  "Where to serve /livez, /readyz and /metrics, plain HTTP")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  verb.add_option("--tls-cert", options->tls.certificate, "Certificate and chain, PEM")
      ->type_name("FILE")
      ->required();
  verb.add_option("--tls-key", options->tls.key, "Its private key, PEM")
      ->type_name("FILE")
      ->required();
  verb.add_option("--tls-name", options->tls.name,
                  "Refuse a certificate that is not for this name (SERVICE.NAMESPACE.svc)")
      ->type_name("NAME");
  CLI::Option* client_ca = verb.add_option("--client-ca", options->tls.client_ca,
                                           "Take only clients with a certificate of this CA, PEM")
                               ->type_name("FILE");
  verb.add_option("--client-name", options->tls.client_names,
                  "And of these only the ones with this common or DNS name; several may be given")
      ->type_name("NAME")
      ->needs(client_ca);
  verb.add_option("--lookup", options->lookup.source,
                  "Where Services are known from: cluster, file:PATH or none")
      ->type_name("SOURCE")
      ->capture_default_str();
  verb.add_option("--kubeconfig", options->lookup.kubeconfig,
                  "How to reach the API server; without it, as the pod's service account")
      ->type_name("FILE");
  add_seconds(
      verb, "--watch-idle-timeout", options->lookup.cluster.watch_idle,
      "Silence of the API server's watch after which it is asked anew (it speaks every 60 s)", 1,
      3600);
  add_seconds(verb, "--split-pods-interval", options->lookup.cluster.split_pods_every,
              "How often to look for pods that were made without Rayhook; 0: never", 0, 86400);
  verb.add_flag("--events", options->lookup.cluster.events,
                "Tell decisions of concern as Kubernetes Events too; with --lookup cluster");
  add_config_option(verb, options->config);
  verb.add_option("--log-level", *level, "What to log: debug, info, warn or error")
      ->type_name("LEVEL")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  verb.add_option("--threads", options->threads,
                  "Threads for reviews; 0: as many as the cgroup's CPU quota has use for")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  Limits& limits = options->limits;
  verb.add_option("--max-connections", limits.connections,
                  "Open connections; for more, those that idle longest are closed")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  verb.add_option("--max-handshakes", limits.handshakes,
                  "TLS handshakes under way; for more, the oldest are ended")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  verb.add_option("--max-body-bytes", limits.all_bodies,
                  "Large bodies (over 16 KiB) that may be here at once, in bytes; more get 503")
      ->capture_default_str()
      ->check(CLI::Range(kMaxReviewBytes, std::size_t{1} << 30));
  verb.add_option("--max-requests", limits.max_requests,
                  "Requests on a connection; the last one's answer ends it")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1'000'000'000U));
  add_seconds(verb, "--handshake-timeout", limits.handshake, "For the TLS handshake", 1, 300);
  add_seconds(verb, "--header-timeout", limits.header, "For a request's header", 1, 300);
  add_seconds(verb, "--body-timeout", limits.body, "For a request's body", 1, 300);
  add_seconds(verb, "--write-timeout", limits.write, "For taking an answer", 1, 300);
  add_seconds(verb, "--idle-timeout", limits.idle,
              "Between requests; keep it over the API server's 90 s", 1, 3600);
  add_seconds(verb, "--max-connection-age", limits.max_age,
              "After this the next answer ends its connection", 1, 86400);
  add_seconds(verb, "--shutdown-delay", options->shutdown_delay,
              "After SIGTERM, how long new connections are still taken", 0, 300);
  add_seconds(verb, "--shutdown-timeout", options->shutdown_timeout,
              "After that, how long requests under way may take", 0, 300);
  verb.callback([options, level, &run] {
    options->log_level = log_level(*level).value_or(LogLevel::info);
    run = [options] { return run_serve(*options); };
  });
}

}  // namespace rayhook
