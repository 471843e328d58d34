// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rayhook {

/// A stretch that differs: `[a_begin, a_end)` of the old became `[b_begin, b_end)` of the new.
struct DiffRange {
  std::size_t a_begin, a_end, b_begin, b_end;
};

/// What differs between two sequences, in order, the stretches between being equal. The shortest
/// answer where at most some hundred elements differ; for more, one that is near it. Time is at
/// most some hundred steps for each element, memory is bounded.
[[nodiscard]] std::vector<DiffRange> diff(std::span<const std::uint32_t> a,
                                          std::span<const std::uint32_t> b);

/// The same for two texts, in bytes: cut into identifiers, runs of blanks and single characters.
[[nodiscard]] std::vector<DiffRange> diff_words(std::string_view a, std::string_view b);

/// A unified diff with three lines of context; empty if the texts are equal. `colour`: with ANSI
/// escapes.
[[nodiscard]] std::string unified_diff(std::string_view a, std::string_view b,
                                       std::string_view name_a, std::string_view name_b,
                                       bool colour);

}  // namespace rayhook
