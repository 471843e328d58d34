// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>

#include "certs.hpp"
#include "certs/certificate.hpp"
#include "certs/rotation.hpp"
#include "certs_cluster.hpp"
#include "served_chain.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

/// A run has three things to do at most; the rest is for others that run at the same time.
constexpr int kMostPasses = 20;

struct Options {
  CertsPlace place;
  std::vector<std::string> names;
  std::string force;
  int leaf_days = 90, authority_days = 3650, renew_days = 30;
  int overlap_seconds = 3600, settle_seconds = 10;
};

/// What was read in one pass.
struct Pass {
  std::optional<StoredConfiguration> configuration;
  std::optional<StoredSecret> authority, leaf;
  RotationState state;
};

class Rotation {
 public:
  Rotation(const Options& options, CertsCluster& cluster) : options_(options), cluster_(cluster) {
    rules_.names = {options.place.server_name()};
    rules_.names.insert(rules_.names.end(), options.names.begin(), options.names.end());
    rules_.leaf_life = options.leaf_days * kSecondsPerDay;
    rules_.authority_life = options.authority_days * kSecondsPerDay;
    rules_.renew_before = options.renew_days * kSecondsPerDay;
    rules_.overlap = options.overlap_seconds;
  }

  /// Does one thing after the other, each from what is there at that moment, until there is nothing
  /// to do. Says what it does on standard output.
  [[nodiscard]] Result<void> run();

 private:
  using Kind = RotationStep::Kind;

  [[nodiscard]] Result<Pass> read();
  [[nodiscard]] Result<void> ask_replicas(RotationState& state);
  [[nodiscard]] Result<bool> act(const Pass& pass, const RotationStep& step);
  [[nodiscard]] Result<bool> renew_authority(const Pass& pass, const RotationStep& step);
  [[nodiscard]] Result<bool> renew_leaf(const Pass& pass, const RotationStep& step);
  [[nodiscard]] Result<bool> write_bundles(const Pass& pass, const RotationStep& step);
  [[nodiscard]] Result<void> finish(const Pass& pass) const;
  static void say(const std::string& line) { (void)write_output("certs rotate", line + "\n"); }

  const Options& options_;
  CertsCluster& cluster_;
  RotationRules rules_;
  RotationForce force_;
  bool first_ = true;
  std::optional<std::chrono::steady_clock::time_point> published_;
};

/// The order matters. Whoever changes the authority writes it before the caBundle, and the caBundle
/// before the leaf: read the other way round, nothing can look older than what follows from it.
Result<Pass> Rotation::read() {
  Pass pass;
  auto configuration = cluster_.configuration();
  if (!configuration) return std::unexpected(std::move(configuration.error()));
  auto authority = cluster_.secret(options_.place.authority_secret);
  if (!authority) return std::unexpected(std::move(authority.error()));
  auto leaf = cluster_.secret(options_.place.secret);
  if (!leaf) return std::unexpected(std::move(leaf.error()));
  for (const auto* secret : {&*authority, &*leaf})
    if (*secret && (*secret)->of_cert_manager)
      return fail(
          Errc::bad_config,
          "Secret " + options_.place.name_space + "/" + options_.place.secret +
              ", or the one of its CA, is cert-manager's: let that renew it, and remove the "
              "Job and CronJob that run this (docs/certificates.md)");
  pass.configuration = std::move(*configuration);
  pass.authority = std::move(*authority);
  pass.leaf = std::move(*leaf);
  if (pass.configuration) pass.state.bundles = pass.configuration->bundles;
  if (pass.authority)
    pass.state.authority = {pass.authority->text("tls.crt"), pass.authority->text("tls.key")};
  if (pass.leaf) {
    pass.state.leaf = {pass.leaf->text("tls.crt"), pass.leaf->text("tls.key")};
    pass.state.leaf_authority = pass.leaf->text("ca.crt");
  }
  return pass;
}

/// What is served, if a CA could leave the caBundle now. Who cannot be asked (from outside the
/// cluster, nobody can) goes by the clock: silence must not keep a CA trusted for years.
Result<void> Rotation::ask_replicas(RotationState& state) {
  const auto until = overlap_ends(state, rules_);
  if (!until || *until > std::time(nullptr)) return {};
  const Result<std::vector<std::string>> replicas = cluster_.replicas();
  if (!replicas) return std::unexpected(replicas.error());
  for (const std::string& replica : *replicas) {
    Result<std::string> chain = served_chain(replica, rules_.names.front());
    if (chain)
      state.served.push_back({replica, std::move(*chain)});
    else
      say("replica " + chain.error().what + "; for it the overlap goes by the clock");
  }
  return {};
}

Result<void> Rotation::run() {
  for (int i = 0; i < kMostPasses; ++i) {
    Result<Pass> pass = read();
    if (!pass) return std::unexpected(pass.error());
    if (const auto asked = ask_replicas(pass->state); !asked) return asked;
    if (first_) {  // what another run replaces in the meantime need not be replaced again
      if (options_.force == "ca") force_.authority = pass->state.authority.certificate;
      if (options_.force == "leaf") force_.leaf = pass->state.leaf.certificate;
      first_ = false;
    }
    const RotationStep step = next_rotation_step(pass->state, rules_, force_, std::time(nullptr));
    if (step.kind == Kind::nothing) return finish(*pass);
    const Result<bool> done = act(*pass, step);
    if (!done) return std::unexpected(done.error());
    if (*done) continue;
    say("somebody else was faster; looking again");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return fail(Errc::unreachable,
              "somebody else keeps changing the same Secrets or webhook configuration; see who "
              "writes them (managedFields), and run it again");
}

Result<bool> Rotation::act(const Pass& pass, const RotationStep& step) {
  if (step.kind == Kind::new_authority) return renew_authority(pass, step);
  if (step.kind == Kind::write_bundles) return write_bundles(pass, step);
  return renew_leaf(pass, step);
}

Result<bool> Rotation::renew_authority(const Pass& pass, const RotationStep& step) {
  const Result<IssuedPair> made = new_authority(rules_, std::time(nullptr));
  if (!made) return std::unexpected(made.error());
  const SecretData data{{"tls.crt", made->certificate}, {"tls.key", made->key}};
  Result<bool> done = cluster_.write_secret(options_.place.authority_secret, pass.authority, data);
  if (done && *done) say("new CA: " + step.why);
  return done;
}

Result<bool> Rotation::write_bundles(const Pass& pass, const RotationStep& step) {
  Result<bool> done = cluster_.write_bundles(*pass.configuration, step.bundles);
  if (!done || !*done) return done;
  say("caBundle of MutatingWebhookConfiguration " + options_.place.configuration +
      " written: " + step.why);
  published_ = std::chrono::steady_clock::now();
  return done;
}

Result<bool> Rotation::renew_leaf(const Pass& pass, const RotationStep& step) {
  // API servers learn of a new caBundle by their watch. Nobody waits if nothing is served yet.
  if (published_ && !pass.state.leaf.certificate.empty())
    std::this_thread::sleep_until(*published_ + std::chrono::seconds(options_.settle_seconds));
  const Result<IssuedPair> made = new_leaf(pass.state.authority, rules_, std::time(nullptr));
  if (!made) return std::unexpected(made.error());
  const SecretData data{{"tls.crt", made->certificate},
                        {"tls.key", made->key},
                        {"ca.crt", pass.state.authority.certificate}};
  Result<bool> done = cluster_.write_secret(options_.place.secret, pass.leaf, data);
  if (done && *done) say("new certificate for " + rules_.names.front() + ": " + step.why);
  return done;
}

Result<void> Rotation::finish(const Pass& pass) const {
  const auto ends = [](const std::string& pem) {
    const auto read = read_certificates({pem, ""});
    return read ? utc(describe(read->front().get()).not_after) : std::string();
  };
  std::string line = "all is well: certificate until " + ends(pass.state.leaf.certificate) +
                     ", CA until " + ends(pass.state.authority.certificate);
  if (const auto behind = replicas_behind(pass.state, std::time(nullptr)); !behind.empty()) {
    line += "; the CA before stays in the caBundle, since a certificate of it is still served by";
    for (const std::string& replica : behind) line += " " + replica;
    line += " (kubelet brings the new one within two minutes or so; then run this again)";
  } else if (const auto until = overlap_ends(pass.state, rules_)) {
    line += "; the CA before stays in the caBundle until a run after " + utc(*until);
  }
  if (!pass.configuration)
    return fail(Errc::bad_config,
                "the Secrets are good, but there is no MutatingWebhookConfiguration " +
                    options_.place.configuration +
                    " to write the caBundle to; apply it, and run "
                    "this again");
  say(line);
  return {};
}

int run_rotate(const Options& options) {
  if (options.renew_days >= options.leaf_days)
    return complain("certs rotate", {Errc::bad_usage,
                                     "--renew-before-days must be less than --leaf-days, or each "
                                     "run would renew the certificate"});
  if (options.authority_days <= options.leaf_days + options.renew_days)
    return complain("certs rotate", {Errc::bad_usage,
                                     "--ca-days must be more than --leaf-days and "
                                     "--renew-before-days together: a CA outlives what it signs"});
  const auto cluster = CertsCluster::open(options.place);
  if (!cluster) return complain("certs rotate", cluster.error());
  const Result<void> done = Rotation(options, **cluster).run();
  return done ? 0 : complain("certs rotate", done.error());
}

}  // namespace

void add_certs_rotate(CLI::App& certs, std::function<int()>& run) {
  const auto options = std::make_shared<Options>();
  CLI::App& verb = *certs.add_subcommand(
      "rotate", "Make, renew and publish the certificates of an installation in a cluster");
  add_place_options(verb, options->place, true);
  verb.add_option("--extra-name", options->names,
                  "A further DNS name or IP address of the certificate; several may be given")
      ->type_name("NAME");
  verb.add_option("--force", options->force, "Replace it though it is good: leaf or ca")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"leaf", "ca"}));
  verb.add_option("--leaf-days", options->leaf_days, "How long a certificate is valid")
      ->capture_default_str()
      ->check(CLI::Range(2, 825));
  verb.add_option("--ca-days", options->authority_days, "How long a CA is valid")
      ->capture_default_str()
      ->check(CLI::Range(2, 36500));
  verb.add_option("--renew-before-days", options->renew_days, "How long before its end to renew")
      ->capture_default_str()
      ->check(CLI::Range(1, 800));
  verb.add_option(
          "--overlap", options->overlap_seconds,
          "How long the CA before stays in the caBundle after a new one has signed, at least; "
          "and as long as a replica serves a certificate of it")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0, 30 * 86400));
  verb.add_option("--settle", options->settle_seconds,
                  "How long API servers are given to learn of a caBundle before its CA signs")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0, 600));
  verb.footer(
      "It may be run at any time, also twice at once, and does only what is needed.\n"
      "--secret is for the server; --ca-secret holds the CA's key, which no serving pod sees.");
  verb.callback([options, &run] { run = [options] { return run_rotate(*options); }; });
}

}  // namespace rayhook
