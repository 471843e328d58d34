// SPDX-License-Identifier: Apache-2.0
#include "certs_cluster.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "server/base64.hpp"
#include "server/kube/client.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::json;
constexpr std::chrono::seconds kPatience{15};

const Json* member(const Json& map, std::string_view key) {
  if (!map.is_object()) return nullptr;
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &*found;
}

std::string text_member(const Json& map, std::string_view key) {
  const Json* value = member(map, key);
  const auto* text = value ? value->get_ptr<const std::string*>() : nullptr;
  return text ? *text : std::string();
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// By the kubeconfig, or as the pod's service account.
Result<ClusterAccess> cluster_access(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return read_kubeconfig(kubeconfig);
  const auto environment = [](const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets the environment
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (environment("KUBERNETES_SERVICE_HOST").empty())
    return fail(Errc::bad_config,
                "this is no pod (KUBERNETES_SERVICE_HOST is not set); give --kubeconfig");
  return service_account_access(environment("KUBERNETES_SERVICE_HOST"),
                                environment("KUBERNETES_SERVICE_PORT"));
}

/// What the API server said of a refusal: its own words, if it sent some.
std::unexpected<Error> refused(const std::string& what, const KubeAnswer& answer) {
  const Json status = Json::parse(answer.body, nullptr, false);
  std::string why = text_member(status, "message");
  if (why.empty()) why = "HTTP status " + std::to_string(answer.status);
  return fail(Errc::unreachable, what + ": the API server says: " + why);
}

/// The names go into paths: lower-case letters, digits, `-` and `.`, as Kubernetes has them.
std::string check_object_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= 253 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos &&
      name.front() != '.' && name.front() != '-';
  return good ? "" : "\"" + name + "\" is no name of an object in Kubernetes";
}

}  // namespace

std::string CertsPlace::server_name() const { return service + "." + name_space + ".svc"; }

void add_place_options(CLI::App& verb, CertsPlace& place, bool authority) {
  const CLI::Validator name(check_object_name, "NAME");
  verb.add_option("--kubeconfig", place.kubeconfig,
                  "How to reach the API server; without it, as the pod's service account")
      ->type_name("FILE");
  verb.add_option("--namespace", place.name_space, "Where Rayhook is")
      ->capture_default_str()
      ->check(name);
  verb.add_option("--secret", place.secret, "The Secret with tls.crt, tls.key and ca.crt")
      ->capture_default_str()
      ->check(name);
  if (authority)
    verb.add_option("--ca-secret", place.authority_secret, "The Secret with the CA and its key")
        ->capture_default_str()
        ->check(name);
  verb.add_option("--service", place.service, "The Service that the API server calls")
      ->capture_default_str()
      ->check(name);
  verb.add_option("--webhook-configuration", place.configuration,
                  "The MutatingWebhookConfiguration with the caBundle")
      ->capture_default_str()
      ->check(name);
}

std::string StoredSecret::text(const std::string& key) const {
  const auto found = data.find(key);
  return found == data.end() ? std::string() : found->second;
}

struct CertsCluster::State {
  State(CertsPlace where, std::shared_ptr<boost::asio::ssl::context> tls, ClusterAccess access)
      : place(std::move(where)), client(context, std::move(tls), std::move(access), clock) {}

  CertsPlace place;
  SteadyClock clock;
  asio::io_context context{1};
  KubeClient client;

  [[nodiscard]] std::string secrets() const {
    return "/api/v1/namespaces/" + place.name_space + "/secrets";
  }
  [[nodiscard]] std::string configuration() const {
    return "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/" +
           place.configuration;
  }
  [[nodiscard]] std::string secret_title(const std::string& name) const {
    return "Secret " + place.name_space + "/" + name;
  }
  [[nodiscard]] std::string configuration_title() const {
    return "MutatingWebhookConfiguration " + place.configuration;
  }

  [[nodiscard]] Result<KubeAnswer> call(KubeRequest request) {
    Result<KubeAnswer> out = fail(Errc::internal, "the API server was not asked");
    asio::co_spawn(context, client.send(std::move(request), clock.now() + kPatience),
                   [&out](const std::exception_ptr& fault, Result<KubeAnswer> answer) {
                     if (!fault) out = std::move(answer);
                   });
    context.restart();
    context.run();
    return out;
  }

  /// The object at `path`; empty if it is not there.
  [[nodiscard]] Result<std::optional<Json>> get(const std::string& title, std::string path) {
    Result<KubeAnswer> answer = call({"GET", std::move(path), {}, {}});
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (answer->status == 404) return std::optional<Json>();
    if (answer->status != 200) return refused(title, *answer);
    Json object = Json::parse(answer->body, nullptr, false);
    if (!object.is_object()) return fail(Errc::unreachable, title + ": the answer is no object");
    return std::optional<Json>(std::move(object));
  }
};

CertsCluster::CertsCluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
CertsCluster::~CertsCluster() = default;

Result<std::unique_ptr<CertsCluster>> CertsCluster::open(const CertsPlace& place) {
  const Result<ClusterAccess> access = cluster_access(place.kubeconfig);
  if (!access) return std::unexpected(access.error());
  const auto tls = client_tls(*access);
  if (!tls) return std::unexpected(tls.error());
  return std::unique_ptr<CertsCluster>(
      new CertsCluster(std::make_unique<State>(place, *tls, *access)));
}

Result<std::optional<StoredSecret>> CertsCluster::secret(const std::string& name) {
  const std::string title = state_->secret_title(name);
  Result<std::optional<Json>> object = state_->get(title, state_->secrets() + "/" + name);
  if (!object) return std::unexpected(std::move(object.error()));
  if (!*object) return std::optional<StoredSecret>();
  StoredSecret out{std::move(**object), {}, false};
  const Json* metadata = member(out.object, "metadata");
  const Json* annotations = metadata ? member(*metadata, "annotations") : nullptr;
  out.of_cert_manager = annotations && member(*annotations, "cert-manager.io/certificate-name");
  const Json* data = member(out.object, "data");
  if (!data || !data->is_object()) return out;
  for (const auto& [key, value] : data->items())
    if (const auto* text = value.get_ptr<const std::string*>())
      out.data[key] = from_base64(*text).value_or("");
  return out;
}

Result<std::optional<StoredConfiguration>> CertsCluster::configuration() {
  const Result<std::optional<Json>> object =
      state_->get(state_->configuration_title(), state_->configuration());
  if (!object) return std::unexpected(object.error());
  if (!*object) return std::optional<StoredConfiguration>();
  StoredConfiguration out;
  if (const Json* metadata = member(**object, "metadata"))
    out.version = text_member(*metadata, "resourceVersion");
  const Json* webhooks = member(**object, "webhooks");
  if (!webhooks || !webhooks->is_array()) return out;
  for (const Json& webhook : *webhooks) {
    const Json* client = member(webhook, "clientConfig");
    out.webhooks.push_back(text_member(webhook, "name"));
    out.bundles.push_back(client ? from_base64(text_member(*client, "caBundle")).value_or("") : "");
  }
  return out;
}

Result<bool> CertsCluster::write_secret(const std::string& name,
                                        const std::optional<StoredSecret>& before,
                                        const SecretData& data) {
  Json object = before ? before->object
                       : Json{{"apiVersion", "v1"},
                              {"kind", "Secret"},
                              {"type", "kubernetes.io/tls"},
                              {"metadata",
                               {{"name", name},
                                {"namespace", state_->place.name_space},
                                {"labels", {{"app.kubernetes.io/name", "rayhook"}}}}}};
  const Json* present = member(object, "data");
  Json merged = present && present->is_object() ? *present : Json::object();
  for (const auto& [key, text] : data) merged[key] = to_base64(text);
  object["data"] = std::move(merged);
  // The object carries the resourceVersion that was read: a PUT over a newer one is refused.
  const Result<KubeAnswer> answer = state_->call(
      {before ? "PUT" : "POST", state_->secrets() + (before ? "/" + name : std::string()),
       "application/json", dump(object)});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200 || answer->status == 201) return true;
  if (answer->status == 409 || (before && answer->status == 404)) return false;
  return refused(state_->secret_title(name), *answer);
}

Result<bool> CertsCluster::write_bundles(const StoredConfiguration& before,
                                         const std::vector<std::string>& bundles) {
  Json patch = Json::array();
  patch.push_back(
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", before.version}});
  for (std::size_t i = 0; i < bundles.size(); ++i)
    if (bundles[i] != before.bundles[i])
      patch.push_back({{"op", "add"},
                       {"path", "/webhooks/" + std::to_string(i) + "/clientConfig/caBundle"},
                       {"value", to_base64(bundles[i])}});
  const Result<KubeAnswer> answer =
      state_->call({"PATCH", state_->configuration(), "application/json-patch+json", dump(patch)});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200) return true;
  if (answer->status == 409 || answer->status == 404) return false;
  if (answer->status == 422) {  // a `test` that failed, if it has really changed
    const auto now = configuration();
    if (!now) return std::unexpected(now.error());
    if (!*now || (*now)->version != before.version) return false;
  }
  return refused(state_->configuration_title(), *answer);
}

}  // namespace rayhook
