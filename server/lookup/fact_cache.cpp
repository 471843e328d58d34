// SPDX-License-Identifier: Apache-2.0
#include "fact_cache.hpp"

#include "lib/service_rule.hpp"

namespace rayhook {

std::string FactCache::key(std::string_view ns, std::string_view name) {
  std::string out(ns);
  out += '/';
  out += name;
  return out;
}

void FactCache::forget(Entries::iterator entry) {
  order_.erase(entry->second.place);
  entries_.erase(entry);
}

const ServiceFact* FactCache::find(std::string_view ns, std::string_view name, TimePoint now) {
  const auto found = entries_.find(key(ns, name));
  if (found == entries_.end()) return nullptr;
  if (now < found->second.until) return &found->second.fact;
  forget(found);
  return nullptr;
}

void FactCache::put(std::string_view ns, const ServiceFact& fact, TimePoint now) {
  if (fact.known == Known::unknown) return;
  std::string name = key(ns, fact.name);
  if (const auto found = entries_.find(name); found != entries_.end()) forget(found);
  if (entries_.size() >= kEntries) forget(entries_.find(order_.front()));
  const bool cared = care_for(fact, policy_).care != Care::none;
  const auto lifetime = fact.known == Known::absent ? kAbsent : cared ? kCared : kLeft;
  order_.push_back(name);
  entries_.emplace(std::move(name), Entry{fact, now + lifetime, std::prev(order_.end())});
}

}  // namespace rayhook
