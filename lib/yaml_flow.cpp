// SPDX-License-Identifier: Apache-2.0
// Flow style (`[…]`, `{…}`, so JSON too), scalars and aliases.
#include <algorithm>

#include "yaml_parser.hpp"

namespace rayhook::yaml {
namespace {

bool flow_indicator(char c) { return std::string_view(",[]{}").find(c) != std::string_view::npos; }

}  // namespace

NodeId Parser::flow_node() {
  if (!deeper()) return 0;
  const Properties own = properties();
  const std::size_t behind = cursor_.pos();
  if (own.any()) cursor_.skip();
  const char c = cursor_.peek();
  NodeId out = 0;
  if (cursor_.at_end())
    cursor_.fail("a `[` or `{` that is not closed");
  else if (c == ',' || c == ']' || c == '}' || cursor_.indicator(':'))
    out = empty(behind, own);
  else if (c == '[')
    out = flow_sequence(own);
  else if (c == '{')
    out = flow_mapping(own);
  else if (c == '*')
    out = alias();
  else if (c == '"' || c == '\'')
    out = quoted(own, true);
  else
    out = plain(-1, own, true, false);
  --depth_;
  return out;
}

/// A colon that separates key and value: behind a quoted key nothing need follow it.
bool Parser::flow_colon(NodeId key) const {
  if (cursor_.failed() || cursor_.peek() != ':') return false;
  const Node& before = tree_[key];
  return before.style != Style::plain || cursor_.separator(1) || flow_indicator(cursor_.peek(1));
}

NodeId Parser::flow_value() {
  cursor_.advance();  // the colon
  const std::size_t after = cursor_.pos();
  cursor_.skip();
  const char c = cursor_.peek();
  if (c == ',' || c == ']' || c == '}') return empty(after, {});
  return flow_node();
}

NodeId Parser::flow_sequence(const Properties& properties) {
  const NodeId out = node(Kind::sequence, cursor_.pos(), properties);
  const std::uint32_t line = cursor_.line();
  if (cursor_.failed()) return 0;
  tree_.nodes[out].style = Style::flow;
  tree_.nodes[out].indent = cursor_.column();
  cursor_.advance();
  NodeId last = kNoNode;
  for (;;) {
    cursor_.skip();
    if (cursor_.peek() == ']') break;
    if (cursor_.peek() == ',') cursor_.fail("a list item is missing before `,`");
    NodeId item = flow_node();
    cursor_.skip();
    if (flow_colon(item)) {  // [key: value] is a mapping of one member
      const NodeId pair = node(Kind::mapping, tree_[item].outer, {});
      if (cursor_.failed()) return 0;
      tree_.nodes[pair].style = Style::flow;
      NodeId inner = kNoNode;
      append(pair, inner, item);
      const NodeId value = flow_value();
      append(pair, inner, value);
      item = pair;
      cursor_.skip();
    }
    append(out, last, item);
    if (cursor_.peek() == ',')
      cursor_.advance();
    else if (cursor_.peek() != ']')
      cursor_.fail_at(cursor_.at_end() ? line : cursor_.line(), "expected `,` or `]` in a list");
    if (cursor_.failed()) return 0;
  }
  cursor_.advance();
  tree_.nodes[out].end = static_cast<std::uint32_t>(cursor_.pos());
  return out;
}

NodeId Parser::flow_mapping(const Properties& properties) {
  const NodeId out = node(Kind::mapping, cursor_.pos(), properties);
  const std::uint32_t line = cursor_.line();
  if (cursor_.failed()) return 0;
  tree_.nodes[out].style = Style::flow;
  tree_.nodes[out].indent = cursor_.column();
  cursor_.advance();
  NodeId last = kNoNode;
  for (;;) {
    cursor_.skip();
    if (cursor_.peek() == '}') break;
    if (cursor_.peek() == ',' || cursor_.indicator(':'))
      cursor_.fail("a key is missing in a mapping");
    const NodeId key = flow_node();
    cursor_.skip();
    if (cursor_.failed()) return 0;
    if (tree_[key].kind == Kind::mapping || tree_[key].kind == Kind::sequence) {
      // `{{ .Values.x }}` reads like this
      cursor_.fail_at(tree_[key].line,
                      "a mapping as a key; is this a template that was not rendered?");
      return 0;
    }
    append(out, last, key);
    const NodeId value = flow_colon(key) ? flow_value() : empty(tree_[key].end, {});
    append(out, last, value);
    cursor_.skip();
    if (cursor_.peek() == ',')
      cursor_.advance();
    else if (cursor_.peek() != '}')
      cursor_.fail_at(cursor_.at_end() ? line : cursor_.line(), "expected `,` or `}` in a mapping");
    if (cursor_.failed()) return 0;
  }
  cursor_.advance();
  tree_.nodes[out].end = static_cast<std::uint32_t>(cursor_.pos());
  return out;
}

NodeId Parser::alias() {
  const std::size_t begin = cursor_.pos();
  do cursor_.advance();
  while (!cursor_.separator(0) && !flow_indicator(cursor_.peek()));
  const auto name = cursor_.text().substr(begin + 1, cursor_.pos() - begin - 1);
  const auto found = anchors_.find(name);
  if (found == anchors_.end()) {
    cursor_.fail("the alias *" + std::string(name.substr(0, 60)) +
                 " stands for no anchor before it");
    return 0;
  }
  const NodeId out = node(Kind::alias, begin, {});
  if (cursor_.failed()) return 0;
  tree_.nodes[out].target = found->second;
  tree_.nodes[out].end = static_cast<std::uint32_t>(cursor_.pos());
  return out;
}

NodeId Parser::quoted(const Properties& properties, bool in_flow) {
  const std::size_t begin = cursor_.pos();
  const std::uint32_t line = cursor_.line();
  const char quote = cursor_.peek();
  const std::string_view text = cursor_.text();
  std::size_t end = begin + 1;
  for (;;) {
    end = quote == '"' ? text.find_first_of("\"\\", end) : text.find('\'', end);
    if (end >= text.size()) {
      cursor_.fail("a quote that is not closed");
      return 0;
    }
    const bool pair =
        quote == '"' ? text[end] == '\\' : end + 1 < text.size() && text[end + 1] == '\'';
    if (!pair) break;
    end += 2;
  }
  cursor_.pass(end + 1);
  const NodeId out = scalar(quote == '"' ? Style::double_quoted : Style::single_quoted, begin,
                            end + 1, 0, line, properties);
  tree_.nodes[out].in_flow = in_flow;
  return out;
}

/// Where a plain scalar that begins or goes on at `pos` ends on its line: at `: `, ` #`, the line
/// break, or in flow style at one of its indicators.
std::size_t Parser::plain_line_end(std::size_t pos, bool in_flow) const {
  const std::string_view text = cursor_.text();
  for (std::size_t at = pos; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') return at > pos && text[at - 1] == '\r' ? at - 1 : at;
    if (in_flow && flow_indicator(c)) return at;
    if (c == ':') {
      const char next = at + 1 < text.size() ? text[at + 1] : '\n';
      if (next == ' ' || next == '\t' || next == '\n' || next == '\r' ||
          (in_flow && flow_indicator(next)))
        return at;
    } else if (c == '#' && at > pos && (text[at - 1] == ' ' || text[at - 1] == '\t')) {
      return at;
    }
  }
  return text.size();
}

NodeId Parser::plain(int indent, const Properties& properties, bool in_flow, bool one_line) {
  const std::size_t begin = cursor_.pos();
  const std::uint32_t line = cursor_.line();
  const std::string_view text = cursor_.text();
  const char c = cursor_.peek();
  if (std::string_view(",[]{}#&*!|>%@`").find(c) != std::string_view::npos ||
      cursor_.indicator('-') || cursor_.indicator('?') || cursor_.indicator(':')) {
    cursor_.fail(std::string("a value cannot begin with `") + c + "`; put it in quotes");
    return 0;
  }
  const auto at_break = [&](std::size_t pos) {
    return pos < text.size() && (text[pos] == '\n' || text[pos] == '\r');
  };
  std::size_t stop = plain_line_end(begin, in_flow);
  std::size_t end = stop;
  const auto trim = [&](std::size_t from) {
    while (end > from && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
  };
  trim(begin);
  while (!one_line && at_break(stop)) {
    std::size_t line_begin = text.find('\n', stop) + 1;
    std::size_t next = line_begin;
    while (next < text.size() &&
           (text[next] == ' ' || text[next] == '\t' || text[next] == '\n' || text[next] == '\r')) {
      if (text[next] == '\n') line_begin = next + 1;
      ++next;
    }
    if (next >= text.size() || text[next] == '#') break;
    const std::size_t spaces = std::min(text.find_first_not_of(' ', line_begin), next) - line_begin;
    if (!in_flow && static_cast<int>(spaces) <= indent) break;
    if (in_flow && (flow_indicator(text[next]) || plain_line_end(next, true) == next)) break;
    stop = end = plain_line_end(next, in_flow);
    if (!in_flow && stop < text.size() && text[stop] == ':') {
      cursor_.pass(next);
      cursor_.fail("a `key: value` inside a value of several lines; is the indentation right?");
      return 0;
    }
    trim(next);
  }
  cursor_.pass(end);
  const NodeId out = scalar(Style::plain, begin, end, 0, line, properties);
  tree_.nodes[out].in_flow = in_flow;
  return out;
}

NodeId Parser::block_scalar(int indent, const Properties& properties) {
  const std::size_t begin = cursor_.pos();
  const std::uint32_t line = cursor_.line();
  const std::string_view text = cursor_.text();
  const Style style = cursor_.peek() == '|' ? Style::literal : Style::folded;
  cursor_.advance();
  int explicit_indent = 0;
  bool keep = false, chomps = false;
  for (; !cursor_.separator(0); cursor_.advance()) {
    const char c = cursor_.peek();
    if ((c == '+' || c == '-') && !chomps) {
      chomps = true;
      keep = c == '+';
    } else if (c >= '1' && c <= '9' && explicit_indent == 0) {
      explicit_indent = c - '0';
    } else {
      cursor_.fail("wrong letters after | or >; only -, + and one digit may stand there");
      return 0;
    }
  }
  cursor_.skip_blanks();
  if (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != '\r' &&
      cursor_.peek() != '#') {
    cursor_.fail("text behind | or >; the text begins on the next line");
    return 0;
  }
  std::size_t pos = std::min(text.find('\n', cursor_.pos()), text.size() - 1) + 1;
  std::size_t end = pos;
  const std::size_t least = static_cast<std::size_t>(std::max(indent + 1, 1));
  std::size_t width =
      explicit_indent ? static_cast<std::size_t>(std::max(indent, 0) + explicit_indent) : 0;
  std::size_t widest = 0;
  while (pos < text.size()) {
    const std::size_t from = std::min(text.find_first_not_of(' ', pos), text.size());
    const std::size_t eol = std::min(text.find('\n', from), text.size() - 1) + 1;
    const bool break_here = from < text.size() && (text[from] == '\n' || text[from] == '\r');
    const std::size_t spaces = from - pos;
    if (width == 0) widest = std::max(widest, spaces);
    if (width == 0 && !break_here) {
      width = std::max(widest, least);
    }
    if (break_here && (width == 0 || spaces <= width)) {
      if (keep) end = eol;
    } else if (from < text.size() && spaces >= width) {
      end = eol;
    } else {
      break;
    }
    pos = eol;
  }
  cursor_.pass(end);
  const NodeId out =
      scalar(style, begin, end, static_cast<int>(width ? width : std::max(widest, least)), line,
             properties);
  return out;
}

}  // namespace rayhook::yaml
