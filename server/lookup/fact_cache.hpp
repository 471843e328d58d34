// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/facts.hpp"
#include "server/clock.hpp"

namespace rayhook {

/// Remembers for a short while what the API server said of Services. At most kEntries of them, the
/// oldest go first. Time is handed in. Not thread-safe.
class FactCache {
 public:
  static constexpr std::size_t kEntries = 1024;
  /// "Not there" must not outlive the moment: head and workers are often made together.
  static constexpr std::chrono::seconds kAbsent{1};
  /// A Service whose pods are cared for (converted, or will be).
  static constexpr std::chrono::seconds kCared{5};
  /// A Service that is no head, or is left.
  static constexpr std::chrono::seconds kLeft{10};

  /// `policy` must outlive the cache.
  explicit FactCache(const Policy& policy) : policy_(policy) {}

  /// What is remembered; nullptr if nothing, or for too long. Valid until the next call.
  [[nodiscard]] const ServiceFact* find(std::string_view ns, std::string_view name, TimePoint now);

  /// Remembers a fact; one that is unknown is not worth it.
  void put(std::string_view ns, const ServiceFact& fact, TimePoint now);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ServiceFact fact;
    TimePoint until;
    std::list<std::string>::iterator place;
  };
  using Entries = std::unordered_map<std::string, Entry>;

  static std::string key(std::string_view ns, std::string_view name);
  void forget(Entries::iterator entry);

  const Policy& policy_;
  Entries entries_;
  std::list<std::string> order_;  // keys, the oldest first
};

}  // namespace rayhook
