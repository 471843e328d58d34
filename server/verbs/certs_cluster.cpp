// SPDX-License-Identifier: Apache-2.0
#include "certs_cluster.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "kube_calls.hpp"
#include "server/base64.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::json;

std::unexpected<Error> refused(const std::string& what, const KubeAnswer& answer) {
  return fail(Errc::unreachable, what + ": the API server says: " + words_of(answer));
}

/// The number of the port that reviews come to; empty: there is none.
std::string review_port(const Json& slice) {
  const Json& ports = list_member(slice, "ports");
  for (const Json& port : ports) {
    const Json* number = member(port, "port");
    if (number && number->is_number_unsigned() &&
        (ports.size() == 1 || text_member(port, "name") == "https"))
      return std::to_string(number->get<std::uint64_t>());
  }
  return {};
}

/// Whether the API server's calls may go there.
bool called(const Json& endpoint) {
  const Json* conditions = member(endpoint, "conditions");
  const auto is = [&](std::string_view key, bool unsaid) {
    const Json* found = conditions ? member(*conditions, key) : nullptr;
    return found && found->is_boolean() ? found->get<bool>() : unsaid;
  };
  return is("ready", true) || is("serving", false);
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
  CertsPlace place;
  std::unique_ptr<KubeCalls> api;

  [[nodiscard]] std::string secrets() const {
    return "/api/v1/namespaces/" + place.name_space + "/secrets";
  }
  [[nodiscard]] std::string configuration() const { return kWebhooksPath + place.configuration; }
  [[nodiscard]] std::string secret_title(const std::string& name) const {
    return "Secret " + place.name_space + "/" + name;
  }
  [[nodiscard]] std::string configuration_title() const {
    return "MutatingWebhookConfiguration " + place.configuration;
  }
};

CertsCluster::CertsCluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
CertsCluster::~CertsCluster() = default;

Result<std::unique_ptr<CertsCluster>> CertsCluster::open(const CertsPlace& place) {
  auto api = KubeCalls::open(place.kubeconfig);
  if (!api) return std::unexpected(api.error());
  return std::unique_ptr<CertsCluster>(
      new CertsCluster(std::make_unique<State>(place, std::move(*api))));
}

Result<std::optional<StoredSecret>> CertsCluster::secret(const std::string& name) {
  const std::string title = state_->secret_title(name);
  Result<std::optional<Json>> object = state_->api->get(title, state_->secrets() + "/" + name);
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
      state_->api->get(state_->configuration_title(), state_->configuration());
  if (!object) return std::unexpected(object.error());
  if (!*object) return std::optional<StoredConfiguration>();
  StoredConfiguration out;
  if (const Json* metadata = member(**object, "metadata"))
    out.version = text_member(*metadata, "resourceVersion");
  for (const Json& webhook : list_member(**object, "webhooks")) {
    const Json* client = member(webhook, "clientConfig");
    out.webhooks.push_back(text_member(webhook, "name"));
    out.bundles.push_back(client ? from_base64(text_member(*client, "caBundle")).value_or("") : "");
  }
  return out;
}

Result<std::vector<std::string>> CertsCluster::replicas() {
  const CertsPlace& place = state_->place;
  const Result<std::optional<Json>> slices = state_->api->get(
      "EndpointSlices of Service " + place.name_space + "/" + place.service,
      "/apis/discovery.k8s.io/v1/namespaces/" + place.name_space +
          "/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D" + place.service);
  if (!slices) return std::unexpected(slices.error());
  std::vector<std::string> out;
  if (!*slices) return out;
  for (const Json& slice : list_member(**slices, "items")) {
    const std::string port = review_port(slice);
    if (port.empty()) continue;
    for (const Json& endpoint : list_member(slice, "endpoints")) {
      if (!called(endpoint)) continue;
      // All addresses of an endpoint are the same pod.
      const Json& addresses = list_member(endpoint, "addresses");
      const auto* host = addresses.empty() ? nullptr : addresses[0].get_ptr<const std::string*>();
      if (host) out.push_back(url_host(*host) + ":" + port);
    }
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
  const Result<KubeAnswer> answer = state_->api->call(
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
  const Result<KubeAnswer> answer = state_->api->call(
      {"PATCH", state_->configuration(), "application/json-patch+json", dump(patch)});
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
