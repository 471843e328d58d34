// SPDX-License-Identifier: Apache-2.0
#include "service_index.hpp"

#include <algorithm>

#include "lib/service_rule.hpp"

namespace rayhook {
namespace {

/// Of labels and annotations only ours and KubeRay's are ever looked at; what `kubectl apply`
/// leaves there is as large as the Service.
void slim(Service& service) {
  std::erase_if(service.labels,
                [](const auto& pair) { return !pair.first.starts_with("ray.io/"); });
  std::erase_if(service.annotations,
                [](const auto& pair) { return !pair.first.starts_with("rayhook/"); });
  service.labels.shrink_to_fit();
  service.annotations.shrink_to_fit();
  service.resource_version.clear();
}

template <class Facts>
auto place_of(Facts& facts, std::string_view name) {
  return std::ranges::find(facts, name, &ServiceFact::name);
}

}  // namespace

void CaredServices::put(Service service) {
  slim(service);
  const std::string ns = service.ns;
  ServiceFact fact;
  fact.name = service.name;
  fact.known = Known::present;
  fact.service = std::make_shared<const Service>(std::move(service));
  if (!fact.service->headless() || care_for(fact, *policy_).care == Care::none) {
    remove(ns, fact.name);
    return;
  }
  std::vector<ServiceFact>& facts = by_namespace_[ns];
  if (const auto found = place_of(facts, fact.name); found != facts.end()) {
    *found = std::move(fact);
  } else {
    facts.push_back(std::move(fact));
    ++size_;
  }
}

void CaredServices::remove(std::string_view ns, std::string_view name) {
  const auto facts = by_namespace_.find(std::string(ns));
  if (facts == by_namespace_.end()) return;
  const auto found = place_of(facts->second, name);
  if (found == facts->second.end()) return;
  facts->second.erase(found);
  --size_;
  if (facts->second.empty()) by_namespace_.erase(facts);
}

const std::vector<ServiceFact>* CaredServices::of(std::string_view ns) const {
  const auto facts = by_namespace_.find(std::string(ns));
  return facts == by_namespace_.end() ? nullptr : &facts->second;
}

const ServiceFact* CaredServices::find(std::string_view ns, std::string_view name) const {
  const std::vector<ServiceFact>* facts = of(ns);
  if (!facts) return nullptr;
  const auto found = place_of(*facts, name);
  return found == facts->end() ? nullptr : &*found;
}

std::vector<std::string> CaredServices::converted_namespaces() const {
  std::vector<std::string> out;
  for (const auto& [ns, facts] : by_namespace_)
    if (std::ranges::any_of(facts, [](const ServiceFact& f) { return f.service->converted(); }))
      out.push_back(ns);
  return out;
}

void ServiceIndex::put(Service service) {
  const std::unique_lock lock(mutex_);
  services_.put(std::move(service));
}

void ServiceIndex::remove(std::string_view ns, std::string_view name) {
  const std::unique_lock lock(mutex_);
  services_.remove(ns, name);
}

void ServiceIndex::replace(CaredServices services) {
  const std::unique_lock lock(mutex_);
  services_ = std::move(services);
}

std::optional<ServiceFact> ServiceIndex::find(std::string_view ns, std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const ServiceFact* fact = services_.find(ns, name);
  return fact ? std::optional(*fact) : std::nullopt;
}

std::vector<ServiceFact> ServiceIndex::of(std::string_view ns) const {
  const std::shared_lock lock(mutex_);
  const std::vector<ServiceFact>* facts = services_.of(ns);
  return facts ? *facts : std::vector<ServiceFact>();
}

std::vector<std::string> ServiceIndex::converted_namespaces() const {
  const std::shared_lock lock(mutex_);
  return services_.converted_namespaces();
}

std::size_t ServiceIndex::size() const {
  const std::shared_lock lock(mutex_);
  return services_.size();
}

}  // namespace rayhook
