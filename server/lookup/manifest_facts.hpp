// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "lib/error.hpp"
#include "lib/facts.hpp"
#include "lib/manifest.hpp"

namespace rayhook {

/// What a manifest's objects stand for.
enum class ManifestsOf {
  creation,  ///< about to be created: `mutate`, `explain`. A Service's uid says nothing: the API
             ///< server takes it off (kubernetes registry/rest/create.go). What names no namespace
             ///< is in one of its own, "", where such a pod meets such a Service.
  cluster,  ///< there already: `serve --lookup file:`, `review --services`. What names no namespace
            ///< is in every one that is asked about, as reviews always name one; a Service that
            ///< does name it wins over one of the same name.
};

/// The Facts that follow from a set of manifests: all their Services are known, whatever is not
/// among them is *absent*, and no pod is running. A Service whose selector matches a worker among
/// the manifests' pods and pod templates of its namespace *matches workers*. A Service in the
/// input that cannot be read is *unknown*; pods that cannot be read are passed over.
///
/// Immutable once made, cheap to copy (shared), and safe to use from several threads at once.
/// Owns everything: the manifests need not outlive it.
class ManifestFacts {
 public:
  /// Reads the objects of `manifests`. Errors: Errc::bad_manifest where a Service stands twice and
  /// not alike, as its pods could be told one thing and it another; Errc::internal should an object
  /// of the manifests not be JSON.
  [[nodiscard]] static Result<ManifestFacts> from(std::span<const Manifest> manifests,
                                                  ManifestsOf of = ManifestsOf::creation);

  /// What is known, as far as `needs` asks. For a pod: all Services of the namespace (`decide`
  /// judges which of them are converted) and, as *absent*, those that are mentioned but not there.
  [[nodiscard]] Facts facts(const Needs& needs, const Review& review) const;

  /// Services that were read, for a log line.
  [[nodiscard]] std::size_t service_count() const;

 private:
  struct State;
  explicit ManifestFacts(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace rayhook
