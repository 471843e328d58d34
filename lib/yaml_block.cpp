// SPDX-License-Identifier: Apache-2.0
// Block style: mappings and lists by indentation.
#include <utility>

#include "yaml_parser.hpp"

namespace rayhook::yaml {

NodeId Parser::block_node(int indent, Place place) {
  if (!deeper()) return 0;
  const std::size_t after = cursor_.pos();
  cursor_.skip();
  bool fresh = cursor_.first_on_line();
  const auto has_content = [&] {
    if (cursor_.at_end()) return false;
    if (!fresh || cursor_.column() > indent) return true;
    return place == Place::value && cursor_.column() == indent && cursor_.indicator('-');
  };
  NodeId out = 0;
  Properties outer, inner;
  if (!has_content()) {
    out = empty(after, {});
  } else {
    inner = properties();
    const std::size_t behind = cursor_.pos();
    const std::uint32_t line = cursor_.line();
    bool block_allowed = fresh || place == Place::item;
    if (inner.any()) cursor_.skip();
    if (cursor_.line() != line) {
      outer = std::exchange(inner, {});
      fresh = block_allowed = true;
      if (has_content()) inner = properties();
    }
    if (cursor_.failed())
      ;
    else if (outer.any() && !has_content())
      out = empty(behind, outer);
    else if (cursor_.at_end())
      out = empty(behind, inner);
    else
      out = block_content(indent, block_allowed, outer, inner);
  }
  --depth_;
  return out;
}

NodeId Parser::block_content(int indent, bool block_allowed, const Properties& outer,
                             const Properties& inner) {
  if (cursor_.first_on_line() && cursor_.tab_before()) {
    cursor_.fail("a tab is used as indentation; use spaces");
    return 0;
  }
  const Properties& own = inner.any() ? inner : outer;
  const char c = cursor_.peek();
  const std::size_t begin = inner.any() ? inner.begin : cursor_.pos();
  const int column = cursor_.column() - static_cast<int>(cursor_.pos() - begin);
  if (cursor_.indicator('-')) {
    if (!block_allowed || inner.any()) {
      cursor_.fail("a list item (`- `) cannot begin here; put it on a line of its own");
      return 0;
    }
    return block_sequence(column, outer);
  }
  if (cursor_.indicator('?') && block_allowed && !inner.any())
    return block_mapping(column, kNoNode, outer, begin);
  if (cursor_.indicator(':') && block_allowed) {
    cursor_.fail("a key is missing before `:`");
    return 0;
  }
  if (c == '|' || c == '>') return block_scalar(indent, own);

  // A scalar, an alias or a flow collection; if `: ` follows on its line, it is a key.
  const std::uint32_t line = cursor_.line();
  NodeId head = 0;
  if (c == '*' || c == '"' || c == '\'' || c == '[' || c == '{') {
    const std::size_t known = tree_.nodes.size();
    head = c == '*'   ? alias()
           : c == '[' ? flow_sequence(own)
           : c == '{' ? flow_mapping(own)
                      : quoted(own, false);
    if (c == '*' && inner.any()) cursor_.fail("an alias (*…) with an anchor or tag of its own");
    if (cursor_.failed()) return 0;
    const std::size_t end = cursor_.pos();
    cursor_.skip_blanks();
    if (!cursor_.indicator(':')) {
      cursor_.jump(end);
      if (outer.any() && inner.any()) cursor_.fail("two sets of properties on one value");
      return head;
    }
    if (c == '[' || c == '{' || cursor_.line() != line) {
      cursor_.fail_at(line, "this cannot be a key; keys are plain or quoted texts on one line");
      return 0;
    }
    if (outer.any() && !inner.any() && c != '*') {  // they are the mapping's, not the key's
      tree_.nodes[known].anchored = false;
      tree_.nodes[known].tag = {};
      tree_.nodes[known].outer = tree_.nodes[known].begin;
    }
  } else {
    const std::size_t end = plain_line_end(cursor_.pos(), false);
    const bool key = end < cursor_.text().size() && cursor_.text()[end] == ':';
    if (!key) {
      if (outer.any() && inner.any()) cursor_.fail("two sets of properties on one value");
      return plain(indent, own, false, false);
    }
    head = plain(indent, inner, false, true);
    cursor_.skip_blanks();
  }
  if (cursor_.failed()) return 0;
  if (!block_allowed) {
    cursor_.fail(
        "`: ` within a plain value; put the value in quotes, or the inner key on a line of its "
        "own");
    return 0;
  }
  return block_mapping(column, head, outer, begin);
}

NodeId Parser::mapping_key(int column) {
  if (cursor_.indicator('?')) {
    cursor_.advance();
    const NodeId key = block_node(column, Place::item);
    cursor_.skip();
    if (cursor_.failed()) return 0;
    if (tree_[key].kind == Kind::mapping || tree_[key].kind == Kind::sequence)
      cursor_.fail_at(tree_[key].line, "a key must be a text, not a list or mapping");
    else if (cursor_.column() != column || !cursor_.indicator(':'))
      cursor_.fail("a key (`? `) without its value (`: `)");
    return key;
  }
  const std::uint32_t line = cursor_.line();
  const Properties own = properties();
  const char c = cursor_.peek();
  NodeId key = 0;
  if (c == '*') {
    key = alias();
  } else if (c == '"' || c == '\'') {
    key = quoted(own, false);
  } else if (c == '[' || c == '{' || c == '|' || c == '>') {
    cursor_.fail("this cannot be a key; keys are plain or quoted texts on one line");
  } else {
    key = plain(column, own, false, true);
  }
  cursor_.skip_blanks();
  if (!cursor_.failed() && (!cursor_.indicator(':') || cursor_.line() != line))
    cursor_.fail_at(line, "expected `key: value`; is a `:` or a blank after it missing?");
  return key;
}

NodeId Parser::block_mapping(int column, NodeId first_key, const Properties& outer,
                             std::size_t begin) {
  const NodeId out = node(Kind::mapping, begin, outer);
  if (cursor_.failed()) return 0;
  tree_.nodes[out].style = Style::block;
  tree_.nodes[out].indent = column;
  if (first_key != kNoNode) tree_.nodes[out].line = tree_[first_key].line;
  NodeId last = kNoNode;
  for (NodeId key = first_key;;) {
    if (key == kNoNode) key = mapping_key(column);
    if (cursor_.failed()) return 0;
    append(out, last, key);
    cursor_.advance();  // the colon
    const NodeId value = block_node(column, Place::value);
    append(out, last, value);
    cursor_.skip();
    if (cursor_.at_end()) return out;
    if (!cursor_.first_on_line()) {
      cursor_.fail("unexpected text after a value");
      return 0;
    }
    if (cursor_.column() < column) return out;
    if (cursor_.column() > column || cursor_.tab_before() || cursor_.indicator('-')) {
      cursor_.fail("wrong indentation");
      return 0;
    }
    key = kNoNode;
  }
}

NodeId Parser::block_sequence(int column, const Properties& outer) {
  const NodeId out = node(Kind::sequence, cursor_.pos(), outer);
  if (cursor_.failed()) return 0;
  tree_.nodes[out].style = Style::block;
  tree_.nodes[out].indent = column;
  NodeId last = kNoNode;
  for (;;) {
    cursor_.advance();  // the dash
    const NodeId item = block_node(column, Place::item);
    append(out, last, item);
    cursor_.skip();
    if (cursor_.failed() || cursor_.at_end()) return out;
    if (!cursor_.first_on_line()) {
      cursor_.fail("unexpected text after a value");
      return 0;
    }
    if (cursor_.column() < column) return out;
    if (cursor_.column() > column || cursor_.tab_before()) {
      cursor_.fail("wrong indentation");
      return 0;
    }
    if (!cursor_.indicator('-')) return out;  // the mapping around it goes on
  }
}

}  // namespace rayhook::yaml
