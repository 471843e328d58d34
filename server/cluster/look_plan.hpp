// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/clock.hpp"

namespace rayhook {

/// Which namespaces are looked at for split pods and when, and how many each is known to have. A
/// list that fails takes nothing back: what was known stays, and the namespace has another look
/// soon. Time is handed in. Not thread-safe.
class LookPlan {
 public:
  /// From a conversion to the look: by then what was under way is stored.
  static constexpr std::chrono::seconds kSoon{2};
  /// After a list that failed for the first time in a row.
  static constexpr std::chrono::seconds kRetry{5};
  /// Until a namespace with split pods is counted again, or one whose list goes on failing.
  static constexpr std::chrono::seconds kAgain{60};
  /// Namespaces that wait for a look of their own; more wait for the next round.
  static constexpr std::size_t kMost = 1024;

  /// What a look logs; each more than the one before.
  enum class Tell : std::uint8_t {
    nothing,  ///< it only counts
    split,    ///< the split pods
    older,    ///< and the pods that are older than their Service
  };
  struct Look {
    std::string ns;
    Tell tell;
  };

  /// `every`: from round to round. The first one is asked for.
  explicit LookPlan(std::chrono::seconds every) : every_(every) {}

  /// A round is due.
  void round_now() { round_ = TimePoint::min(); }
  /// A Service of this namespace was converted just now.
  void converted(std::string_view ns, TimePoint now) { plan(ns, now + kSoon, Tell::older); }

  /// When there is something to look at.
  [[nodiscard]] TimePoint next() const;
  /// What is to be looked at now; `namespaces`: those with a converted Service. The others are
  /// forgotten.
  [[nodiscard]] std::vector<Look> take_due(std::vector<std::string> namespaces, TimePoint now);

  /// How a look ended: with all pods of the namespace seen, or not, but with this many split ones.
  void counted(const Look& look, std::int64_t found, TimePoint now);
  void failed(const Look& look, std::int64_t found, TimePoint now);

  /// Split pods of all namespaces.
  [[nodiscard]] std::int64_t found() const;

 private:
  struct Planned {
    TimePoint when;
    Tell tell;
  };
  struct Known {
    std::int64_t split = 0;
    bool failed = false;  // the last list
  };

  void plan(std::string_view ns, TimePoint when, Tell tell);

  std::chrono::seconds every_;
  TimePoint round_ = TimePoint::max();
  std::map<std::string, Planned, std::less<>> planned_;
  std::map<std::string, Known> known_;
};

}  // namespace rayhook
