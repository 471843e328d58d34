// SPDX-License-Identifier: Apache-2.0
#include "kube_events.hpp"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <ctime>
#include <nlohmann/json.hpp>

#include "server/kube/dns_label.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostMessage = 1024;  // k8s.io/kubernetes pkg/apis/core/validation/events.go
constexpr std::chrono::seconds kPatience{10};

std::string camel_case(std::string_view word) {
  std::string out;
  bool upper = true;
  for (const char c : word) {
    if (c == '-') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return out;
}

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string body_of(const KubeEvent& event) {
  Json about = {{"apiVersion", event.api_version},
                {"kind", event.kind},
                {"namespace", event.ns},
                {"name", event.name}};
  if (!event.uid.empty()) about["uid"] = event.uid;
  const std::string now = now_as_text();
  const Json out = {{"apiVersion", "v1"},
                    {"kind", "Event"},
                    {"metadata", {{"generateName", "rayhook-"}, {"namespace", event.ns}}},
                    {"involvedObject", std::move(about)},
                    {"reason", event.reason},
                    {"message", event.message},
                    {"type", event.warning ? "Warning" : "Normal"},
                    {"count", 1},
                    {"firstTimestamp", now},
                    {"lastTimestamp", now},
                    {"source", {{"component", "rayhook"}}},
                    {"reportingComponent", "rayhook"}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

KubeEvent kube_event(const Review& review, const Decision& decision, Mode mode) {
  KubeEvent out;
  out.ns = review.ns;
  const std::string_view name = review.name.empty() ? review.generate_name : review.name;
  const bool has_controller = review.kind == ObjectKind::pod && !review.pod.controller_name.empty();
  out.api_version = has_controller ? review.pod.controller_api : "v1";
  out.kind = has_controller ? review.pod.controller : review.kind_name;
  out.name = has_controller ? review.pod.controller_name : name;
  if (has_controller) out.uid = review.pod.controller_uid;
  out.reason = camel_case(word(decision.reason));
  if (mode == Mode::audit) out.message = "Only reported (audit): ";
  if (has_controller) out.message += "Pod " + std::string(name.substr(0, 253)) + ": ";
  if (decision.outcome == Outcome::deny)
    out.message += decision.deny_message;
  else
    out.message += text(decision.reason).sentence;
  if (out.message.size() > kMostMessage) out.message.resize(kMostMessage);
  out.warning = decision.outcome == Outcome::deny || !decision.warnings.empty();
  return out;
}

bool KubeEvents::told_before(const KubeEvent& event) {
  const TimePoint now = clock_.now();
  const std::string key = event.ns + "/" + event.kind + "/" + event.name + "/" + event.reason;
  const auto [place, added] = told_.try_emplace(key, now);
  if (!added && now - place->second < kRepeatAfter) return true;
  place->second = now;
  if (told_.size() > kRemembered)
    std::erase_if(told_, [now](const auto& item) { return now - item.second >= kRepeatAfter; });
  if (told_.size() > kRemembered) told_.clear();  // better some twice than a memory without end
  return false;
}

void KubeEvents::add(KubeEvent event) {
  if (!is_dns_label(event.ns)) return metrics_.kube_event(EventResult::failed);
  if (told_before(event)) return metrics_.kube_event(EventResult::repeated);
  if (waiting_.size() >= kWaiting) return metrics_.kube_event(EventResult::dropped);
  waiting_.push_back(std::move(event));
  if (writing_) return;
  writing_ = true;
  asio::co_spawn(executor_, write_all(), [this](const std::exception_ptr&) { writing_ = false; });
}

Task<void> KubeEvents::write_all() {
  while (!waiting_.empty()) {
    KubeRequest request;
    request.method = "POST";
    request.path = "/api/v1/namespaces/" + waiting_.front().ns + "/events";
    request.content_type = "application/json";
    request.body = body_of(waiting_.front());
    waiting_.pop_front();
    const Result<KubeAnswer> answer =
        co_await client_.send(std::move(request), clock_.now() + kPatience);
    const bool written = answer && answer->status == 201;
    metrics_.kube_event(written ? EventResult::written : EventResult::failed);
    if (written) continue;
    const std::string why =
        answer ? "the API server answered with status " + std::to_string(answer->status)
               : answer.error().what;
    if (const auto held_back = trouble_.pass(clock_.now()))
      log_.event(LogLevel::warn, "an Event could not be written",
                 {{"why", why}, {"heldBack", *held_back}});
  }
}

}  // namespace rayhook
