// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

namespace rayhook {

/// True if `word` is one of the parts of `value` when that is split at `-`, `.`, `_` and `/`
/// (`ray-cluster-head` has the part `head`; `header` has not). Case does not matter in `value`.
[[nodiscard]] inline bool has_part(std::string_view value, std::string_view word) {
  const auto equal = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](char x, char y) {
      return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
    });
  };
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of("-._/"), value.size());
    if (equal(value.substr(0, end), word)) return true;
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return false;
}

/// True if the identifier `name` stands in `text`, whole.
[[nodiscard]] inline bool has_identifier(std::string_view text, std::string_view name) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + name.size())) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end])))
      return true;
  }
  return false;
}

}  // namespace rayhook
