// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <string_view>

#include "lib/review.hpp"

namespace rayhook::fuzz {

/// What must hold for every input; where it does not, libFuzzer keeps the input.
inline void must(bool holds, std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u does not hold\n", where.file_name(), where.line());
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A text with the padding that ReviewReader asks for, and not a byte more.
class Padded {
 public:
  explicit Padded(std::string_view text) : text_(text), size_(text.size()) {
    text_.resize(size_ + kPadding);
  }
  [[nodiscard]] std::string_view view() const { return std::string_view(text_).substr(0, size_); }

 private:
  std::string text_;
  std::size_t size_;
};

}  // namespace rayhook::fuzz
