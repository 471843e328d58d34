// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "decision.hpp"
#include "error.hpp"

namespace rayhook {

/// JSON whose members keep the order in which they were written.
using OrderedJson = nlohmann::ordered_json;

/// Limits of a manifest file: beyond them it is an error (Errc::too_large), so that hostile YAML
/// (alias bombs, deep nesting) costs bounded time and memory.
inline constexpr std::size_t kMaxManifestBytes = 64 * 1024 * 1024;
inline constexpr int kMaxManifestDepth = 100;

/// One pod or Service inside an object of a manifest: a bare Pod, a Service, or one of the pod
/// templates of a workload (a RayCluster has several).
struct Subject {
  ObjectKind kind = ObjectKind::pod;
  std::string
      pointer;  ///< JSON pointer from the object to the pod template; "" for the object itself
  OrderedJson object;  ///< the Pod (metadata + spec, apiVersion and kind filled in) or the Service
  std::string
      controller_kind;  ///< what will own such pods ("ReplicaSet", "Job", …); "" for bare ones
};

/// One object of the input: a YAML document, or one item of a `List`.
struct ManifestObject {
  std::size_t document = 0;                 ///< 1-based number of the YAML document in its file
  std::size_t line = 0;                     ///< 1-based line where the document begins
  std::string api_version, kind, name, ns;  ///< as written; empty where absent or not a string
  std::vector<Subject> subjects;  ///< what Rayhook looks at; empty for kinds of no concern
};

/// A manifest file in memory: YAML (several documents, `List`s, anchors, JSON being YAML) that can
/// be patched and written out again. Values keep their types and scalars their quoting; a document
/// without a change comes out byte for byte. Not thread-safe.
class Manifest {
 public:
  /// Reads a whole file. `file` is only used in messages ("demo.yaml: document 3, line 17: …").
  [[nodiscard]] static Result<Manifest> parse(std::string_view text, std::string_view file);
  ~Manifest();
  Manifest(Manifest&&) noexcept;
  Manifest& operator=(Manifest&&) noexcept;

  [[nodiscard]] std::span<const ManifestObject> objects() const;

  /// Applies a decision's JSON Patch to one subject, whole or not at all. Where a pod template has
  /// no `metadata` it is made. Errors: Errc::internal (a patch that does not fit).
  [[nodiscard]] Result<void> apply(std::size_t object, std::size_t subject,
                                   std::span<const PatchOp> patch);

  /// The file as YAML, with what was applied. `lost_comments` gets the numbers of the documents
  /// that were changed and whose comments could not be kept.
  [[nodiscard]] std::string yaml(std::vector<std::size_t>& lost_comments) const;

  /// All objects in order (the items of Lists one by one), with what was applied.
  [[nodiscard]] std::vector<OrderedJson> json() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  explicit Manifest(std::unique_ptr<State> state);
};

}  // namespace rayhook
