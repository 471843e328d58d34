// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/error.hpp"

namespace rayhook {

/// How to reach an API server, and as whom. A value. PEM texts are read already; a token and
/// a CA that stand in files are read anew as they change.
struct ClusterAccess {
  std::string host;  ///< name or IP (IPv6 without brackets)
  std::uint16_t port = 443;
  std::string path;         ///< in front of every request's path; "" or "/k8s/clusters/x"
  std::string server_name;  ///< whom the certificate must name; `host` unless told otherwise
  std::string ca_pem;       ///< never empty: servers are always verified
  std::string ca_file;      ///< where ca_pem was read, and is read anew as it changes; or empty
  std::string client_cert_pem, client_key_pem;  ///< both or neither
  std::string token;                            ///< empty: none, or in token_file
  std::string token_file;
};

/// A host as URLs and Host fields have it: an IPv6 address in brackets.
[[nodiscard]] std::string url_host(std::string_view host);

/// Reads a kubeconfig's current context. Relative file names count from the kubeconfig's folder.
/// Refused, with the reason: no verification (`insecure-skip-tls-verify`), plain http, programs
/// (`exec`, `auth-provider`), basic authentication, proxies. Errors: Errc::bad_config, Errc::io.
[[nodiscard]] Result<ClusterAccess> read_kubeconfig(const std::string& path);

/// What a pod is given by its service account: `host` and `port` are the values of
/// KUBERNETES_SERVICE_HOST and _PORT, `folder` holds `token` and `ca.crt`.
[[nodiscard]] Result<ClusterAccess> service_account_access(
    std::string_view host, std::string_view port,
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

/// By that kubeconfig; where it is "", as the pod that this process runs in.
[[nodiscard]] Result<ClusterAccess> cluster_access(const std::string& kubeconfig);

}  // namespace rayhook
