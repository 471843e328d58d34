// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "lib/review.hpp"
#include "server/clock.hpp"
#include "server/kube/client.hpp"

namespace rayhook {

/// Pods that are asked for at once. 5,000 small pods are 28 MB.
inline constexpr unsigned kPodPage = 500;

/// A list of a namespace's pods, page by page, and within a page pod by pod: it costs the memory of
/// one of them. Lives in one coroutine.
class PodPages {
 public:
  /// Takes a pod, which is valid during the call; false: enough. One that cannot be read is passed
  /// over.
  using OnPod = std::function<bool(const Review&)>;

  /// `client` must outlive it. `ns` must be a namespace's name.
  PodPages(KubeClient& client, std::string ns) : client_(client), ns_(std::move(ns)) {}

  /// Reads the next page, done by `end`. True if there is another one, and `on_pod` has not had
  /// enough. Errors: Errc::unreachable, Errc::bad_json, Errc::too_large, with the reason.
  [[nodiscard]] Task<Result<bool>> next(const Clock& clock, TimePoint end, OnPod on_pod);

 private:
  KubeClient& client_;
  std::string ns_;
  std::string continue_;
  ReviewReader reader_;
};

/// A text as part of a URL's query.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace rayhook
