// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "lib/error.hpp"
#include "lib/facts.hpp"
#include "lib/manifest.hpp"

namespace rayhook {

/// Where objects of a manifest live that name no namespace.
enum class NoNamespace {
  own,  ///< in a namespace of their own, "": the verbs, where such a pod meets such a Service
  any,  ///< in every namespace that is asked about: `serve --lookup file:`, where reviews always
        ///< name one. A Service that does name the namespace wins over one of the same name.
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
  /// Reads the objects of `manifests`. Errors: Errc::internal only, should an object of the
  /// manifests not be JSON.
  [[nodiscard]] static Result<ManifestFacts> from(std::span<const Manifest> manifests,
                                                  NoNamespace no_namespace = NoNamespace::own);

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
