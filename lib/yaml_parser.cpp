// SPDX-License-Identifier: Apache-2.0
#include "yaml_parser.hpp"

#include <algorithm>

#include "yaml_scalar.hpp"

namespace rayhook::yaml {

NodeId Parser::node(Kind kind, std::size_t begin, const Properties& properties) {
  if (tree_.nodes.size() >= limits_.nodes) {
    cursor_.fail("more than " + std::to_string(limits_.nodes) + " values in one file; split it");
    return 0;
  }
  const NodeId id = static_cast<NodeId>(tree_.nodes.size());
  Node& made = tree_.nodes.emplace_back();
  made.kind = kind;
  made.begin = made.end = static_cast<std::uint32_t>(begin);
  made.outer = static_cast<std::uint32_t>(properties.any() ? properties.begin : begin);
  made.line = cursor_.line();
  made.tag = properties.tag;
  if (!properties.anchor.empty()) {
    made.anchored = true;
    anchors_[properties.anchor] = id;
  }
  return id;
}

/// A node that is not written.
NodeId Parser::empty(std::size_t at, const Properties& properties) {
  return node(Kind::null, at, properties);
}

NodeId Parser::scalar(Style style, std::size_t begin, std::size_t end, int indent,
                      std::uint32_t line, const Properties& properties) {
  const NodeId id = node(Kind::scalar, begin, properties);
  if (cursor_.failed()) return 0;
  Node& made = tree_.nodes[id];
  made.style = style;
  made.end = static_cast<std::uint32_t>(end);
  made.indent = indent;
  made.line = line;
  const std::string_view source = cursor_.text().substr(begin, end - begin);
  const bool quoted = style == Style::single_quoted || style == Style::double_quoted;
  const std::string_view inner = quoted ? source.substr(1, source.size() - 2) : source;
  if ((style == Style::plain || quoted) && inner.find_first_of("\n\\'") == std::string_view::npos) {
    made.value = inner;
    return id;
  }
  std::string what;
  auto value = decode(style, source, indent, what);
  if (!value) {
    cursor_.fail_at(line, std::move(what));
    return 0;
  }
  made.value = tree_.strings.emplace_back(std::move(*value));
  return id;
}

void Parser::append(NodeId parent, NodeId& last, NodeId child) {
  if (cursor_.failed()) return;
  Node& owner = tree_.nodes[parent];
  if (last == kNoNode)
    owner.first = child;
  else
    tree_.nodes[last].next = child;
  ++owner.size;
  owner.end = std::max(owner.end, tree_.nodes[child].end);
  last = child;
}

Properties Parser::properties() {
  Properties out;
  while (cursor_.peek() == '&' || cursor_.peek() == '!') {
    const std::size_t begin = cursor_.pos();
    const bool anchor = cursor_.peek() == '&';
    const bool flow_ends = cursor_.peek(1) != '<';
    while (!cursor_.separator(0) &&
           !(flow_ends && std::string_view(",[]{}").find(cursor_.peek()) != std::string_view::npos))
      cursor_.advance();
    const std::string_view word = cursor_.text().substr(begin, cursor_.pos() - begin);
    std::string_view& place = anchor ? out.anchor : out.tag;
    if (!place.empty() || (anchor && word.size() < 2)) {
      cursor_.fail(anchor ? "an anchor (&…) without a name, or two of them"
                          : "two tags (!…) on one value");
      return out;
    }
    if (!out.any()) out.begin = begin;
    place = anchor ? word.substr(1) : word;
    cursor_.skip_blanks();
  }
  return out;
}

namespace {

/// Slices may begin with directives: `%YAML` is passed over, others would change meanings.
void skip_directives(Cursor& cursor) {
  for (cursor.skip(); cursor.peek() == '%' && cursor.column() == 0; cursor.skip()) {
    if (cursor.text().substr(cursor.pos(), 5) == "%TAG ") cursor.fail("%TAG is not supported");
    cursor.pass(std::min(cursor.text().find('\n', cursor.pos()), cursor.text().size()));
  }
}

bool collection(const Node& node) {
  return node.kind == Kind::mapping || node.kind == Kind::sequence;
}

}  // namespace

std::vector<NodeId> Parser::document() {
  std::vector<NodeId> roots;
  if (cursor_.text().substr(cursor_.pos(), 3) == "---")
    cursor_.advance(3);
  else
    skip_directives(cursor_);
  for (;;) {
    const NodeId root = block_node(-1, Place::root);
    cursor_.skip();
    if (cursor_.failed()) return {};
    const Node& read = tree_[root];
    if (read.kind == Kind::null && read.begin == read.end) return roots;
    roots.push_back(root);
    if (cursor_.at_end()) return roots;
    const bool json = collection(read) && read.style == Style::flow;
    if (!json || (cursor_.peek() != '{' && cursor_.peek() != '[')) {
      cursor_.fail(collection(read) ? "wrong indentation" : "unexpected text after a value");
      return {};
    }
  }
}

std::vector<Slice> split(std::string_view text) {
  std::vector<Slice> out;
  const auto marks = [&](std::size_t pos, std::string_view mark) {
    if (text.substr(pos, 3) != mark) return false;
    return pos + 3 >= text.size() ||
           std::string_view(" \t\r\n").find(text[pos + 3]) != std::string_view::npos;
  };
  Slice slice;
  std::uint32_t line = 1;
  const auto close = [&](std::size_t end) {
    slice.end = static_cast<std::uint32_t>(end);
    if (slice.end > slice.begin) out.push_back(slice);
  };
  for (std::size_t pos = 0; pos < text.size(); ++line) {
    std::size_t next = text.find('\n', pos);
    next = next == std::string_view::npos ? text.size() : next + 1;
    if (marks(pos, "---")) {
      close(pos);
      slice = {static_cast<std::uint32_t>(pos), 0, line};
    } else if (marks(pos, "...")) {
      close(pos);
      slice = {static_cast<std::uint32_t>(next), 0, line + 1};
    }
    pos = next;
  }
  close(text.size());
  return out;
}

Result<std::vector<NodeId>> parse(std::string_view text, const Slice& slice, const Limits& limits,
                                  Tree& tree) {
  if (tree.nodes.empty()) tree.nodes.emplace_back();  // stands for whatever could not be read
  Parser parser(Cursor(text, slice.begin, slice.end, slice.line), limits, tree);
  std::vector<NodeId> roots = parser.document();
  if (parser.cursor().failed()) return fail(Errc::bad_manifest, parser.cursor().error());
  return roots;
}

Result<void> check_text(std::string_view text) {
  std::size_t pos = 0;
  const auto refuse = [&](std::string what) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(pos), '\n');
    return fail(Errc::bad_manifest, "line " + std::to_string(line) + ": " + std::move(what));
  };
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  while (pos < text.size()) {
    const unsigned c = byte(pos);
    if (c < 0x80) {
      const bool allowed =
          c >= 0x20 ? c != 0x7F : c == '\t' || c == '\n' || (c == '\r' && byte(pos + 1) == '\n');
      if (!allowed) {
        if (c == '\r') return refuse("a carriage return without a line feed");
        return refuse(c == 0 ? "a NUL byte; is this a text file?"
                             : "a control character (byte " + std::to_string(c) + ")");
      }
      ++pos;
      continue;
    }
    const unsigned size = c >= 0xF0 && c < 0xF5 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 0;
    std::uint32_t code = c & (0x7FU >> size);
    bool good = size != 0 && c < 0xF5;
    for (unsigned i = 1; i < size && good; ++i) {
      good = (byte(pos + i) & 0xC0) == 0x80;
      code = (code << 6) | (byte(pos + i) & 0x3F);
    }
    static constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!good || code < kLeast[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return refuse("invalid UTF-8");
    pos += size;
  }
  return {};
}

}  // namespace rayhook::yaml
