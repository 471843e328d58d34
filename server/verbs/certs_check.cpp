// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>

#include "certs.hpp"
#include "certs/certificate.hpp"
#include "certs/rotation.hpp"
#include "certs_cluster.hpp"
#include "served_chain.hpp"
#include "server/file_text.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

struct Options {
  std::string certificate, key, authority, address;
  std::string name;
  int days = 0;
  CertsPlace place;
};

struct Text {
  std::string text, source;
};

/// A certificate, and all that it must satisfy.
struct Case {
  Text certificate, key;
  std::vector<Text> authorities;  ///< it must lead to each of these
  std::string name;
};

Result<std::string> check(const Case& subject, int days, std::int64_t now) {
  const auto pem = [](const Text& text) { return Pem{text.text, text.source}; };
  const std::string& source = subject.certificate.source;
  Result<std::vector<Certificate>> chain = read_certificates(pem(subject.certificate));
  if (!chain) return std::unexpected(std::move(chain.error()));
  if (!subject.key.source.empty()) {
    Result<KeyPair> pair = read_key_pair(pem(subject.certificate), pem(subject.key));
    if (!pair) return std::unexpected(std::move(pair.error()));
  }
  X509* leaf = chain->front().get();
  Result<void> good = check_dates(leaf, source, now);
  if (good) good = check_name(leaf, source, subject.name);
  if (!good) return std::unexpected(std::move(good.error()));
  for (const Text& authority : subject.authorities) {
    const auto trusted = read_certificates(pem(authority));
    if (!trusted) return std::unexpected(trusted.error());
    good = check_chain(*chain, source, *trusted, now);
    if (!good) return fail(good.error().code, good.error().what + " (" + authority.source + ")");
  }
  const std::int64_t left = describe(leaf).not_after - now;
  const std::string end = utc(describe(leaf).not_after);
  if (left < days * kSecondsPerDay)
    return fail(Errc::bad_certificate, source + " ends at " + end + ", in less than " +
                                           std::to_string(days) + " days; renew it");
  std::string trusted;
  for (const Text& authority : subject.authorities) trusted += ", trusted by " + authority.source;
  return "ok: " + source + (subject.name.empty() ? "" : " is for " + subject.name) + trusted +
         ", until " + end + "\n";
}

Result<void> read_text(Text& text, const std::string& flag, const std::string& path) {
  if (path.empty()) return {};
  Result<std::string> content = read_file(path, flag);
  if (!content) return std::unexpected(std::move(content.error()));
  text = {std::move(*content), flag + " " + path};
  return {};
}

/// What is served at an address, in place of what stands in a file or Secret.
Result<void> connect(Case& subject, const std::string& address) {
  if (address.empty()) return {};
  Result<std::string> chain = served_chain(address, subject.name);
  if (!chain) return std::unexpected(std::move(chain.error()));
  subject.certificate = {std::move(*chain), "the certificate that " + address + " serves"};
  subject.key = {};
  return {};
}

Result<Case> from_files(const Options& options) {
  Case out;
  out.name = options.name;
  Result<void> good = read_text(out.certificate, "--tls-cert", options.certificate);
  if (good) good = read_text(out.key, "--tls-key", options.key);
  if (good) good = connect(out, options.address);
  if (good && !options.authority.empty())
    good = read_text(out.authorities.emplace_back(), "--ca", options.authority);
  if (!good) return std::unexpected(std::move(good.error()));
  return out;
}

Result<Case> from_cluster(const Options& options) {
  auto cluster = CertsCluster::open(options.place);
  if (!cluster) return std::unexpected(std::move(cluster.error()));
  const auto configuration = (*cluster)->configuration();
  if (!configuration) return std::unexpected(configuration.error());
  if (!*configuration)
    return fail(Errc::bad_certificate,
                "there is no MutatingWebhookConfiguration " + options.place.configuration);
  Case out;
  out.name = options.name.empty() ? options.place.server_name() : options.name;
  for (std::size_t i = 0; i < (*configuration)->bundles.size(); ++i)
    out.authorities.push_back(
        {(*configuration)->bundles[i], "the caBundle of " + (*configuration)->webhooks[i]});
  if (!options.address.empty()) {
    Result<void> good = connect(out, options.address);
    if (!good) return std::unexpected(std::move(good.error()));
    return out;
  }
  const auto secret = (*cluster)->secret(options.place.secret);
  if (!secret) return std::unexpected(secret.error());
  const std::string title = "Secret " + options.place.name_space + "/" + options.place.secret;
  if (!*secret) return fail(Errc::bad_certificate, "there is no " + title);
  out.certificate = {(*secret)->text("tls.crt"), title + " tls.crt"};
  out.key = {(*secret)->text("tls.key"), title + " tls.key"};
  return out;
}

int run_check(const Options& options) {
  const bool files = !options.certificate.empty() || !options.authority.empty();
  if (files && options.certificate.empty() && options.address.empty())
    return complain("certs check",
                    {Errc::bad_usage, "--ca alone: give --tls-cert or --connect with it"});
  const Result<Case> subject = files ? from_files(options) : from_cluster(options);
  if (!subject) return complain("certs check", subject.error());
  const Result<std::string> said = check(*subject, options.days, std::time(nullptr));
  return said ? write_output("certs check", *said) : complain("certs check", said.error());
}

}  // namespace

void add_certs_check(CLI::App& certs, std::function<int()>& run) {
  const auto options = std::make_shared<Options>();
  CLI::App& verb = *certs.add_subcommand(
      "check", "Check that the API server would take a certificate: key, dates, name, CA");
  CLI::Option* certificate =
      verb.add_option("--tls-cert", options->certificate,
                      "PEM; without it, the Secret in the cluster against the live caBundle")
          ->type_name("FILE");
  verb.add_option("--tls-key", options->key, "Its key")->type_name("FILE")->needs(certificate);
  verb.add_option("--connect", options->address, "Check what is served there instead")
      ->type_name("HOST:PORT")
      ->excludes(certificate);
  verb.add_option("--ca", options->authority, "What it must lead to; without it, the live caBundle")
      ->type_name("FILE");
  verb.add_option("--name", options->name,
                  "Whom it must name; in a cluster SERVICE.NAMESPACE.svc unless said otherwise")
      ->type_name("NAME");
  verb.add_option("--days", options->days, "How many days it must still be valid")
      ->capture_default_str()
      ->check(CLI::Range(0, 36500));
  add_place_options(verb, options->place);
  verb.footer("Exit code 0: good; 1: not, and one line on stderr says why.");
  verb.callback([options, &run] { run = [options] { return run_check(*options); }; });
}

}  // namespace rayhook
