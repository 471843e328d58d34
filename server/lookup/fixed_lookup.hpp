// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lookup.hpp"
#include "manifest_facts.hpp"

namespace rayhook {

/// `--lookup none`: everything is unknown. A Service is judged by its manifest alone.
class NoLookup final : public Lookup {
 public:
  bool try_now(const Needs& needs, const Review& review, Facts& facts) override;
  Task<Facts> fulfil(const Needs& needs, const Review& review, TimePoint deadline) override;
};

/// `--lookup file:PATH`: what the manifests say, read once at start.
class FileLookup final : public Lookup {
 public:
  explicit FileLookup(ManifestFacts known) : known_(std::move(known)) {}
  bool try_now(const Needs& needs, const Review& review, Facts& facts) override;
  Task<Facts> fulfil(const Needs& needs, const Review& review, TimePoint deadline) override;

 private:
  ManifestFacts known_;
};

}  // namespace rayhook
