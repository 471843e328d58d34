// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace rayhook {

/// What may stand in the way of taking reviews. A new one gets a line here and its word.
enum class Hindrance : std::uint8_t {
  certificate,  ///< there is none that could be served
  services,     ///< the Services of the cluster are not known yet
  draining,     ///< the process has been told to end
};
inline constexpr std::size_t kHindrances = static_cast<std::size_t>(Hindrance::draining) + 1;
[[nodiscard]] std::string_view word(Hindrance hindrance);

/// Whether reviews should be sent here, and if not, why. Begins with a certificate and the Services
/// missing; ready once nothing stands in the way. Thread-safe.
class Readiness {
 public:
  /// Something stands in the way: `reason` is for a person, one line. The last reason counts.
  void hinder(Hindrance hindrance, std::string reason);
  /// It does not, or no longer.
  void clear(Hindrance hindrance);

  [[nodiscard]] bool ready() const;
  /// Each hindrance on a line, `certificate: not loaded yet`; empty if there is none.
  [[nodiscard]] std::string hindrances() const;

 private:
  mutable std::mutex mutex_;
  std::array<std::string, kHindrances> reasons_{"not loaded yet", "not known yet", ""};
};

}  // namespace rayhook
