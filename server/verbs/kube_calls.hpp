// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lib/error.hpp"
#include "server/kube/client.hpp"

namespace rayhook {

/// The API server as verbs use it: one call after the other, each waits for its answer, at most 15
/// seconds. Not thread-safe.
class KubeCalls {
 public:
  /// By the kubeconfig; without one (an empty path), as the pod's service account.
  /// Errors: Errc::bad_config.
  [[nodiscard]] static Result<std::unique_ptr<KubeCalls>> open(const std::string& kubeconfig);
  ~KubeCalls();
  KubeCalls(const KubeCalls&) = delete;
  KubeCalls& operator=(const KubeCalls&) = delete;

  /// Errors: Errc::unreachable.
  [[nodiscard]] Result<KubeAnswer> call(KubeRequest request);
  /// The object at `path`; empty if it is not there. `title` is what errors call it. Errors:
  /// Errc::unreachable, with what the API server said.
  [[nodiscard]] Result<std::optional<nlohmann::json>> get(const std::string& title,
                                                          std::string path);

 private:
  struct State;
  explicit KubeCalls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What the API server said of a refusal: its own words, or the status.
[[nodiscard]] std::string words_of(const KubeAnswer& answer);

/// Where the API server keeps MutatingWebhookConfigurations; a name follows.
inline constexpr const char* kWebhooksPath =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/";

/// The member of a JSON object; null if it is no object or has none.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& map, std::string_view key);
/// The same for an array; an empty one if it is none.
[[nodiscard]] const nlohmann::json& list_member(const nlohmann::json& map, std::string_view key);
/// The same for a text; empty if it is none.
[[nodiscard]] std::string text_member(const nlohmann::json& map, std::string_view key);

/// As text for a request's body.
[[nodiscard]] std::string dump(const nlohmann::json& json);

/// A validator of CLI11 for names that go into paths: the complaint, or nothing.
[[nodiscard]] std::string check_object_name(const std::string& name);

}  // namespace rayhook
