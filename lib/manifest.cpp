// SPDX-License-Identifier: Apache-2.0
#include "manifest.hpp"

#include <optional>
#include <utility>

#include "manifest_subjects.hpp"
#include "patch.hpp"
#include "yaml_edit.hpp"
#include "yaml_json.hpp"
#include "yaml_tree.hpp"

namespace rayhook {
namespace {

/// One root node of the file: a YAML document, or one of several JSON objects in a row.
struct Document {
  std::size_t slice = 0;
  yaml::NodeId root = 0;
  OrderedJson json;
  bool changed = false;
};

/// Where an object stands.
struct Place {
  std::size_t document = 0;
  std::string pointer;  ///< in the document; "" unless it is an item of a List
};

constexpr yaml::Limits kLimits{.depth = kMaxManifestDepth};

std::optional<std::vector<std::string>> pointer_tokens(std::string_view pointer) {
  std::vector<std::string> out;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return std::nullopt;
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    std::string& token = out.emplace_back();
    for (std::size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1'))
        token += pointer[++i] == '0' ? '~' : '/';
      else
        token += pointer[i];
    }
    pointer.remove_prefix(end);
  }
  return out;
}

OrderedJson* member_of(OrderedJson& object, std::string_view name) {
  return const_cast<OrderedJson*>(member(object, name));  // NOLINT: same object
}

std::optional<std::size_t> array_index(std::string_view token) {
  if (token.empty() || token.size() > 9 || (token.size() > 1 && token[0] == '0'))
    return std::nullopt;
  std::size_t out = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<std::size_t>(c - '0');
  }
  return out;
}

/// The value that a pointer's first `count` tokens lead to.
OrderedJson* walk(OrderedJson& root, std::span<const std::string> tokens) {
  OrderedJson* at = &root;
  for (const std::string& token : tokens) {
    if (at->is_array()) {
      const auto index = array_index(token);
      if (!index || *index >= at->size()) return nullptr;
      at = &(*at)[*index];
    } else {
      at = member_of(*at, token);
    }
    if (!at) return nullptr;
  }
  return at;
}

bool apply_one(OrderedJson& object, const PatchOp& op) {
  const auto tokens = pointer_tokens(op.path);
  OrderedJson value = OrderedJson::parse(op.value, nullptr, false);
  if (!tokens || tokens->empty() || value.is_discarded()) return false;
  const std::string& last = tokens->back();
  const auto above = std::span(*tokens).first(tokens->size() - 1);
  // A controller's pod always has metadata, where its template may have none.
  if (above.size() == 1 && above.front() == "metadata" && object.is_object()) {
    OrderedJson* metadata = member_of(object, "metadata");
    if (!metadata)
      object.get_ref<OrderedJson::object_t&>().emplace_back("metadata", OrderedJson::object());
    else if (metadata->is_null())
      *metadata = OrderedJson::object();
  }
  OrderedJson* parent = walk(object, above);
  if (!parent) return false;
  if (parent->is_object()) {
    OrderedJson* there = member_of(*parent, last);
    if (there)
      *there = std::move(value);
    else if (op.kind == PatchOp::Kind::add)
      parent->get_ref<OrderedJson::object_t&>().emplace_back(last, std::move(value));
    return there || op.kind == PatchOp::Kind::add;
  }
  if (!parent->is_array()) return false;
  const bool adds = op.kind == PatchOp::Kind::add;
  const auto index = last == "-" && adds ? parent->size() : array_index(last);
  if (!index || *index > parent->size() || (!adds && *index == parent->size())) return false;
  if (adds)
    parent->insert(parent->begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  else
    (*parent)[*index] = std::move(value);
  return true;
}

}  // namespace

struct Manifest::State {
  std::string file;
  std::string text;
  std::string prefix;  ///< a byte order mark
  std::vector<yaml::Slice> slices;
  yaml::Tree tree;
  std::vector<Document> documents;
  std::vector<ManifestObject> objects;
  std::vector<Place> places;

  Result<void> read();
  void add_objects(const OrderedJson& object, std::size_t document, const std::string& pointer,
                   std::string_view api_version, std::string_view kind, int depth);
  [[nodiscard]] std::string slice_text(std::size_t slice, std::size_t first, std::size_t last,
                                       std::vector<std::size_t>& lost_comments) const;
};

Result<void> Manifest::State::read() {
  yaml::Budget budget;
  slices = yaml::split(text);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    auto roots = yaml::parse(text, slices[i], kLimits, tree);
    const auto where = [&](std::string_view what) {
      return fail(Errc::bad_manifest, file + ": document " + std::to_string(documents.size() + 1) +
                                          ", " + std::string(what));
    };
    if (!roots) return where(roots.error().what);
    for (const yaml::NodeId root : *roots) {
      auto json = yaml::to_json(tree, root, kMaxManifestDepth, budget);
      if (!json) return where(json.error().what);
      if (!json->is_object())
        return where("line " + std::to_string(tree[root].line) +
                     ": expected a Kubernetes object (apiVersion, kind, metadata …)");
      Document& document = documents.emplace_back();
      document.slice = i;
      document.root = root;
      document.json = std::move(*json);
      add_objects(document.json, documents.size() - 1, "", "", "", 0);
    }
  }
  return {};
}

void Manifest::State::add_objects(const OrderedJson& object, std::size_t document,
                                  const std::string& pointer, std::string_view list_api_version,
                                  std::string_view list_kind, int depth) {
  std::string api_version = string_member(object, "apiVersion");
  std::string kind = string_member(object, "kind");
  if (kind.empty() && list_kind.size() > 4) {  // items of a PodList need not say what they are
    kind = list_kind.substr(0, list_kind.size() - 4);
    api_version = list_api_version;
  }
  const OrderedJson* items = kind.ends_with("List") ? member(object, "items") : nullptr;
  if (items && items->is_array() && depth < kMaxManifestDepth) {
    for (std::size_t i = 0; i < items->size(); ++i)
      add_objects((*items)[i], document, pointer + "/items/" + std::to_string(i), api_version, kind,
                  depth + 1);
    return;
  }
  ManifestObject& out = objects.emplace_back();
  places.push_back({document, pointer});
  out.document = document + 1;
  out.line = tree[documents[document].root].line;
  if (!object.is_object()) return;
  if (const OrderedJson* metadata = member(object, "metadata")) {
    out.name = string_member(*metadata, "name");
    if (out.name.empty()) out.name = string_member(*metadata, "generateName");
    out.ns = string_member(*metadata, "namespace");
  }
  out.subjects = subjects_of(object, api_version, kind);
  out.api_version = std::move(api_version);
  out.kind = std::move(kind);
}

Manifest::Manifest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Manifest::~Manifest() = default;
Manifest::Manifest(Manifest&&) noexcept = default;
Manifest& Manifest::operator=(Manifest&&) noexcept = default;

Result<Manifest> Manifest::parse(std::string_view text, std::string_view file) {
  auto state = std::make_unique<State>();
  state->file = file;
  if (text.starts_with("\xEF\xBB\xBF")) {
    state->prefix = text.substr(0, 3);
    text.remove_prefix(3);
  }
  const auto in_file = [&](const Error& error) {
    return fail(error.code, state->file + ": " + error.what);
  };
  if (text.size() > kMaxManifestBytes)
    return in_file({Errc::too_large,
                    "larger than " + std::to_string(kMaxManifestBytes >> 20) + " MiB; split it"});
  state->text = text;
  try {
    if (auto read = state->read(); !read) return std::unexpected(read.error());
  } catch (const std::exception& error) {
    return in_file({Errc::internal, error.what()});
  }
  return Manifest(std::move(state));
}

std::span<const ManifestObject> Manifest::objects() const { return state_->objects; }

Result<void> Manifest::apply(std::size_t object, std::size_t subject,
                             std::span<const PatchOp> patch) {
  if (patch.empty()) return {};
  const auto refuse = [&](std::string what) {
    return fail(Errc::internal, state_->file + ": " + std::move(what) + "; please report");
  };
  if (object >= state_->objects.size() || subject >= state_->objects[object].subjects.size())
    return refuse("a patch for an object that is not there");
  Subject& changed = state_->objects[object].subjects[subject];
  const Place& place = state_->places[object];
  Document& document = state_->documents[place.document];
  try {
    OrderedJson patched = changed.object;
    for (const PatchOp& op : patch)
      if (!apply_one(patched, op)) return refuse("a patch that does not apply at " + op.path);
    const auto tokens = pointer_tokens(place.pointer + changed.pointer);
    OrderedJson* target = tokens ? walk(document.json, *tokens) : nullptr;
    if (!target || !target->is_object()) return refuse("an object that is gone");
    for (const auto& [name, value] : patched.get_ref<const OrderedJson::object_t&>()) {
      if (name == "apiVersion" || name == "kind") continue;
      if (OrderedJson* there = member_of(*target, name))
        *there = value;
      else
        target->get_ref<OrderedJson::object_t&>().emplace_back(name, value);
    }
    changed.object = std::move(patched);
    document.changed = true;
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  return {};
}

/// The text of a slice whose documents are `first` … `last - 1`, with what was applied.
std::string Manifest::State::slice_text(std::size_t slice, std::size_t first, std::size_t last,
                                        std::vector<std::size_t>& lost_comments) const {
  std::vector<yaml::Change> changes;
  for (std::size_t i = first; i < last; ++i)
    changes.push_back({documents[i].root, &documents[i].json, documents[i].changed});
  auto edited = yaml::edit(text, slices[slice], tree, changes, kLimits);
  if (edited.lost_comments)
    for (std::size_t i = first; i < last; ++i)
      if (documents[i].changed) lost_comments.push_back(i + 1);
  return std::move(edited.text);
}

std::string Manifest::yaml(std::vector<std::size_t>& lost_comments) const {
  std::string out = state_->prefix;
  const auto& documents = state_->documents;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < documents.size();) {
    const std::size_t slice = documents[i].slice;
    std::size_t last = i;
    bool changed = false;
    for (; last < documents.size() && documents[last].slice == slice; ++last)
      changed |= documents[last].changed;
    if (changed) {
      const yaml::Slice& range = state_->slices[slice];
      out.append(state_->text, copied, range.begin - copied);
      out += state_->slice_text(slice, i, last, lost_comments);
      copied = range.end;
    }
    i = last;
  }
  out.append(state_->text, copied);
  return out;
}

std::vector<OrderedJson> Manifest::json() const {
  std::vector<OrderedJson> out;
  out.reserve(state_->places.size());
  for (const Place& place : state_->places) {
    OrderedJson& root = state_->documents[place.document].json;
    const auto tokens = pointer_tokens(place.pointer);
    const OrderedJson* found = tokens ? walk(root, *tokens) : nullptr;
    out.push_back(found ? *found : OrderedJson());
  }
  return out;
}

}  // namespace rayhook
