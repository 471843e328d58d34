// SPDX-License-Identifier: Apache-2.0
// Manifests as `mutate` reads them: what was not changed comes out byte for byte; what each object
// is made into is a manifest again, and needs nothing more.
#include "lib/decision.hpp"
#include "lib/manifest.hpp"
#include "support.hpp"

namespace {

using namespace rayhook;
using fuzz::must;

/// What Rayhook might set anywhere: an annotation, with the parents that are missing.
std::vector<PatchOp> some_patch(const OrderedJson& object) {
  if (!object.contains("metadata") || !object["metadata"].is_object()) return {};
  if (object["metadata"].contains("annotations") && object["metadata"]["annotations"].is_object())
    return {{PatchOp::Kind::add, "/metadata/annotations/a~1b", "\"x: y #z\""}};
  return {{PatchOp::Kind::add, "/metadata/annotations", R"({"a/b":"x: y #z"})"}};
}

/// Without the order of members. What was merged (`<<`) comes after an object's own members, and a
/// member of it that is changed becomes its own.
std::vector<nlohmann::json> meaning(const std::vector<OrderedJson>& objects) {
  std::vector<nlohmann::json> out;
  for (const OrderedJson& one : objects) out.push_back(nlohmann::json::parse(one.dump()));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  Result<Manifest> manifest = Manifest::parse(text, "f.yaml");
  if (!manifest) {
    must(!manifest.error().what.empty() && manifest.error().what.find('\n') == std::string::npos);
    return 0;
  }
  std::vector<std::size_t> lost;
  must(manifest->yaml(lost) == text && lost.empty());

  bool changed = false;
  for (std::size_t i = 0; i < manifest->objects().size(); ++i)
    for (std::size_t j = 0; j < manifest->objects()[i].subjects.size(); ++j) {
      const auto patch = some_patch(manifest->objects()[i].subjects[j].object);
      if (!patch.empty() && manifest->apply(i, j, patch)) changed = true;
    }
  if (!changed) return 0;
  const std::vector<OrderedJson> objects = manifest->json();
  const std::string written = manifest->yaml(lost);
  Result<Manifest> again = Manifest::parse(written, "g.yaml");
  must(again.has_value());
  // What is written means what was meant.
  must(again->json() == objects ||
       (text.find("<<") != std::string::npos && meaning(again->json()) == meaning(objects)));
  return 0;
}
