// SPDX-License-Identifier: Apache-2.0
// The YAML reader: recursive descent over one slice. Internal; see yaml_tree.hpp.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "yaml_cursor.hpp"
#include "yaml_tree.hpp"

namespace rayhook::yaml {

/// Anchor and tag of a node, and where they begin.
struct Properties {
  std::string_view anchor, tag;
  std::size_t begin = 0;
  [[nodiscard]] bool any() const { return !anchor.empty() || !tag.empty(); }
};

/// What a block node follows.
enum class Place { root, item, value };

/// Reads one slice into a tree. After a failure (`cursor().failed()`) what it returns means
/// nothing.
class Parser {
 public:
  Parser(Cursor cursor, const Limits& limits, Tree& tree)
      : cursor_(std::move(cursor)), limits_(limits), tree_(tree) {}

  std::vector<NodeId> document();
  [[nodiscard]] const Cursor& cursor() const { return cursor_; }

 private:
  NodeId block_node(int indent, Place place);
  NodeId block_content(int indent, bool block_allowed, const Properties& outer,
                       const Properties& inner);
  NodeId block_mapping(int column, NodeId first_key, const Properties& outer, std::size_t begin);
  NodeId block_sequence(int column, const Properties& outer);
  NodeId mapping_key(int column);
  NodeId flow_node();
  [[nodiscard]] bool flow_colon(NodeId key) const;
  NodeId flow_sequence(const Properties& properties);
  NodeId flow_mapping(const Properties& properties);
  NodeId flow_value();

  NodeId alias();
  NodeId block_scalar(int indent, const Properties& properties);
  NodeId quoted(const Properties& properties, bool in_flow);
  NodeId plain(int indent, const Properties& properties, bool in_flow, bool one_line);
  [[nodiscard]] std::size_t plain_line_end(std::size_t pos, bool in_flow) const;

  Properties properties();
  NodeId node(Kind kind, std::size_t begin, const Properties& properties);
  NodeId empty(std::size_t at, const Properties& properties);
  NodeId scalar(Style style, std::size_t begin, std::size_t end, int indent, std::uint32_t line,
                const Properties& properties);
  void append(NodeId parent, NodeId& last, NodeId child);
  bool deeper() {
    if (++depth_ <= limits_.depth) return true;
    cursor_.fail("nested deeper than " + std::to_string(limits_.depth) + " levels");
    return false;
  }

  Cursor cursor_;
  const Limits& limits_;
  Tree& tree_;
  std::unordered_map<std::string_view, NodeId> anchors_;
  int depth_ = 0;
};

}  // namespace rayhook::yaml
