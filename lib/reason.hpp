// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace rayhook {

/// Why an object was changed or left: the closed list. The same word stands in the log line, the
/// metric label, the warning, the audit annotation, `rayhook explain` and `rayhook/decision`.
/// A new reason is one line here, one line in kReasons (reason.cpp), one test.
enum class Reason {
  // Services
  converted,
  already_headless,
  ip_chosen,
  service_type,
  external_ips,
  no_selector,
  matches_workers,
  port_differs,
  named_target_port,
  serve_service,
  worker_service,
  deliberate_kuberay,
  kuberay_ignored,
  running_readers,
  readers_unknown,
  head_unclear,
  not_a_head,
  // Pods
  rewritten,
  restored,
  no_reference,
  already_done,
  service_left,
  service_absent,
  service_awaited,
  service_unknown,
  own_variables,
  service_links_off,
  mirror_pod,
  host_network,
  dns_policy,
  // Either
  opted_out,
  not_create,
  not_our_kind,
  malformed,
  too_large,
  patch_refused,
};

inline constexpr std::size_t kReasonCount = static_cast<std::size_t>(Reason::patch_refused) + 1;

/// A reason as people meet it.
struct ReasonText {
  Reason reason;
  std::string_view word;      ///< [a-z-]+, stable: users' alerts and queries rely on it
  std::string_view sentence;  ///< one sentence: what happened and, where it helps, what to do
  bool of_concern;            ///< logged at info; the others are counted, and logged at debug only
};

/// All reasons, in the order of the enum.
[[nodiscard]] const std::array<ReasonText, kReasonCount>& reasons();

[[nodiscard]] const ReasonText& text(Reason reason);
[[nodiscard]] inline std::string_view word(Reason reason) { return text(reason).word; }

}  // namespace rayhook
