// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lookup.hpp"
#include "manifest_facts.hpp"

namespace rayhook {

/// `--lookup none`: everything is unknown. A Service is judged by its manifest alone.
class NoLookup final : public Lookup {
 public:
  bool try_now(const LookupRequest& request, Facts& facts) override;
  Task<Facts> fulfil(LookupRequest request) override;
};

/// `--lookup file:PATH`: what the manifests say, read once at start.
class FileLookup final : public Lookup {
 public:
  explicit FileLookup(ManifestFacts known) : known_(std::move(known)) {}
  bool try_now(const LookupRequest& request, Facts& facts) override;
  Task<Facts> fulfil(LookupRequest request) override;

 private:
  ManifestFacts known_;
};

}  // namespace rayhook
