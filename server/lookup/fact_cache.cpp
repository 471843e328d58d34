// SPDX-License-Identifier: Apache-2.0
#include "fact_cache.hpp"

namespace rayhook {
namespace {

std::string key(std::string_view ns, std::string_view name) {
  std::string out(ns);
  out += '/';
  out += name;
  return out;
}

}  // namespace

void FactCache::forget(Entries::iterator entry) {
  order_.erase(entry->second.place);
  entries_.erase(entry);
}

std::optional<ServiceFact> FactCache::find(std::string_view ns, std::string_view name,
                                           TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key(ns, name));
  if (found == entries_.end()) return std::nullopt;
  if (now < found->second.until) return found->second.fact;
  forget(found);
  return std::nullopt;
}

void FactCache::put(std::string_view ns, const ServiceFact& fact, TimePoint now) {
  if (fact.known == Known::unknown) return;
  std::string name = key(ns, fact.name);
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(name); found != entries_.end()) forget(found);
  if (entries_.size() >= kEntries) forget(entries_.find(order_.front()));
  order_.push_back(name);
  entries_.emplace(std::move(name), Entry{fact, now + kLifetime, std::prev(order_.end())});
}

void FactCache::forget(std::string_view ns, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(key(ns, name)); found != entries_.end()) forget(found);
}

void FactCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  order_.clear();
}

std::size_t FactCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace rayhook
