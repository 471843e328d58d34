// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "facts.hpp"
#include "own_names.hpp"
#include "pod_rule.hpp"
#include "service_rule.hpp"
#include "variables.hpp"
#include "words.hpp"

namespace rayhook {
namespace {

constexpr std::string_view kBlank = " \t\n\r";

bool ends_with_address_flag(std::string_view text) {
  while (!text.empty() && kBlank.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  return text.ends_with("--address") || text.ends_with("--redis-address");
}

/// True if the mention at `at` is part of a Ray address: in the word of or after `--address` or
/// `--redis-address`, in a `ray://` URL, or in the value of RAY_ADDRESS.
bool in_ray_address(const Pod& pod, const Container& container, std::uint32_t text_index,
                    std::size_t at) {
  const Text& text = pod.texts[text_index];
  if (text.field == Field::env_value &&
      pod.env[container.env_begin + text.index].name == "RAY_ADDRESS")
    return true;
  // A word is short; a long one without blanks is no command line.
  constexpr std::size_t kFar = 256;
  const std::string_view before = text.value.substr(at > kFar ? at - kFar : 0, std::min(at, kFar));
  const std::size_t blank = before.find_last_of(kBlank);
  const std::string_view word = blank == std::string_view::npos ? before : before.substr(blank + 1);
  if (word.find("--address=") != std::string_view::npos ||
      word.find("--redis-address=") != std::string_view::npos ||
      word.find("ray://") != std::string_view::npos)
    return true;
  if (blank != std::string_view::npos) return ends_with_address_flag(before.substr(0, blank));
  // The first word of its text: the element before it may be the flag (`["--address", "$(X)…"]`).
  return at <= kFar && text.index > 0 && text_index > container.texts_begin &&
         pod.texts[text_index - 1].field == text.field &&
         ends_with_address_flag(pod.texts[text_index - 1].value);
}

void need(Needs& needs, const Mention& mention, bool ray_address) {
  const auto found = std::ranges::find_if(needs.services, [&](const NeededService& service) {
    return names_service(mention.prefix, service.name);
  });
  if (found != needs.services.end())
    found->ray_address = found->ray_address || ray_address;
  else if (needs.services.size() < kMaxLookups)
    needs.services.push_back({service_name(mention.prefix), ray_address});
}

Needs pod_needs(const Review& review) {
  Needs out;
  if (pod_gate(review)) return out;
  out.ns = review.ns;
  out.converted_services = true;
  const Pod& pod = review.pod;
  OwnNames own(pod);
  for (const Container& container : pod.containers) {
    for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
      MentionFinder finder(pod.texts[i].value);
      for (Mention mention; finder.next(mention);) {
        own.fill(container);
        if (!own.hides(pod.texts[i], mention.name))
          need(out, mention, in_ray_address(pod, container, i, mention.begin));
      }
    }
  }
  return out;
}

}  // namespace

Needs needs(const Review& review, const Policy& policy) {
  if (review.operation != "CREATE" || !review.subresource.empty() || !review.malformed.empty())
    return {};
  if (review.kind == ObjectKind::pod) return pod_needs(review);
  if (review.kind != ObjectKind::service) return {};
  Needs out;
  out.ns = review.ns;
  const Reason reason = judge_service(review.service, policy, std::nullopt);
  out.running_readers = reason == Reason::converted;
  out.selected_workers = reason == Reason::converted || reason == Reason::head_unclear;
  return out;
}

bool reads(const Pod& pod, std::string_view service) {
  if (!pod.service_links) return false;
  OwnNames own(pod);
  for (const Container& container : pod.containers) {
    for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
      MentionFinder finder(pod.texts[i].value);
      for (Mention mention; finder.next(mention);) {
        if (!names_service(mention.prefix, service)) continue;
        own.fill(container);
        if (!own.hides(pod.texts[i], mention.name)) return true;
      }
    }
  }
  return false;
}

namespace {

/// What `ray start` makes of a container.
enum class Start { none, head, worker };

/// What a container's command makes of the pod: `ray start` with `--head` or without.
Start ray_start(const Pod& pod, const Container& container) {
  Start found = Start::none;
  bool after_ray = false, started = false;  // for exec arrays: ["ray", "start", …]
  for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
    const Text& text = pod.texts[i];
    if (text.field != Field::command && text.field != Field::args) continue;
    const std::string_view value = text.value;
    if (value == "--head" && started) return Start::head;
    if (after_ray && value == "start") {
      started = true;
      found = Start::worker;
    }
    after_ray = value == "ray" || value.ends_with("/ray");
    for (std::size_t at = value.find("ray"); at != std::string_view::npos;
         at = value.find("ray", at + 3)) {
      std::size_t next = at + 3;
      while (next < value.size() && kBlank.find(value[next]) != std::string_view::npos) ++next;
      if (next == at + 3 || !value.substr(next).starts_with("start")) continue;
      // Anywhere behind it: a continued line, or a second `ray start` of the same script.
      if (value.find("--head", next) != std::string_view::npos) return Start::head;
      found = Start::worker;
      break;
    }
  }
  return found;
}

}  // namespace

bool is_worker(const Pod& pod) {
  bool worker = false;
  for (const Container& container : pod.containers) {
    const Start start = ray_start(pod, container);
    if (start == Start::head) return false;
    worker = worker || start == Start::worker;
  }
  if (worker) return true;
  // Labels seen on workers: facts, ray-variants.md section 3.
  constexpr std::string_view kKeys[] = {"ray.io/node-type",
                                        "component",
                                        "app",
                                        "app.kubernetes.io/component",
                                        "app.kubernetes.io/name",
                                        "role",
                                        "cluster.ray.io/component",
                                        "raycluster.component"};
  return std::ranges::any_of(pod.labels, [&](const auto& label) {
    return std::ranges::find(kKeys, label.first) != std::end(kKeys) &&
           (has_part(label.second, "worker") || has_part(label.second, "workers"));
  });
}

bool selects(const StringMap& selector, const Pod& pod) {
  return !selector.empty() && std::ranges::all_of(selector, [&](const auto& wanted) {
    return std::ranges::any_of(pod.labels, [&](const auto& label) {
      return label.first == wanted.first && label.second == wanted.second;
    });
  });
}

}  // namespace rayhook
