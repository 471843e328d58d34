// SPDX-License-Identifier: Apache-2.0
#include "split_rule.hpp"

#include <algorithm>
#include <iterator>

#include "decision.hpp"
#include "own_names.hpp"
#include "variables.hpp"
#include "words.hpp"

namespace rayhook {
namespace {

/// `X_PORT` alone, which by itself asks for no Service (see `reads`), but names this one.
bool names_bare_port(const Pod& pod, std::string_view service) {
  const std::string name = variable_prefix(service) + "_PORT";
  OwnNames own(pod);
  for (const Container& container : pod.containers)
    for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
      if (!has_identifier(pod.texts[i].value, name)) continue;
      own.fill(container);
      if (!own.hides(pod.texts[i], name)) return true;
    }
  return false;
}

}  // namespace

Split split(const Review& pod, const Policy& policy, const std::vector<ServiceFact>& services) {
  if (pod.pod.finished || pod.pod.terminating) return Split::no;
  const auto lacks = [&](const auto& of_concern) {
    Facts facts;
    std::ranges::copy_if(services, std::back_inserter(facts.services), of_concern);
    return !facts.services.empty() && decide(pod, policy, facts).outcome == Outcome::patch;
  };
  if (!lacks([](const ServiceFact&) { return true; })) return Split::no;
  if (lacks([&](const ServiceFact& service) {
        return reads(pod.pod, service.name) || names_bare_port(pod.pod, service.name);
      }))
    return Split::named;
  // RFC 3339 in UTC (apimachinery pkg/apis/meta/v1/time.go): the order of texts is that of times.
  if (lacks([&](const ServiceFact& service) { return service.service->created < pod.pod.created; }))
    return Split::suspected;
  return Split::older;
}

}  // namespace rayhook
