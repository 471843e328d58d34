// SPDX-License-Identifier: Apache-2.0
#include "token.hpp"

#include <algorithm>

namespace rayhook {

void Token::look(TimePoint now, bool at_once) {
  std::optional<std::string> text = file_.changed(now, at_once);
  if (!text) return;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' '))
    text->pop_back();
  // It goes into a header: anything else is no token.
  const auto odd = [](char c) { return c <= ' ' || c > '~'; };
  if (!text->empty() && std::ranges::none_of(*text, odd)) value_ = std::move(*text);
}

const std::string& Token::get(TimePoint now) {
  look(now, false);
  return value_;
}

bool Token::refused(TimePoint now) {
  const std::string before = value_;
  look(now, true);
  return value_ != before;
}

}  // namespace rayhook
