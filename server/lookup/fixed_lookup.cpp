// SPDX-License-Identifier: Apache-2.0
#include "fixed_lookup.hpp"

namespace rayhook {

Facts unknown_facts(const Needs& needs) {
  Facts out;
  for (const NeededService& service : needs.services) {
    ServiceFact fact;
    fact.name = service.name;
    out.services.push_back(std::move(fact));
  }
  return out;
}

bool NoLookup::try_now(const Needs& needs, const Review&, Facts& facts) {
  facts = unknown_facts(needs);
  return true;
}

Task<Facts> NoLookup::fulfil(const Needs& needs, const Review&, TimePoint) {
  co_return unknown_facts(needs);
}

bool FileLookup::try_now(const Needs& needs, const Review& review, Facts& facts) {
  facts = known_.facts(needs, review);
  return true;
}

Task<Facts> FileLookup::fulfil(const Needs& needs, const Review& review, TimePoint) {
  co_return known_.facts(needs, review);
}

}  // namespace rayhook
