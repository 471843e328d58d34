// SPDX-License-Identifier: Apache-2.0
// YAML as it stands in a file: each node with the place where it was written, so that a manifest
// can be changed without touching anything else in it. Read by libyaml (why: docs/decisions).
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "error.hpp"

namespace rayhook::yaml {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();

enum class Kind : std::uint8_t { null, scalar, sequence, mapping, alias };
enum class Style : std::uint8_t {
  plain,
  single_quoted,
  double_quoted,
  literal,
  folded,
  flow,
  block
};

/// One node. `begin` and `end` are places in the text, without the properties (anchor, tag).
struct Node {
  Kind kind = Kind::null;
  Style style = Style::plain;
  bool in_flow = false;              ///< stands inside `[…]` or `{…}`
  std::int32_t indent = 0;           ///< column of a collection; of a block scalar's lines
  std::uint32_t begin = 0, end = 0;  ///< a null that is not written: an empty range
  std::uint32_t outer = 0;           ///< where its properties begin, else `begin`
  std::uint32_t line = 0;            ///< 1-based, in the file
  std::uint32_t size = 0;            ///< number of children; a mapping has two for each member
  NodeId first = kNoNode;            ///< first child: items, or key, value, key, value …
  NodeId next = kNoNode;             ///< next sibling
  NodeId target = kNoNode;           ///< what an alias stands for
  bool anchored = false;
  std::string_view value;  ///< decoded text of a scalar
  std::string_view tag;    ///< as written; empty: none
};

/// The nodes of a file's documents. Values are views into the text or into `strings`.
struct Tree {
  std::vector<Node> nodes;
  std::deque<std::string> strings;
  [[nodiscard]] const Node& operator[](NodeId id) const { return nodes[id]; }
};

/// Bounds for hostile input.
struct Limits {
  int depth = 100;                ///< of nesting
  std::size_t nodes = 4'000'000;  ///< in one tree
};

/// A document: a range of the text, from its `---` (if it has one) to the next separator.
struct Slice {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t line = 1;  ///< 1-based line of `begin`
};

/// Cuts a stream at its `---` and `...` lines. Slices without content may be among them.
[[nodiscard]] std::vector<Slice> split(std::string_view text);

/// Reads one slice, and adds its nodes to the tree. The root, or none in an empty document. Errors
/// say `line N: …`. Time is linear in the slice. The text is at most 4 GiB, and outlives the tree.
[[nodiscard]] Result<std::vector<NodeId>> parse(std::string_view text, const Slice& slice,
                                                const Limits& limits, Tree& tree);

}  // namespace rayhook::yaml
