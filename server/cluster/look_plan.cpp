// SPDX-License-Identifier: Apache-2.0
#include "look_plan.hpp"

#include <algorithm>

namespace rayhook {

void LookPlan::plan(std::string_view ns, TimePoint when, Tell tell) {
  if (const auto found = planned_.find(ns); found != planned_.end()) {
    found->second.when = std::min(found->second.when, when);
    found->second.tell = std::max(found->second.tell, tell);
  } else if (planned_.size() < kMost) {
    planned_.emplace(ns, Planned{when, tell});
  }
}

TimePoint LookPlan::next() const {
  TimePoint out = round_;
  for (const auto& [ns, planned] : planned_) out = std::min(out, planned.when);
  return out;
}

std::vector<LookPlan::Look> LookPlan::take_due(std::vector<std::string> namespaces, TimePoint now) {
  std::ranges::sort(namespaces);
  const auto gone = [&namespaces](const auto& entry) {
    return !std::ranges::binary_search(namespaces, entry.first);
  };
  std::erase_if(known_, gone);
  std::erase_if(planned_, gone);
  std::vector<Look> out;
  if (now >= round_) {
    round_ = now + every_;
    // Those that were converted just now have their own look as well.
    for (std::string& ns : namespaces) out.push_back({std::move(ns), Tell::split});
    return out;
  }
  for (const auto& [ns, planned] : planned_)
    if (now >= planned.when) out.push_back({ns, planned.tell});
  for (const Look& look : out) planned_.erase(look.ns);
  return out;
}

void LookPlan::counted(const Look& look, std::int64_t found, TimePoint now) {
  if (found == 0) {
    known_.erase(look.ns);
    return;
  }
  known_[look.ns] = {found, false};
  plan(look.ns, now + std::min(kAgain, every_), Tell::nothing);
}

void LookPlan::failed(const Look& look, std::int64_t found, TimePoint now) {
  Known& known = known_[look.ns];
  known.split = std::max(known.split, found);
  plan(look.ns, now + std::min(known.failed ? kAgain : kRetry, every_), look.tell);
  known.failed = true;
}

std::int64_t LookPlan::found() const {
  std::int64_t out = 0;
  for (const auto& [ns, known] : known_) out += known.split;
  return out;
}

}  // namespace rayhook
