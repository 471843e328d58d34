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

bool NoLookup::try_now(const LookupRequest& request, Facts& facts) {
  facts = unknown_facts(request.needs);
  return true;
}

Task<Facts> NoLookup::fulfil(LookupRequest request) { co_return unknown_facts(request.needs); }

bool FileLookup::try_now(const LookupRequest& request, Facts& facts) {
  facts = known_.facts(request.needs, request.review);
  return true;
}

Task<Facts> FileLookup::fulfil(LookupRequest request) {
  co_return known_.facts(request.needs, request.review);
}

}  // namespace rayhook
