// SPDX-License-Identifier: Apache-2.0
// YAML texts into trees, by libyaml's events.
#include <yaml.h>

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <utility>

#include "yaml_tree.hpp"

namespace rayhook::yaml {
namespace {

struct EndEvent {
  void operator()(yaml_event_t* event) const { yaml_event_delete(event); }
};
struct EndParser {
  void operator()(yaml_parser_t* parser) const { yaml_parser_delete(parser); }
};

std::string_view view(const yaml_char_t* text) {
  return text ? std::string_view(reinterpret_cast<const char*>(text)) : std::string_view{};
}

Style style_of(yaml_scalar_style_t style) {
  switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      return Style::single_quoted;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
      return Style::double_quoted;
    case YAML_LITERAL_SCALAR_STYLE:
      return Style::literal;
    case YAML_FOLDED_SCALAR_STYLE:
      return Style::folded;
    default:
      return Style::plain;
  }
}

/// Builds the tree of one slice.
class Reader {
 public:
  Reader(std::string_view text, const Slice& slice, const Limits& limits, Tree& tree)
      : text_(text.substr(0, slice.end)), slice_(slice), limits_(limits), tree_(tree) {
    find_characters();
  }

  Result<std::vector<NodeId>> read();

 private:
  struct Open {  // a collection whose end has not come
    NodeId id;
    NodeId last = kNoNode;
  };

  /// libyaml counts characters, we count bytes.
  void find_characters() {
    const std::string_view own = text_.substr(slice_.begin);
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    if (std::ranges::none_of(own, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
      return;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (!continues(own[i])) characters_.push_back(static_cast<std::uint32_t>(i));
  }
  [[nodiscard]] std::uint32_t place(const yaml_mark_t& mark) const {
    std::size_t at = mark.index;
    if (!characters_.empty())
      at = at < characters_.size() ? characters_[at] : text_.size() - slice_.begin;
    return static_cast<std::uint32_t>(std::min(slice_.begin + at, text_.size()));
  }

  /// Behind anchor, tag and the blanks after them, from `at` on.
  [[nodiscard]] std::uint32_t past_properties(std::uint32_t at) const {
    constexpr std::string_view kBlanks = " \t\r\n";
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
      at = static_cast<std::uint32_t>(std::min(text_.find_first_of(kBlanks, at), text_.size()));
      while (at < text_.size()) {
        if (text_[at] == '#')
          at = static_cast<std::uint32_t>(std::min(text_.find('\n', at), text_.size()));
        else if (kBlanks.find(text_[at]) == std::string_view::npos)
          break;
        else
          ++at;
      }
    }
    return at;
  }

  [[nodiscard]] std::int32_t column(std::uint32_t at) const {
    const std::size_t eol = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const std::size_t begin = eol == std::string_view::npos ? 0 : eol + 1;
    return static_cast<std::int32_t>(at - std::max<std::size_t>(begin, slice_.begin));
  }

  NodeId add(Kind kind, const yaml_event_t& event, const yaml_char_t* anchor,
             const yaml_char_t* tag);
  void add_scalar(const yaml_event_t& event);
  void add_alias(const yaml_event_t& event);
  void open(NodeId id, bool flow);
  void close(const yaml_event_t& event);
  [[nodiscard]] bool take(const yaml_event_t& event);

  /// What is mostly behind libyaml's words.
  [[nodiscard]] std::string_view hint(const yaml_parser_t& parser) const {
    const std::string_view problem = parser.problem ? parser.problem : "";
    if (parser.error == YAML_READER_ERROR && parser.problem_value == 0)
      return " (a NUL byte; is this a text file?)";
    if (parser.error == YAML_SCANNER_ERROR && problem.starts_with("found character that cannot")) {
      const std::size_t at = place(parser.problem_mark);
      return at < text_.size() && text_[at] == '\t' ? " (a tab; YAML indents with spaces)" : "";
    }
    return problem.starts_with("did not find expected") ? " (wrong indentation?)" : "";
  }

  std::unexpected<Error> wrong(std::size_t line, std::string what) const {
    return fail(Errc::bad_manifest,
                "line " + std::to_string(slice_.line + line) + ": " + std::move(what));
  }

  std::string_view text_;
  const Slice& slice_;
  const Limits& limits_;
  Tree& tree_;
  std::vector<std::uint32_t> characters_;
  std::vector<Open> open_;
  std::vector<NodeId> roots_;
  std::unordered_map<std::string, NodeId> anchors_;
  std::string problem_;
};

NodeId Reader::add(Kind kind, const yaml_event_t& event, const yaml_char_t* anchor,
                   const yaml_char_t* tag) {
  const auto id = static_cast<NodeId>(tree_.nodes.size());
  Node node;
  node.kind = kind;
  node.outer = place(event.start_mark);
  node.end = place(event.end_mark);
  node.begin = anchor || tag ? std::min(past_properties(node.outer), node.end) : node.outer;
  node.line = static_cast<std::uint32_t>(slice_.line + event.start_mark.line);
  node.anchored = anchor != nullptr;
  if (tag) node.tag = tree_.strings.emplace_back(view(tag));
  if (anchor) anchors_[std::string(view(anchor))] = id;
  node.in_flow = !open_.empty() && tree_.nodes[open_.back().id].style == Style::flow;
  tree_.nodes.push_back(node);
  if (open_.empty()) {
    roots_.push_back(id);
  } else {
    Open& parent = open_.back();
    (parent.last == kNoNode ? tree_.nodes[parent.id].first : tree_.nodes[parent.last].next) = id;
    parent.last = id;
    ++tree_.nodes[parent.id].size;
  }
  return id;
}

void Reader::add_scalar(const yaml_event_t& event) {
  const auto& scalar = event.data.scalar;
  const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
  const Style style = style_of(scalar.style);
  const bool null = style == Style::plain && value.empty();
  Node& node = tree_.nodes[add(null ? Kind::null : Kind::scalar, event, scalar.anchor, scalar.tag)];
  node.style = style;
  const std::string_view written = text_.substr(node.begin, node.end - node.begin);
  // Most scalars stand in the text as they are.
  node.value = written == value ? written : std::string_view(tree_.strings.emplace_back(value));
}

void Reader::add_alias(const yaml_event_t& event) {
  const std::string name(view(event.data.alias.anchor));
  const auto target = anchors_.find(name);
  if (target == anchors_.end()) {
    problem_ = "the alias *" + name + " has no anchor";
    return;
  }
  const NodeId known = target->second;
  tree_.nodes[add(Kind::alias, event, nullptr, nullptr)].target = known;
}

void Reader::open(NodeId id, bool flow) {
  Node& node = tree_.nodes[id];
  node.style = flow ? Style::flow : Style::block;
  // A block collection's event ends at its first token: see `close` for the real end.
  if (!flow) {
    node.begin = past_properties(node.outer);
    node.indent = column(node.begin);
  }
  open_.push_back({id});
  if (open_.size() > static_cast<std::size_t>(limits_.depth))
    problem_ = "nested deeper than " + std::to_string(limits_.depth) + " levels";
}

void Reader::close(const yaml_event_t& event) {
  Node& node = tree_.nodes[open_.back().id];
  // libyaml finds the end of a block collection where the next thing begins.
  const NodeId last = open_.back().last;
  if (node.style == Style::flow)
    node.end = place(event.end_mark);
  else
    node.end = last == kNoNode ? node.begin : tree_.nodes[last].end;
  open_.pop_back();
}

/// False after the end of the stream.
bool Reader::take(const yaml_event_t& event) {
  switch (event.type) {
    case YAML_SCALAR_EVENT:
      add_scalar(event);
      return true;
    case YAML_ALIAS_EVENT:
      add_alias(event);
      return true;
    case YAML_SEQUENCE_START_EVENT: {
      const auto& start = event.data.sequence_start;
      open(add(Kind::sequence, event, start.anchor, start.tag),
           start.style == YAML_FLOW_SEQUENCE_STYLE);
      return true;
    }
    case YAML_MAPPING_START_EVENT: {
      const auto& start = event.data.mapping_start;
      open(add(Kind::mapping, event, start.anchor, start.tag),
           start.style == YAML_FLOW_MAPPING_STYLE);
      return true;
    }
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      close(event);
      return true;
    case YAML_STREAM_END_EVENT:
      return false;
    default:
      return true;
  }
}

Result<std::vector<NodeId>> Reader::read() {
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return wrong(0, "out of memory");
  const std::unique_ptr<yaml_parser_t, EndParser> ends(&parser);
  const std::string_view own = text_.substr(slice_.begin);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(own.data()),
                               own.size());
  for (;;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&parser, &event)) {
      std::string what = parser.problem ? parser.problem : "this is no YAML";
      if (parser.context) what.append(" ").append(parser.context);
      what.append(hint(parser));
      // Bytes that are no text have a place only.
      const std::size_t bytes = std::min(parser.problem_offset, own.size());
      const auto line =
          parser.error == YAML_READER_ERROR
              ? static_cast<std::size_t>(std::ranges::count(own.substr(0, bytes), '\n'))
              : parser.problem_mark.line;
      return wrong(line, std::move(what));
    }
    const std::unique_ptr<yaml_event_t, EndEvent> event_ends(&event);
    const bool more = take(event);
    if (!problem_.empty()) return wrong(event.start_mark.line, problem_);
    if (tree_.nodes.size() > limits_.nodes)
      return wrong(event.start_mark.line, "too many values for one file; split it");
    if (more) continue;
    // A document without content is none.
    std::erase_if(roots_, [&](NodeId id) {
      const Node& root = tree_[id];
      return root.kind == Kind::null && root.begin == root.end && root.tag.empty();
    });
    return std::move(roots_);
  }
}

}  // namespace

std::vector<Slice> split(std::string_view text) {
  const auto marks = [&](std::size_t at, std::string_view mark) {
    return text.substr(at, 3) == mark &&
           (at + 3 >= text.size() ||
            std::string_view(" \t\r\n").find(text[at + 3]) != std::string_view::npos);
  };
  std::vector<Slice> out;
  Slice slice;
  bool directives = false;  // the slice holds `%YAML …` so far, which belongs to the `---` below
  bool empty = true;        // the slice holds comments at most so far
  bool json = false;        // its first line with anything else begins with `{`
  bool closed = false;      // the last line with anything on it ended with `}`
  const auto close = [&](std::size_t end) {
    slice.end = static_cast<std::uint32_t>(end);
    if (slice.end > slice.begin) out.push_back(slice);
  };
  const auto begin = [&](std::size_t at, std::uint32_t line) {
    slice = {static_cast<std::uint32_t>(at), 0, line};
    directives = json = closed = false;
    empty = true;
  };
  std::uint32_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t eol = text.find('\n', at);
    const std::size_t next = eol == std::string_view::npos ? text.size() : eol + 1;
    const std::string_view own = text.substr(at, next - at);
    const std::size_t last = own.find_last_not_of(" \t\r\n");
    if (marks(at, "---")) {
      if (!directives) {
        close(at);
        begin(at, line);
      }
      directives = false;
    } else if (marks(at, "...")) {
      close(at);
      begin(next, line + 1);
    } else if (json && closed && own.front() == '{') {
      // JSON objects in a row: inside of one there would be a comma.
      close(at);
      begin(at, line);
      empty = false;
      json = true;
    } else if (empty && last != std::string_view::npos && own.front() != '#') {
      directives = own.front() == '%';
      json = own.front() == '{';
      empty = false;
    }
    if (last != std::string_view::npos) closed = own[last] == '}';
    at = next;
  }
  close(text.size());
  return out;
}

Result<std::vector<NodeId>> parse(std::string_view text, const Slice& slice, const Limits& limits,
                                  Tree& tree) {
  return Reader(text, slice, limits, tree).read();
}

}  // namespace rayhook::yaml
