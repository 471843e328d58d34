// SPDX-License-Identifier: Apache-2.0
#include "yaml_edit.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text_diff.hpp"
#include "yaml_emit.hpp"
#include "yaml_json.hpp"
#include "yaml_scalar.hpp"

namespace rayhook::yaml {
namespace {

using Json = nlohmann::ordered_json;

/// `[begin, end)` of the text becomes `with`.
struct Edit {
  std::size_t begin, end;
  std::string with;
};

bool blank(char c) { return c == ' ' || c == '\t'; }

/// Finds the edits that make a tree say what is wanted.
class Editor {
 public:
  /// `requote`: texts that change are written anew, in double quotes.
  Editor(std::string_view text, const Slice& slice, const Tree& tree, bool requote)
      : text_(text.substr(0, slice.end)), slice_(slice), tree_(tree), requote_(requote) {}

  /// Finds the edits of one document.
  void document(NodeId root, const Json& wanted) {
    const Node& node = tree_[root];
    json_ = node.style == Style::flow && node.first != kNoNode &&
            tree_[node.first].style == Style::double_quoted;
    visit(root, wanted);
  }

  /// The slice's text with the edits; nothing if some change cannot be made in place.
  [[nodiscard]] std::optional<std::string> result();

 private:
  void visit(NodeId id, const Json& wanted);
  void scalar(const Node& node, const Json& wanted);
  [[nodiscard]] bool change_within(const Node& node, const std::string& wanted);
  void null(const Node& node, const Json& wanted);
  void sequence(const Node& node, const Json& wanted);
  void insert_items(const Node& node, const Json& wanted, std::size_t count);
  void mapping(const Node& node, const Json& wanted);
  void insert_member(const Node& node, const std::string& name, const Json& value);
  [[nodiscard]] bool merged(const Node& mapping, const std::string& name, const Json& wanted) const;

  /// Where the line of `pos` begins.
  [[nodiscard]] std::size_t line_begin(std::size_t pos) const {
    const std::size_t eol = pos == 0 ? std::string_view::npos : text_.rfind('\n', pos - 1);
    return eol == std::string_view::npos || eol < slice_.begin ? slice_.begin : eol + 1;
  }
  /// The blanks before `pos`, if nothing else stands before it on its line.
  [[nodiscard]] std::optional<std::string_view> leading_blanks(std::size_t pos) const {
    const std::string_view before = text_.substr(line_begin(pos), pos - line_begin(pos));
    if (!std::ranges::all_of(before, blank)) return std::nullopt;
    return before;
  }
  /// What is inserted into this collection is to be written as JSON is.
  [[nodiscard]] bool quotes_all(const Node& node) const {
    const bool keys = node.kind == Kind::mapping && node.first != kNoNode;
    return keys ? tree_[node.first].style == Style::double_quoted : json_;
  }
  void put(std::size_t begin, std::size_t end, std::string with) {
    edits_.push_back({begin, end, std::move(with)});
  }

  std::string_view text_;
  const Slice& slice_;
  const Tree& tree_;
  bool requote_;
  bool json_ = false;  ///< the document at hand is JSON
  bool impossible_ = false;
  std::vector<Edit> edits_;
  std::unordered_map<NodeId, const Json*> anchored_;  ///< what anchored nodes are to say
};

void Editor::visit(NodeId id, const Json& wanted) {
  const Node& node = tree_[id];
  if (node.anchored) anchored_[id] = &wanted;
  switch (node.kind) {
    case Kind::alias: {
      const auto target = anchored_.find(node.target);
      if (target != anchored_.end() && same(*target->second, wanted)) return;
      std::string with;
      append_flow(with, wanted, json_);
      put(node.begin, node.end, std::move(with));
      return;
    }
    case Kind::null:
      return null(node, wanted);
    case Kind::scalar:
      return scalar(node, wanted);
    case Kind::sequence:
      return sequence(node, wanted);
    case Kind::mapping:
      return mapping(node, wanted);
  }
}

void Editor::null(const Node& node, const Json& wanted) {
  if (wanted.is_null()) return;
  if (node.outer != node.begin || (node.begin > 0 && blank(text_[node.begin - 1])) ||
      (node.in_flow && node.begin > 0 && text_[node.begin - 1] != ':')) {
    impossible_ = true;
    return;
  }
  std::string with = " ";
  append_flow(with, wanted, json_);
  put(node.begin, node.end, std::move(with));
}

void Editor::scalar(const Node& node, const Json& wanted) {
  const bool quoted = node.style != Style::plain || !node.tag.empty();
  if (quoted && wanted.is_string() && wanted.get_ref<const std::string&>() == node.value) return;
  if (!quoted && resolve(node.value) == wanted) return;
  if (quoted || resolve(node.value).is_string()) {
    if (!requote_ && wanted.is_string() &&
        change_within(node, wanted.get_ref<const std::string&>()))
      return;
  }
  std::string with;
  append_flow(with, wanted, json_ || wanted.is_string());
  if (node.end > node.begin && text_[node.end - 1] == '\n') with += '\n';
  put(node.begin, node.end, std::move(with));
}

/// A plain scalar may say this.
bool plain_may_say(const std::string& value) {
  return !value.empty() && resolve(value).is_string() && value.find(": ") == std::string::npos &&
         value.find(" #") == std::string::npos && value.find('\n') == std::string::npos &&
         !value.ends_with(':') && value.find_first_of("[]{},&*!|>%@`'\"#?-") != 0;
}

/// What is replaced are words that stand in the source as they are in the value, and in the same
/// order, whatever the quotes and line breaks between them. Where that is not so, the result does
/// not say what is wanted, which is found out when it is read again.
bool Editor::change_within(const Node& node, const std::string& wanted) {
  if (node.style == Style::plain && !plain_may_say(wanted)) return false;
  const std::string_view source = text_.substr(node.begin, node.end - node.begin);
  std::vector<Edit> found;
  std::size_t read = 0, at = 0;  // how far value and source have been walked, in step
  for (const DiffRange& range : diff_words(node.value, wanted)) {
    const std::string_view was = node.value.substr(range.a_begin, range.a_end - range.a_begin);
    const std::string_view now =
        std::string_view(wanted).substr(range.b_begin, range.b_end - range.b_begin);
    if (was.empty() || now.find('\n') != std::string_view::npos) return false;
    // The same word may stand in between without being replaced.
    const std::string_view between = node.value.substr(read, range.a_begin - read);
    for (std::size_t i = between.find(was); i != std::string_view::npos;
         i = between.find(was, i + was.size())) {
      at = source.find(was, at);
      if (at == std::string_view::npos) return false;
      at += was.size();
    }
    const std::size_t begin = source.find(was, at);
    if (begin == std::string_view::npos) return false;
    read = range.a_end;
    at = begin + was.size();
    std::string with;
    if (node.style == Style::double_quoted) {
      append_scalar(with, now, true);
      with = with.substr(1, with.size() - 2);
    } else if (node.style == Style::single_quoted) {
      for (const char c : now) with.append(c == '\'' ? 2 : 1, c);
    } else {
      with = now;
    }
    found.push_back({node.begin + begin, node.begin + begin + was.size(), std::move(with)});
  }
  std::ranges::move(found, std::back_inserter(edits_));
  return true;
}

void Editor::sequence(const Node& node, const Json& wanted) {
  if (!wanted.is_array() || wanted.size() < node.size) {
    impossible_ = true;
    return;
  }
  const std::size_t added = wanted.size() - node.size;  // they stand in front
  if (added > 0) insert_items(node, wanted, added);
  std::size_t index = added;
  for (NodeId item = node.first; item != kNoNode; item = tree_[item].next)
    visit(item, wanted[index++]);
}

void Editor::insert_items(const Node& node, const Json& wanted, std::size_t count) {
  std::string with;
  if (node.style == Style::flow) {
    const auto blanks =
        node.first != kNoNode ? leading_blanks(tree_[node.first].outer) : std::nullopt;
    const bool quote_all = node.first != kNoNode ? quotes_all(tree_[node.first]) : json_;
    for (std::size_t i = 0; i < count; ++i) {
      if (blanks) with.append("\n").append(*blanks);
      append_flow(with, wanted[i], quote_all);
      const bool more = i + 1 < count || node.first != kNoNode;
      if (more) with += blanks ? "," : ", ";
    }
    put(node.begin + 1, node.begin + 1, std::move(with));
    return;
  }
  // Behind the key's line, before comments that belong to the first item.
  if (!leading_blanks(node.begin)) {
    impossible_ = true;
    return;
  }
  std::size_t at = line_begin(node.begin);
  while (at > slice_.begin) {
    const std::size_t before = line_begin(at - 1);
    const std::size_t first = text_.find_first_not_of(" \t\r", before);
    if (text_[first] != '#' && text_[first] != '\n') break;
    at = before;
  }
  for (std::size_t i = 0; i < count; ++i) append_block_item(with, wanted[i], node.indent);
  put(at, at, std::move(with));
}

/// `<<` brings this member in with the right value.
bool Editor::merged(const Node& mapping, const std::string& name, const Json& wanted) const {
  const auto brings = [&](NodeId source) -> const Json* {
    const auto known =
        anchored_.find(tree_[source].kind == Kind::alias ? tree_[source].target : source);
    if (known == anchored_.end() || !known->second->is_object()) return nullptr;
    const auto found = known->second->find(name);
    return found == known->second->end() ? nullptr : &*found;
  };
  for (NodeId key = mapping.first; key != kNoNode; key = tree_[tree_[key].next].next) {
    if (!is_merge_key(tree_[key])) continue;
    const NodeId source = tree_[key].next;
    const bool list = tree_[source].kind == Kind::sequence;
    for (NodeId one = list ? tree_[source].first : source; one != kNoNode;
         one = list ? tree_[one].next : kNoNode)
      if (const Json* value = brings(one)) return same(*value, wanted);
  }
  return false;
}

void Editor::mapping(const Node& node, const Json& wanted) {
  if (!wanted.is_object()) {
    impossible_ = true;
    return;
  }
  const auto& members = wanted.get_ref<const Json::object_t&>();
  std::vector<bool> written(members.size(), false);
  std::size_t at = 0;  // members mostly come in the order of the text
  for (NodeId key = node.first; key != kNoNode; key = tree_[tree_[key].next].next) {
    if (is_merge_key(tree_[key])) continue;
    const auto name = key_text(tree_, key);
    std::size_t tries = 0;
    while (tries < members.size() && name &&
           members.begin()[static_cast<std::ptrdiff_t>(at)].first != *name) {
      at = (at + 1) % members.size();
      ++tries;
    }
    if (!name || tries == members.size()) {
      impossible_ = true;
      return;
    }
    written[at] = true;
    visit(tree_[key].next, members.begin()[static_cast<std::ptrdiff_t>(at)].second);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [name, value] = members.begin()[static_cast<std::ptrdiff_t>(i)];
    if (!written[i] && !merged(node, name, value)) insert_member(node, name, value);
  }
}

void Editor::insert_member(const Node& node, const std::string& name, const Json& value) {
  std::string with;
  if (node.style == Style::flow) {
    NodeId last_key = node.first, last = kNoNode;
    for (NodeId key = node.first; key != kNoNode; key = tree_[last].next) {
      last_key = key;
      last = tree_[key].next;
    }
    const bool quote_all = quotes_all(node);
    if (last != kNoNode) {
      const auto blanks = leading_blanks(tree_[last_key].outer);
      with = blanks ? ",\n" + std::string(*blanks) : ", ";
    }
    append_scalar(with, name, quote_all);
    with += ": ";
    append_flow(with, value, quote_all);
    const std::size_t at = last == kNoNode ? node.begin + 1 : tree_[last].end;
    put(at, at, std::move(with));
    return;
  }
  std::size_t at = node.end;
  if (at == 0 || text_[at - 1] != '\n') {
    const std::size_t eol = text_.find('\n', at);
    at = eol == std::string_view::npos ? text_.size() : eol + 1;
    if (eol == std::string_view::npos) with = "\n";
  }
  append_block_member(with, name, value, node.indent);
  put(at, at, std::move(with));
}

std::optional<std::string> Editor::result() {
  if (impossible_) return std::nullopt;
  std::ranges::stable_sort(edits_, {}, &Edit::begin);
  const std::string_view own = text_.substr(slice_.begin);
  const bool carriage_returns = own.find("\r\n") != std::string_view::npos;
  std::string out;
  std::size_t copied = slice_.begin;
  for (const Edit& edit : edits_) {
    if (edit.begin < copied) return std::nullopt;
    out.append(text_, copied, edit.begin - copied);
    if (carriage_returns) {
      for (const char c : edit.with) {
        if (c == '\n') out += '\r';
        out += c;
      }
    } else {
      out += edit.with;
    }
    copied = edit.end;
  }
  return out.append(text_, copied);
}

/// Reads the text again: does it say what is wanted?
bool says(const std::string& text, std::span<const Change> changes, const Limits& limits) {
  const Slice whole{0, static_cast<std::uint32_t>(text.size()), 1};
  Tree tree;
  Budget budget;
  const auto roots = parse(text, whole, limits, tree);
  if (!roots || roots->size() != changes.size()) return false;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto json = to_json(tree, (*roots)[i], limits.depth, budget);
    if (!json || !same(*json, *changes[i].wanted)) return false;
  }
  return true;
}

/// The documents written anew.
std::string written_anew(std::string_view own, const Tree& tree, std::span<const Change> changes,
                         bool as_json) {
  std::string out = own.starts_with("---") ? "---\n" : "";
  for (const Change& change : changes) {
    if (as_json || tree[change.root].style == Style::flow)
      out += escaped(change.wanted->dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
    else
      append_block_members(out, *change.wanted, 0);
  }
  return out;
}

bool has_comment(std::string_view text) {
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1))
    if (at == 0 || blank(text[at - 1]) || text[at - 1] == '\n') return true;
  return false;
}

}  // namespace

Edited edit(std::string_view text, const Slice& slice, const Tree& tree,
            std::span<const Change> changes, const Limits& limits) {
  for (const bool requote : {false, true}) {
    Editor editor(text, slice, tree, requote);
    for (const Change& change : changes)
      if (change.changed) editor.document(change.root, *change.wanted);
    auto out = editor.result();
    if (out && says(*out, changes, limits)) return {std::move(*out), false};
  }
  const std::string_view own = text.substr(slice.begin, slice.end - slice.begin);
  Edited out{written_anew(own, tree, changes, false), has_comment(own)};
  if (!says(out.text, changes, limits)) out.text = written_anew(own, tree, changes, true);
  return out;
}

}  // namespace rayhook::yaml
