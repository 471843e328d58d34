// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rayhook {

/// What is behind the words by which an API server explains why an object was not created: one
/// word (certificate, network, replicas, service, rayhook, policy, rights), and what to do. Empty:
/// the words are not known. The words: k8s.io/apiserver (pkg/admission/plugin/webhook,
/// pkg/util/webhook, pkg/util/proxy), k8s.io/kubernetes (plugin/pkg/admission), Go's crypto/x509
/// and net.
struct ProbeCause {
  std::string_view word;
  std::string_view advice;
};
[[nodiscard]] ProbeCause probe_cause(std::string_view words);

}  // namespace rayhook
