// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/facts.hpp"
#include "server/clock.hpp"

namespace rayhook {

/// Remembers for a moment what the API server said of single Services: several pods are often made
/// at once, and all ask for the same. At most kEntries, the oldest go first. Time is handed in.
/// Thread-safe.
class FactCache {
 public:
  static constexpr std::size_t kEntries = 1024;
  /// Short, so that whatever is done to a Service is seen within a second.
  static constexpr std::chrono::milliseconds kLifetime{750};

  /// What is remembered, if not for too long.
  [[nodiscard]] std::optional<ServiceFact> find(std::string_view ns, std::string_view name,
                                                TimePoint now);

  /// Remembers a fact; one that is unknown is not worth it.
  void put(std::string_view ns, const ServiceFact& fact, TimePoint now);

  void forget(std::string_view ns, std::string_view name);
  void clear();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    ServiceFact fact;
    TimePoint until;
    std::list<std::string>::iterator place;
  };
  using Entries = std::unordered_map<std::string, Entry>;

  void forget(Entries::iterator entry);

  mutable std::mutex mutex_;
  Entries entries_;
  std::list<std::string> order_;  // keys, the oldest first
};

}  // namespace rayhook
