// SPDX-License-Identifier: Apache-2.0
#include "yaml_emit.hpp"

#include "yaml_scalar.hpp"

namespace rayhook::yaml {
namespace {

using Json = nlohmann::ordered_json;

void append_blanks(std::string& out, int count) {
  out.append(static_cast<std::size_t>(count), ' ');
}

/// A literal block can say it: no odd first line, no characters that need an escape.
bool fits_literal(std::string_view value) {
  if (value.find('\n') == std::string_view::npos || value.front() == '\n' || value.front() == ' ' ||
      value.front() == '\t')
    return false;
  for (const char c : value)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') return false;
  return !has_special(value);
}

void append_literal(std::string& out, std::string_view value, int indent) {
  out += value.ends_with("\n\n") ? "|+\n" : value.ends_with('\n') ? "|\n" : "|-\n";
  if (value.ends_with('\n')) value.remove_suffix(1);
  for (;;) {
    const std::size_t eol = value.find('\n');
    const std::string_view line = value.substr(0, eol);
    if (!line.empty()) append_blanks(out, indent);
    out.append(line).push_back('\n');
    if (eol == std::string_view::npos) return;
    value.remove_prefix(eol + 1);
  }
}

/// A value behind `key:` or `-`, with what separates it from that, to the end of its last line.
void append_block_value(std::string& out, const Json& value, int indent, bool item) {
  if (value.is_object() && !value.empty()) {
    if (!item) {
      out += '\n';
      append_block_members(out, value, indent + 2);
      return;
    }
    std::string members;
    append_block_members(members, value, indent + 2);
    out += ' ';
    out.append(members, static_cast<std::size_t>(indent) + 2);
  } else if (value.is_array() && !value.empty()) {
    out += '\n';
    for (const Json& inner : value) append_block_item(out, inner, item ? indent + 2 : indent);
  } else if (value.is_string() && fits_literal(value.get_ref<const std::string&>())) {
    out += ' ';
    append_literal(out, value.get_ref<const std::string&>(), indent + 2);
  } else {
    out += ' ';
    append_flow(out, value, false);
    out += '\n';
  }
}

}  // namespace

void append_flow(std::string& out, const Json& value, bool quote_all) {
  bool first = true;
  const auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  if (value.is_object()) {
    out += '{';
    for (const auto& [name, inner] : value.get_ref<const Json::object_t&>()) {
      separate();
      append_scalar(out, name, quote_all);
      out += ": ";
      append_flow(out, inner, quote_all);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const Json& inner : value) {
      separate();
      append_flow(out, inner, quote_all);
    }
    out += ']';
  } else if (value.is_string()) {
    append_scalar(out, value.get_ref<const std::string&>(), quote_all);
  } else {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);  // a number or the like
  }
}

void append_block_members(std::string& out, const Json& object, int indent) {
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>())
    append_block_member(out, name, value, indent);
}

void append_block_member(std::string& out, std::string_view name, const Json& value, int indent) {
  append_blanks(out, indent);
  append_scalar(out, name, false);
  out += ':';
  append_block_value(out, value, indent, false);
}

void append_block_item(std::string& out, const Json& value, int indent) {
  append_blanks(out, indent);
  out += '-';
  append_block_value(out, value, indent, true);
}

}  // namespace rayhook::yaml
