// SPDX-License-Identifier: Apache-2.0
// Bytes that claim to be an AdmissionReview, through all of lib/: the answer is JSON, the patch
// applies, what stands around it stays, and looking again soon finds nothing more to do.
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/decision.hpp"
#include "lib/facts.hpp"
#include "lib/patch.hpp"
#include "support.hpp"

namespace {

using namespace rayhook;
using fuzz::must;
using nlohmann::json;

/// Whatever name is asked for: a Service of that name, as the API server may have it.
std::shared_ptr<const Service> service_named(const std::string& name, bool converted) {
  Service out;
  out.name = name;
  out.uid = "s-1";
  out.cluster_ip = converted ? "None" : "10.0.0.1";
  out.selector = {{"app", "ray-head"}};
  out.has_metadata = out.has_annotations = true;
  if (converted) out.annotations = {{std::string(kConvertedAnnotation), "true"}};
  for (const auto& [port_name, port] : {std::pair{"gcs-server", 6379}, {"client", 10001}}) {
    ServicePort entry;
    entry.name = port_name;
    entry.port = entry.target = static_cast<std::uint16_t>(port);
    out.ports.push_back(entry);
  }
  return std::make_shared<const Service>(std::move(out));
}

/// What could be known; `mood`, taken from the input, says what is.
Facts facts_for(const Needs& needs, std::size_t mood) {
  Facts out;
  if (needs.converted_services && mood % 2 == 0)
    out.services.push_back(
        {"ray-head", Known::present, service_named("ray-head", true), {}, false});
  const bool listed = !out.services.empty();
  for (const NeededService& needed : needs.services) {
    if (listed && needed.name == "ray-head") continue;
    ServiceFact fact;
    fact.name = needed.name;
    fact.known = mood % 5 == 3 ? Known::unknown : mood % 5 == 4 ? Known::absent : Known::present;
    fact.retry = mood % 2 == 1;
    if (fact.known == Known::present) fact.service = service_named(needed.name, mood % 3 != 0);
    out.services.push_back(fact);
  }
  if (needs.running_readers) out.running_readers = static_cast<Known>(mood % 3);
  if (needs.selected_workers && mood % 4 == 0) out.matches_workers = false;
  return out;
}

/// The decision and its answer, checked; patched where there is a patch.
std::string answer_to(ReviewReader& reader, std::string_view text, std::size_t mood) {
  const fuzz::Padded padded(text);
  const Result<const Review*> review = reader.parse(padded.view());
  if (!review) return {};
  const Needs asked = needs((**review), {});
  must(asked.services.size() <= kMaxLookups);
  const Decision decision = decide(**review, {}, facts_for(asked, mood));
  must(patch_fits(**review, decision));
  must((decision.outcome == Outcome::patch) == !decision.patch.empty());
  must(decision.findings.size() <= kMaxFindings);
  must(decision.outcome != Outcome::deny || !(*review)->dry_run);
  for (const std::string& warning : decision.warnings) {
    must(warning.size() <= 120);
    for (const char c : warning) must(c >= ' ' && c <= '~');
  }
  std::string out;
  (void)render(**review, decision, out);
  const json answer = json::parse(out, nullptr, false);
  must(!answer.is_discarded() && answer["response"]["uid"].get<std::string>() == (*review)->uid);
  if (decision.patch.empty()) return {};

  // Nothing is patched that another reader would not call the same JSON.
  json whole = json::parse(text, nullptr, false);
  if (whole.is_discarded()) return {};  // simdjson, on demand, passes over what it need not read
  json& object = whole["request"]["object"];
  object = object.patch(json::parse(patch_json(decision)));  // throws where it does not apply
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ReviewReader reader;  // keeps its memory, as in the server
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t mood = size % 60;
  // f(f(x)) = f(x), but for scripts in which one replacement makes another certain: they settle.
  std::string patched = answer_to(reader, text, mood);
  for (int look = 0; !patched.empty(); ++look) {
    must(look < 4);
    patched = answer_to(reader, std::exchange(patched, {}), mood);
  }
  return 0;
}
