// SPDX-License-Identifier: Apache-2.0
#include "yaml.hpp"

#include "yaml_json.hpp"
#include "yaml_tree.hpp"

namespace rayhook {

Result<nlohmann::ordered_json> read_yaml(std::string_view text) {
  constexpr std::size_t kMaxBytes = 4 * 1024 * 1024;
  if (text.size() > kMaxBytes) return fail(Errc::too_large, "line 1: over 4 MiB");
  const yaml::Limits limits;
  yaml::Tree tree;
  yaml::Budget budget;
  const yaml::Slice whole{0, static_cast<std::uint32_t>(text.size()), 1};
  const auto roots = yaml::parse(text, whole, limits, tree);
  if (!roots) return std::unexpected(roots.error());
  if (roots->empty()) return nullptr;
  if (roots->size() > 1)
    return fail(Errc::bad_manifest, "line " + std::to_string(tree[(*roots)[1]].line) +
                                        ": a second document where one is expected");
  return yaml::to_json(tree, roots->front(), limits.depth, budget);
}

}  // namespace rayhook
