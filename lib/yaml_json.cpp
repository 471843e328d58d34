// SPDX-License-Identifier: Apache-2.0
#include "yaml_json.hpp"

#include <cmath>
#include <unordered_set>
#include <utility>

#include "patch.hpp"
#include "yaml_scalar.hpp"

namespace rayhook::yaml {
namespace {

using Json = nlohmann::ordered_json;

/// `tag:yaml.org,2002:str` (written `!!str`) → `str`; other tags as they are.
std::string_view short_tag(std::string_view tag) {
  constexpr std::string_view kYaml = "tag:yaml.org,2002:";
  return tag.starts_with(kYaml) ? tag.substr(kYaml.size()) : tag;
}

class Converter {
 public:
  Converter(const Tree& tree, int max_depth, Budget& budget)
      : tree_(tree), max_depth_(max_depth), budget_(budget) {}

  std::string error;

  Json value(NodeId id, int depth) {
    const Node& node = tree_[id];
    if (!error.empty()) return nullptr;
    if (depth > max_depth_)
      return wrong(node, "nested deeper than " + std::to_string(max_depth_) + " levels");
    if (budget_.values == 0 || node.value.size() > budget_.bytes)
      return wrong(node, "the file's aliases (*…) make it too large");
    --budget_.values;
    budget_.bytes -= node.value.size();
    switch (node.kind) {
      case Kind::null:
        return null(node);
      case Kind::scalar:
        return scalar(node);
      case Kind::alias:
        return value(node.target, depth + 1);
      case Kind::sequence:
        return sequence(node, depth);
      case Kind::mapping:
        return mapping(node, depth);
    }
    return nullptr;
  }

 private:
  Json wrong(const Node& node, std::string what) {
    if (error.empty()) error = "line " + std::to_string(node.line) + ": " + std::move(what);
    return nullptr;
  }

  Json null(const Node& node) {
    const std::string_view tag = short_tag(node.tag);
    if (tag.empty() || tag == "null") return nullptr;
    if (tag == "str" || tag == "!") return "";
    return wrong(node, "the tag " + shortened(node.tag) + " does not fit an empty value");
  }

  Json scalar(const Node& node) {
    const std::string_view tag = short_tag(node.tag);
    const bool typed = tag == "int" || tag == "float" || tag == "bool" || tag == "null";
    if (tag == "binary" || tag == "seq" || tag == "map" || tag == "set" || tag == "omap")
      return wrong(node, "the tag !!" + std::string(tag) + " is not supported here");
    if (!typed && (!tag.empty() || node.style != Style::plain)) return std::string(node.value);
    Json out = resolve(node.value);
    if (tag == "float" && out.is_number_integer()) out = out.get<double>();
    const bool fits = tag.empty() || (tag == "int" && out.is_number_integer()) ||
                      (tag == "float" && out.is_number_float()) ||
                      (tag == "bool" && out.is_boolean()) || (tag == "null" && out.is_null());
    if (!fits) return wrong(node, "the value does not fit its tag !!" + std::string(tag));
    if (out.is_number_float() && !std::isfinite(out.get<double>()))
      return wrong(node, "`" + std::string(node.value) + "` has no place in a Kubernetes object");
    return out;
  }

  Json sequence(const Node& node, int depth) {
    Json out = Json::array();
    auto& items = out.get_ref<Json::array_t&>();
    items.reserve(node.size);
    for (NodeId item = node.first; item != kNoNode && error.empty(); item = tree_[item].next)
      items.push_back(value(item, depth + 1));
    return out;
  }

  Json mapping(const Node& node, int depth) {
    Json out = Json::object();
    auto& members = out.get_ref<Json::object_t&>();
    members.reserve(node.size / 2);
    std::unordered_set<std::string> seen;  // for large ones only
    bool merges = false;
    for (NodeId key = node.first; key != kNoNode && error.empty();) {
      const NodeId member = tree_[key].next;
      if (is_merge_key(tree_[key])) {
        merges = true;
      } else {
        auto name = key_text(tree_, key);
        if (!name) return wrong(tree_[key], "a key that is no text (a template? render it first)");
        if (budget_.bytes < name->size())
          return wrong(node, "the file's aliases (*…) make it too large");
        budget_.bytes -= name->size();
        const bool there =
            node.size > 64 ? !seen.insert(*name).second : members.find(*name) != members.end();
        if (there)
          return wrong(tree_[key], "the key `" + shortened(*name) + "` stands there twice");
        members.emplace_back(std::move(*name), value(member, depth + 1));
      }
      key = tree_[member].next;
    }
    if (merges) merge(node, members, depth);
    return out;
  }

  /// Members that `<<` brings in; what is written in the mapping itself wins, then the first.
  void merge(const Node& node, Json::object_t& members, int depth) {
    std::unordered_set<std::string> names;
    for (const auto& [name, unused] : members) names.insert(name);
    const auto take = [&](NodeId source) {
      if (tree_[source].kind == Kind::alias) source = tree_[source].target;
      Json from = value(source, depth + 1);
      if (!from.is_object()) {
        wrong(tree_[source], "`<<` takes a mapping, or a list of mappings");
        return;
      }
      for (auto& [name, inner] : from.get_ref<Json::object_t&>())
        if (names.insert(name).second) members.emplace_back(name, std::move(inner));
    };
    for (NodeId key = node.first; key != kNoNode; key = tree_[tree_[key].next].next) {
      if (!is_merge_key(tree_[key])) continue;
      const NodeId source = tree_[key].next;
      if (tree_[source].kind != Kind::sequence) {
        take(source);
        continue;
      }
      for (NodeId item = tree_[source].first; item != kNoNode && error.empty();
           item = tree_[item].next)
        take(item);
    }
  }

  const Tree& tree_;
  int max_depth_;
  Budget& budget_;
};

}  // namespace

Result<nlohmann::ordered_json> to_json(const Tree& tree, NodeId root, int max_depth,
                                       Budget& budget) {
  Converter converter(tree, max_depth, budget);
  Json out = converter.value(root, 1);
  if (!converter.error.empty()) return fail(Errc::bad_manifest, std::move(converter.error));
  return out;
}

bool is_merge_key(const Node& key) {
  return key.kind == Kind::scalar && key.value == "<<" &&
         ((key.style == Style::plain && key.tag.empty()) || short_tag(key.tag) == "merge");
}

std::optional<std::string> key_text(const Tree& tree, NodeId key) {
  const Node* node = &tree[key];
  for (int hops = 0; node->kind == Kind::alias && hops < 100; ++hops) node = &tree[node->target];
  if (node->kind != Kind::scalar) return std::nullopt;
  if (node->style != Style::plain || !node->tag.empty()) return std::string(node->value);
  const Json value = resolve(node->value);
  if (value.is_null()) return std::nullopt;
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return value.dump();
  return std::string(node->value);
}

bool same(const Json& a, const Json& b) {
  if (a.is_object() && b.is_object()) {
    const auto& left = a.get_ref<const Json::object_t&>();
    const auto& right = b.get_ref<const Json::object_t&>();
    if (left.size() != right.size()) return false;
    // Mostly in the same order: look for each where the last one's neighbour is.
    std::size_t at = 0;
    for (const auto& [name, value] : left) {
      std::size_t tries = 0;
      while (tries < right.size() && right.begin()[static_cast<std::ptrdiff_t>(at)].first != name) {
        at = (at + 1) % right.size();
        ++tries;
      }
      if (tries == right.size() ||
          !same(value, right.begin()[static_cast<std::ptrdiff_t>(at)].second))
        return false;
      at = (at + 1) % right.size();
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i])) return false;
    return true;
  }
  return a == b;
}

}  // namespace rayhook::yaml
