// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "pod.hpp"

namespace rayhook {

/// The names that a container's own `env` defines, for look-ups in logarithmic time (few names are
/// sooner compared than sorted). Views into the pod, which must outlive it and stay as it is.
class OwnNames {
 public:
  explicit OwnNames(const Pod& pod) : pod_(pod) {}
  /// From now on they are those of this container of the pod; costs nothing if they are already.
  void fill(const Container& container);

  /// The container defines it somewhere: whatever Kubernetes would have set is overridden.
  [[nodiscard]] bool has(std::string_view name) const { return first(name) != kNone; }
  /// In this text the name is the container's own. In env values only the entries declared earlier
  /// count: kubelet expands `$(X)` there with what it has so far (kubernetes
  /// pkg/kubelet/kubelet_pods.go).
  [[nodiscard]] bool hides(const Text& text, std::string_view name) const {
    return text.field == Field::env_value ? first(name) < text.index : has(name);
  }
  /// The entry that counts (the last one), or nullptr.
  [[nodiscard]] const EnvEntry* entry(std::string_view name) const;

 private:
  using Name = std::pair<std::string_view, std::uint32_t>;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kFew = 64;
  [[nodiscard]] std::uint32_t first(std::string_view name) const;

  [[nodiscard]] bool few() const { return names_.size() <= kFew; }

  const Pod& pod_;
  const Container* container_ = nullptr;
  std::vector<Name> names_;  // with their index; if they are many, sorted by both
};

}  // namespace rayhook
