// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy.hpp"
#include "review.hpp"
#include "service.hpp"

namespace rayhook {

/// A Service that a pod's text mentions.
struct NeededService {
  std::string name;
  bool ray_address = false;  ///< a Ray address needs it (`--address`, `ray://`, RAY_ADDRESS …)
};

/// What must be known before a review can be decided. `needs` asks, server/ fulfils.
struct Needs {
  std::string ns;                       ///< the namespace all of this is about
  bool converted_services = false;      ///< pod: the converted Services of the namespace
  std::vector<NeededService> services;  ///< pod: mentioned Services, at most kMaxLookups
  bool running_readers = false;         ///< service: pods that read its variables already
  bool selected_workers = false;        ///< service: whether its selector matches workers
  [[nodiscard]] bool none() const {
    return !converted_services && services.empty() && !running_readers && !selected_workers;
  }
};

/// Services asked for beyond this many stay unknown.
inline constexpr std::size_t kMaxLookups = 16;

/// Whether something is there. *Unknown* is not *absent*: nothing follows from it.
enum class Known { unknown, absent, present };

/// What is known of one Service that a pod could refer to.
struct ServiceFact {
  std::string name;
  Known known = Known::unknown;
  std::shared_ptr<const Service> service;  ///< set iff known == present; never changed
  std::optional<bool> matches_workers;     ///< its selector matches workers; unset: not known
  /// Absent after all waiting, and its first miss was not long ago: a pod that needs it for a Ray
  /// address may be refused, so that its controller tries again.
  bool retry = false;
};

/// What is known, as far as `needs` asked. An unmet need is a fact too: Known::unknown, or unset.
struct Facts {
  std::vector<ServiceFact> services;      ///< pod: those mentioned and those converted
  std::optional<bool> matches_workers;    ///< service under review: see ServiceFact
  Known running_readers = Known::absent;  ///< service under review: pods that read it already
  std::string running_reader;             ///< name of such a pod
};

/// `needs`: what `decide` has to know about this review. Pure.
[[nodiscard]] Needs needs(const Review& review, const Policy& policy);

/// True if the pod's text mentions a variable of the Service called `service` (`X_SERVICE_HOST`,
/// `X_SERVICE_PORT…`, `X_PORT_<n>_<PROTO>…`) in a container that does not define it itself. With
/// service links off a pod reads nothing. Pure.
[[nodiscard]] bool reads(const Pod& pod, std::string_view service);

/// A *worker*: its text has `ray start` without `--head`, or its labels say so
/// (`ray.io/node-type: worker`, or a value with the part `worker` under component, app, …). Pure.
[[nodiscard]] bool is_worker(const Pod& pod);

/// True if `selector` is not empty and each pair of it is among the pod's labels. Pure.
[[nodiscard]] bool selects(const StringMap& selector, const Pod& pod);

}  // namespace rayhook
