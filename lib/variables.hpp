// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy.hpp"
#include "service.hpp"

namespace rayhook {

/// The kinds of variables that Kubernetes makes of a Service.
enum class VariableKind : std::uint8_t {
  host,         ///< X_SERVICE_HOST
  port,         ///< X_SERVICE_PORT, X_SERVICE_PORT_<NAME>
  docker_link,  ///< X_PORT, X_PORT_<n>_<PROTO>, …_PROTO, …_PORT, …_ADDR
};

/// One variable that a Service gives to pods, with the value that Rayhook puts in its place.
struct ServiceVariable {
  std::string name;
  std::string value;
  VariableKind kind;
};

/// Appends the variables that kubelet would make of `service` if it had a cluster IP, with
/// `dns_name` in place of the IP and target ports in place of ports. A port whose target is given
/// by name has no number here and no variable. Docker-link ones only on request; they come last.
/// Source: kubernetes pkg/kubelet/envvars/envvars.go.
void append_variables(const Service& service, std::string_view dns_name, bool docker_links,
                      std::vector<ServiceVariable>& out);

/// The first part of its variables' names: upper case, `-` → `_`.
[[nodiscard]] std::string variable_prefix(std::string_view service);

/// How pods of namespace `ns` are to name the Service, as the policy says.
[[nodiscard]] std::string dns_name(std::string_view service, std::string_view ns,
                                   const Policy& policy);

/// A place in a text where a service variable is named, expanded there or not.
struct Mention {
  std::size_t begin, end;   ///< the whole identifier
  std::string_view name;    ///< a view into the text
  std::string_view prefix;  ///< what stands before `_SERVICE_…` or `_PORT_…`: names the Service
  bool docker_link;         ///< spelled `X_PORT_<n>_<PROTO>…`
};

/// Finds the mentions in `text`, from `from` on, one by one: false when there are no more. A name
/// that can be read in two ways (`A_SERVICE_PORT_B_SERVICE_PORT`) is found once for each prefix.
/// `KUBERNETES_*`, and prefixes that no Service name gives, are passed over. A bare `X_PORT` is no
/// mention: it says too little. Linear time over all calls.
class MentionFinder {
 public:
  explicit MentionFinder(std::string_view text) : text_(text) {}
  [[nodiscard]] bool next(Mention& out);

 private:
  [[nodiscard]] bool next_in_identifier(Mention& out);

  std::string_view text_;
  std::size_t pos_ = 0;              // where to look for the next identifier
  std::size_t begin_ = 0, end_ = 0;  // the identifier at hand
  std::size_t split_ = 0;            // where in it to look for the next `_SERVICE_`, `_PORT_`
};

/// The Service name that a prefix stands for (`RAY_HEAD` → `ray-head`).
[[nodiscard]] std::string service_name(std::string_view prefix);

/// True if variable_prefix(service) == prefix, without allocating.
[[nodiscard]] bool names_service(std::string_view prefix, std::string_view service);

}  // namespace rayhook
