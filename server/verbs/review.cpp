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

int run_review(const std::string& services) {
  std::optional<ManifestFacts> known;
  if (!services.empty()) {
    auto files = read_manifests({services});
    if (!files) return complain("review", files.error());
    auto facts = ManifestFacts::from(std::span(&files->front().manifest, 1), NoNamespace::any);
    if (!facts) return complain("review", facts.error());
    known = std::move(*facts);
  }
  auto text = read_input("-", kMaxReviewBytes);
  if (!text) return complain("review", text.error());
  ReviewReader reader;
  const auto review = reader.parse(*text);
  if (!review)
    return complain("review", {review.error().code, "standard input: " + review.error().what});
  const Policy policy;
  const Needs asked = needs(**review, policy);
  const Facts facts = known ? known->facts(asked, **review) : nothing_known(asked);
  std::string answer;
  render(**review, decide(**review, policy, facts), answer);
  return write_output("review", answer);
}

}  // namespace

void add_review(CLI::App& app, std::function<int()>& run) {
  auto services = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand(
      "review", "Answer one AdmissionReview: stdin to stdout, as the webhook would");
  verb.add_option("--services", *services,
                  "Manifest with the Services (and pods) that are there; without it a Service is\n"
                  "judged by itself, and a pod's references are left")
      ->type_name("FILE");
  verb.footer(
      "The answer is an AdmissionReview; exit code 0 whether or not it changes anything.\n"
      "Example:\n"
      "  rayhook review --services cluster.yaml < review.json | jq -r .response.patch | base64 -d");
  verb.callback([services, &run] { run = [services] { return run_review(*services); }; });
}

}  // namespace rayhook
