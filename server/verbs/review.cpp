// SPDX-License-Identifier: Apache-2.0
#include "review.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "lib/decision.hpp"
#include "lib/facts.hpp"
#include "lib/review.hpp"
#include "server/lookup/manifest_facts.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

/// Nothing is looked up: what is asked for stays unknown.
Facts nothing_known(const Needs& needs) {
  Facts out;
  for (const NeededService& service : needs.services)
    out.services.push_back({service.name, Known::unknown, nullptr, std::nullopt});
  return out;
}

struct Options {
  std::string services;
  std::optional<std::string> config;
};

int run_review(const Options& options) {
  const auto policy = read_config(options.config);
  if (!policy) return complain("review", policy.error());
  std::optional<ManifestFacts> known;
  if (!options.services.empty()) {
    auto files = read_manifests({options.services});
    if (!files) return complain("review", files.error());
    auto facts = ManifestFacts::from(std::span(&files->front().manifest, 1), ManifestsOf::cluster);
    if (!facts) return complain("review", facts.error());
    known = std::move(*facts);
  }
  auto text = read_input("-", kMaxReviewBytes);
  if (!text) return complain("review", text.error());
  ReviewReader reader;
  const auto review = reader.parse(*text);
  if (!review)
    return complain("review", {review.error().code, "standard input: " + review.error().what});
  const Needs asked = needs(**review, *policy);
  const Facts facts = known ? known->facts(asked, **review) : nothing_known(asked);
  std::string answer;
  render(**review, decide(**review, *policy, facts), answer);
  return write_output("review", answer);
}

}  // namespace

void add_review(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<Options>();
  CLI::App& verb = *app.add_subcommand(
      "review", "Answer one AdmissionReview: stdin to stdout, as the webhook would");
  verb.add_option("--services", options->services,
                  "Manifest with the Services (and pods) that are there; without it a Service is\n"
                  "judged by itself, and a pod's references are left")
      ->type_name("FILE");
  add_config_option(verb, options->config);
  verb.footer(
      "The answer is an AdmissionReview; exit code 0 whether or not it changes anything.\n"
      "Example:\n"
      "  rayhook review --services cluster.yaml < review.json | jq -r .response.patch | base64 -d");
  verb.callback([options, &run] { run = [options] { return run_review(*options); }; });
}

}  // namespace rayhook
