// SPDX-License-Identifier: Apache-2.0
#include "kube_calls.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace rayhook {
namespace {

using Json = nlohmann::json;
constexpr std::chrono::seconds kPatience{15};

}  // namespace

struct KubeCalls::State {
  State(std::shared_ptr<boost::asio::ssl::context> tls, ClusterAccess access)
      : client(context, std::move(tls), std::move(access), clock) {}

  SteadyClock clock;
  asio::io_context context{1};
  KubeClient client;
};

KubeCalls::KubeCalls(std::unique_ptr<State> state) : state_(std::move(state)) {}
KubeCalls::~KubeCalls() = default;

Result<std::unique_ptr<KubeCalls>> KubeCalls::open(const std::string& kubeconfig) {
  const Result<ClusterAccess> access = cluster_access(kubeconfig);
  if (!access) return std::unexpected(access.error());
  const auto tls = client_tls(*access);
  if (!tls) return std::unexpected(tls.error());
  return std::unique_ptr<KubeCalls>(new KubeCalls(std::make_unique<State>(*tls, *access)));
}

Result<KubeAnswer> KubeCalls::call(KubeRequest request) {
  State& state = *state_;
  Result<KubeAnswer> out = fail(Errc::internal, "the API server was not asked");
  asio::co_spawn(state.context,
                 state.client.send(std::move(request), state.clock.now() + kPatience),
                 [&out](const std::exception_ptr& fault, Result<KubeAnswer> answer) {
                   if (!fault) out = std::move(answer);
                 });
  state.context.restart();
  state.context.run();
  return out;
}

Result<std::optional<Json>> KubeCalls::get(const std::string& title, std::string path) {
  Result<KubeAnswer> answer = call({"GET", std::move(path), {}, {}});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->status == 404) return std::optional<Json>();
  if (answer->status != 200)
    return fail(Errc::unreachable, title + ": the API server says: " + words_of(*answer));
  Json object = Json::parse(answer->body, nullptr, false);
  if (!object.is_object()) return fail(Errc::unreachable, title + ": the answer is no object");
  return std::optional<Json>(std::move(object));
}

std::string words_of(const KubeAnswer& answer) {
  std::string words = text_member(Json::parse(answer.body, nullptr, false), "message");
  if (words.empty()) words = "HTTP status " + std::to_string(answer.status);
  return words;
}

const Json* member(const Json& map, std::string_view key) {
  if (!map.is_object()) return nullptr;
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &*found;
}

const Json& list_member(const Json& map, std::string_view key) {
  static const Json none = Json::array();
  const Json* found = member(map, key);
  return found && found->is_array() ? *found : none;
}

std::string text_member(const Json& map, std::string_view key) {
  const Json* value = member(map, key);
  const auto* text = value ? value->get_ptr<const std::string*>() : nullptr;
  return text ? *text : std::string();
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string check_object_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= 253 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos &&
      name.front() != '.' && name.front() != '-';
  return good ? "" : "\"" + name + "\" is no name of an object in Kubernetes";
}

}  // namespace rayhook
