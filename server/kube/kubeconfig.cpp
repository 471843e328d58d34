// SPDX-License-Identifier: Apache-2.0
#include "kubeconfig.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "lib/yaml.hpp"
#include "server/base64.hpp"
#include "server/file_text.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::ordered_json;

/// The member called `key` that is not null, or nullptr.
const Json* member(const Json& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() || found->is_null() ? nullptr : &*found;
}

/// Collects the first error, so that reading stays a list of fields.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : path_(path), folder_(std::filesystem::path(path).parent_path()) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  void refuse(std::string_view why) {
    if (!error_) error_ = Error{Errc::bad_config, "kubeconfig " + path_ + ": " + std::string(why)};
  }

  [[nodiscard]] std::string text(const Json& map, std::string_view key) {
    const Json* value = member(map, key);
    if (!value) return {};
    if (const auto* text = value->get_ptr<const std::string*>()) return *text;
    if (value->is_boolean()) return *value ? "true" : "false";
    refuse(std::string(key) + " is not a text; put it in quotes");
    return {};
  }

  /// The entry called `name` of `clusters`, `users` or `contexts`: what stands under `member`.
  [[nodiscard]] const Json& entry(const Json& root, std::string_view list, std::string_view under,
                                  const std::string& name) {
    static const Json nothing = Json::object();
    const Json* entries = member(root, list);
    if (entries && entries->is_array()) {
      for (const Json& entry : *entries) {
        if (!entry.is_object() || text(entry, "name") != name) continue;
        const Json* found = member(entry, under);
        if (found && found->is_object()) return *found;
      }
    }
    refuse(std::string(list) + " has no entry \"" + name + "\"");
    return nothing;
  }

  [[nodiscard]] std::string resolved(const std::string& file) const {
    return file.empty() ? file : (folder_ / file).string();
  }

  /// PEM from `KEY-data` (base64; it wins, as with kubectl) or from the file in `KEY`.
  [[nodiscard]] std::string pem(const Json& map, std::string_view key_name) {
    const std::string key(key_name);
    const std::string data = text(map, key + "-data");
    if (!data.empty()) {
      std::optional<std::string> decoded = from_base64(data);
      if (!decoded) refuse(key + "-data is not base64");
      return decoded.value_or("");
    }
    const std::string file = text(map, key);
    if (file.empty()) return {};
    const Result<std::string> content = read_file(resolved(file), "kubeconfig " + path_);
    if (content) return *content;
    if (!error_) error_ = content.error();
    return {};
  }

 private:
  std::string path_;
  std::filesystem::path folder_;
  std::optional<Error> error_;
};

/// An https URL into host, port and path.
bool read_server(std::string_view url, ClusterAccess& out) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(url.find('/'), url.size());
  std::string_view authority = url.substr(0, slash);
  out.path = url.substr(slash);
  while (out.path.ends_with('/')) out.path.pop_back();
  if (out.path.find_first_of("?# \r\n") != std::string::npos) return false;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    out.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    out.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (out.host.empty() || out.host.find_first_of("@ \r\n") != std::string::npos) return false;
  out.port = 443;
  if (port.empty()) return true;
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  return error == std::errc{} && end == port.data() + port.size() && out.port != 0;
}

void read_cluster(Reader& reader, const Json& cluster, ClusterAccess& out) {
  if (!read_server(reader.text(cluster, "server"), out))
    reader.refuse("server is not an https URL");
  const std::string insecure = reader.text(cluster, "insecure-skip-tls-verify");
  if (!insecure.empty() && insecure != "false")
    reader.refuse(
        "insecure-skip-tls-verify is refused; give the server's certificate-authority instead");
  if (!reader.text(cluster, "proxy-url").empty()) reader.refuse("proxy-url is not supported");
  out.server_name = reader.text(cluster, "tls-server-name");
  if (out.server_name.empty()) out.server_name = out.host;
  out.ca_pem = reader.pem(cluster, "certificate-authority");
  if (out.ca_pem.empty())
    reader.refuse("the cluster has no certificate-authority or certificate-authority-data");
  if (reader.text(cluster, "certificate-authority-data").empty())
    out.ca_file = reader.resolved(reader.text(cluster, "certificate-authority"));
}

void read_user(Reader& reader, const Json& user, ClusterAccess& out) {
  for (const char* program : {"exec", "auth-provider"})
    if (member(user, program))
      reader.refuse(std::string(program) +
                    " is refused: Rayhook runs no programs; use a token, a tokenFile or a client "
                    "certificate");
  for (const char* basic : {"username", "password"})
    if (member(user, basic)) reader.refuse("basic authentication is not supported");
  out.client_cert_pem = reader.pem(user, "client-certificate");
  out.client_key_pem = reader.pem(user, "client-key");
  if (out.client_cert_pem.empty() != out.client_key_pem.empty())
    reader.refuse("client-certificate and client-key go together");
  // As with kubectl, a file wins over a token that stands beside it.
  out.token_file = reader.resolved(reader.text(user, "tokenFile"));
  if (out.token_file.empty()) out.token = reader.text(user, "token");
  // It goes into a header.
  if (std::ranges::any_of(out.token, [](char c) { return c <= ' ' || c > '~'; }))
    reader.refuse("token has characters that no token has");
}

void read_root(Reader& reader, const Json& root, ClusterAccess& out) {
  const std::string current = reader.text(root, "current-context");
  if (current.empty()) reader.refuse("current-context is not set");
  if (reader.error()) return;
  const Json& context = reader.entry(root, "contexts", "context", current);
  if (reader.error()) return;
  const Json& cluster = reader.entry(root, "clusters", "cluster", reader.text(context, "cluster"));
  if (!reader.error()) read_cluster(reader, cluster, out);
  const std::string user = reader.text(context, "user");
  if (reader.error() || user.empty()) return;
  const Json& found = reader.entry(root, "users", "user", user);
  if (!reader.error()) read_user(reader, found, out);
}

}  // namespace

Result<ClusterAccess> read_kubeconfig(const std::string& path) {
  const Result<std::string> content = read_file(path, "--kubeconfig");
  if (!content) return std::unexpected(content.error());
  Reader reader(path);
  ClusterAccess out;
  const Result<Json> root = read_yaml(*content);
  if (!root) {
    reader.refuse(root.error().what);
  } else if (!root->is_object()) {
    reader.refuse("not a kubeconfig");
  } else {
    read_root(reader, *root, out);
  }
  if (reader.error()) return std::unexpected(*reader.error());
  return out;
}

std::string url_host(std::string_view host) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? "[" + std::string(host) + "]" : std::string(host);
}

Result<ClusterAccess> service_account_access(std::string_view host, std::string_view port,
                                             const std::string& folder) {
  if (host.empty() || port.empty())
    return fail(Errc::bad_config,
                "no API server is known: this is no pod (KUBERNETES_SERVICE_HOST is not set); give "
                "--kubeconfig");
  ClusterAccess out;
  if (!read_server("https://" + url_host(host) + ":" + std::string(port), out))
    return fail(Errc::bad_config, "KUBERNETES_SERVICE_HOST or _PORT makes no sense");
  out.server_name = out.host;
  out.token_file = folder + "/token";
  out.ca_file = folder + "/ca.crt";
  Result<std::string> ca = read_file(out.ca_file, "the service account's CA");
  if (!ca) return std::unexpected(ca.error());
  out.ca_pem = std::move(*ca);
  return out;
}

Result<ClusterAccess> cluster_access(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return read_kubeconfig(kubeconfig);
  const auto environment = [](const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets the environment
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  return service_account_access(environment("KUBERNETES_SERVICE_HOST"),
                                environment("KUBERNETES_SERVICE_PORT"));
}

}  // namespace rayhook
