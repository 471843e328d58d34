// SPDX-License-Identifier: Apache-2.0
#include "manifest_facts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rayhook {
namespace {

std::unexpected<Error> twice(const ManifestObject& object) {
  const std::string name = object.ns.empty() ? object.name : object.ns + "/" + object.name;
  return fail(Errc::bad_manifest, "service/" + name +
                                      " stands twice in the input, and not alike; which one do its "
                                      "pods belong to? Give one at a time");
}

/// A worker pod, as far as selectors look at it.
struct Worker {
  std::string ns;
  std::vector<std::pair<std::string, std::string>> labels;
};

std::string label_key(std::string_view key, std::string_view value) {
  std::string out;
  out.reserve(key.size() + value.size() + 1);
  out.append(key).push_back('\0');
  out.append(value);
  return out;
}

/// All workers, found by one of their labels, so that many Services beside many pods stay cheap.
class Workers {
 public:
  void add(std::string_view ns, const Pod& pod) {
    Worker worker{std::string(ns), {}};
    for (const auto& [key, value] : pod.labels) {
      by_label_[label_key(key, value)].push_back(workers_.size());
      worker.labels.emplace_back(key, value);
    }
    workers_.push_back(std::move(worker));
  }

  /// True if the selector matches one of them in a namespace for which `near(ns)` holds.
  template <class Near>
  [[nodiscard]] bool selected(const StringMap& selector, Near&& near) const {
    const std::vector<std::size_t>* fewest = nullptr;
    for (const auto& [key, value] : selector) {
      const auto found = by_label_.find(label_key(key, value));
      if (found == by_label_.end()) return false;
      if (!fewest || found->second.size() < fewest->size()) fewest = &found->second;
    }
    return fewest && std::ranges::any_of(*fewest, [&](std::size_t index) {
             const Worker& worker = workers_[index];
             if (!near(worker.ns)) return false;
             Pod pod;  // only its labels count
             pod.labels.assign(worker.labels.begin(), worker.labels.end());
             return selects(selector, pod);
           });
  }

 private:
  std::vector<Worker> workers_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_label_;
};

}  // namespace

struct ManifestFacts::State {
  using ByName = std::map<std::string, ServiceFact, std::less<>>;

  ManifestsOf of = ManifestsOf::creation;
  std::size_t services = 0;
  std::map<std::string, ByName, std::less<>> by_namespace;
  Workers workers;

  [[nodiscard]] bool near(std::string_view a, std::string_view b) const {
    return a == b || (of == ManifestsOf::cluster && (a.empty() || b.empty()));
  }

  [[nodiscard]] bool matches_workers(const Service& service, std::string_view ns) const {
    return workers.selected(service.selector,
                            [&](std::string_view other) { return near(ns, other); });
  }

  void add_service(const ManifestObject& object, const std::string& json) {
    Result<Service> read = parse_service(json);
    ServiceFact fact;
    fact.name = object.name;
    if (read) {
      if (of == ManifestsOf::creation) read->uid.clear();
      fact.known = Known::present;
      fact.service = std::make_shared<const Service>(std::move(*read));
      ++services;
    }
    if (!fact.name.empty()) by_namespace[object.ns][fact.name] = std::move(fact);
  }

  [[nodiscard]] const ByName* services_of(std::string_view ns) const {
    const auto found = by_namespace.find(ns);
    return found == by_namespace.end() ? nullptr : &found->second;
  }
};

ManifestFacts::ManifestFacts(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<ManifestFacts> ManifestFacts::from(std::span<const Manifest> manifests, ManifestsOf of) {
  auto state = std::make_shared<State>();
  state->of = of;
  std::map<std::pair<std::string, std::string>, std::string> seen;
  ReviewReader reader;
  try {
    for (const Manifest& manifest : manifests) {
      for (const ManifestObject& object : manifest.objects()) {
        for (const Subject& subject : object.subjects) {
          std::string json =
              subject.object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
          if (subject.kind == ObjectKind::service) {
            const auto [first, fresh] = seen.try_emplace({object.ns, object.name}, json);
            if (!fresh && !object.name.empty() && first->second != json) return twice(object);
            state->add_service(object, json);
          } else if (subject.kind == ObjectKind::pod) {
            const std::size_t size = json.size();
            json.resize(size + kPadding);
            const auto review = reader.parse_pod(std::string_view(json).substr(0, size));
            if (review && (*review)->malformed.empty() && is_worker((*review)->pod))
              state->workers.add(object.ns, (*review)->pod);
          }
        }
      }
    }
  } catch (const std::exception& error) {
    return fail(Errc::internal, std::string("a manifest's object cannot be read: ") + error.what());
  }
  for (auto& [ns, services] : state->by_namespace)
    for (auto& [name, fact] : services)
      if (fact.service) fact.matches_workers = state->matches_workers(*fact.service, ns);
  return ManifestFacts(std::move(state));
}

Facts ManifestFacts::facts(const Needs& needs, const Review& review) const {
  Facts out;
  const State& state = *state_;
  if (needs.selected_workers && review.kind == ObjectKind::service)
    out.matches_workers = state.matches_workers(review.service, needs.ns);
  const State::ByName* named = state.services_of(needs.ns);
  const State::ByName* shared =
      state.of == ManifestsOf::cluster && !needs.ns.empty() ? state.services_of("") : nullptr;
  const auto known = [&](std::string_view name) -> const ServiceFact* {
    for (const State::ByName* services : {named, shared}) {
      if (!services) continue;
      if (const auto found = services->find(name); found != services->end()) return &found->second;
    }
    return nullptr;
  };
  if (needs.converted_services) {
    if (named)
      for (const auto& [name, fact] : *named) out.services.push_back(fact);
    if (shared)
      for (const auto& [name, fact] : *shared)
        if (!named || !named->contains(name)) out.services.push_back(fact);
  }
  for (const NeededService& service : needs.services) {
    const ServiceFact* fact = known(service.name);
    if (!fact) {
      ServiceFact absent;
      absent.name = service.name;
      absent.known = Known::absent;
      out.services.push_back(std::move(absent));
    } else if (!needs.converted_services) {
      out.services.push_back(*fact);
    }
  }
  return out;
}

std::size_t ManifestFacts::service_count() const { return state_->services; }

}  // namespace rayhook
