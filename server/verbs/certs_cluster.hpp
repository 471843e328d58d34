// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/error.hpp"

namespace CLI {
class App;
}

namespace rayhook {

/// Where an installation keeps its certificates. The defaults are those of the manifests.
struct CertsPlace {
  std::string kubeconfig;  ///< empty: as the pod's service account
  std::string name_space = "rayhook-system";
  std::string secret = "rayhook-tls";
  std::string authority_secret = "rayhook-ca";  ///< with the CA's key: no serving pod mounts it
  std::string service = "rayhook";
  std::string configuration = "rayhook";  ///< MutatingWebhookConfiguration

  /// Whom the API server asks for: `rayhook.rayhook-system.svc`.
  [[nodiscard]] std::string server_name() const;
};

/// Adds `--kubeconfig`, `--namespace`, `--secret`, `--service` and `--webhook-configuration`; with
/// `authority` also `--ca-secret`.
void add_place_options(CLI::App& verb, CertsPlace& place, bool authority = false);

/// A Secret's texts, decoded.
using SecretData = std::map<std::string, std::string>;

/// An object as the API server has it, with what of it concerns us.
struct StoredSecret {
  nlohmann::json object;
  SecretData data;
  bool of_cert_manager = false;  ///< who renews it, and would not be amused
  /// The text, or an empty one.
  [[nodiscard]] std::string text(const std::string& key) const;
};
struct StoredConfiguration {
  std::string version;                ///< resourceVersion
  std::vector<std::string> webhooks;  ///< their names
  std::vector<std::string> bundles;   ///< the caBundle of each, as PEM; empty: none
};

/// The few calls to the API server that certificates need, one after the other: each waits for its
/// answer, at most 15 seconds. Not thread-safe. Errors: Errc::unreachable, with what the API server
/// said; Errc::bad_config for a kubeconfig.
class CertsCluster {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CertsCluster>> open(const CertsPlace& place);
  ~CertsCluster();
  CertsCluster(const CertsCluster&) = delete;
  CertsCluster& operator=(const CertsCluster&) = delete;

  /// Empty if there is no such Secret.
  [[nodiscard]] Result<std::optional<StoredSecret>> secret(const std::string& name);
  /// Empty if there is no such configuration.
  [[nodiscard]] Result<std::optional<StoredConfiguration>> configuration();

  /// HOST:PORT of each replica that the API server may call: the endpoints of the Service that are
  /// ready or still serve, at the port named `https` (or the only one). Source:
  /// k8s.io/api/discovery/v1/types.go (EndpointConditions: a `ready` that is absent means yes).
  [[nodiscard]] Result<std::vector<std::string>> replicas();

  /// Creates the Secret, or changes these texts of the one that was read and leaves the rest of it.
  /// False: somebody else was faster, nothing was written.
  [[nodiscard]] Result<bool> write_secret(const std::string& name,
                                          const std::optional<StoredSecret>& before,
                                          const SecretData& data);
  /// Writes the caBundles that differ, and nothing else. False: it has changed since it was read.
  [[nodiscard]] Result<bool> write_bundles(const StoredConfiguration& before,
                                           const std::vector<std::string>& bundles);

 private:
  struct State;
  explicit CertsCluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rayhook
