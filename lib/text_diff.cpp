// SPDX-License-Identifier: Apache-2.0
#include "text_diff.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace rayhook {
namespace {

/// Beyond so many differing elements the search settles for the best way so far, and goes on there.
constexpr int kWindow = 300;

/// Myers' greedy search for the shortest edit script, from one place on.
class Search {
 public:
  Search(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) : a_(a), b_(b) {}

  /// Appends what differs up to the end, or to where the window ended; returns how far that is.
  std::pair<std::size_t, std::size_t> run(std::size_t a_from, std::size_t b_from,
                                          std::vector<DiffRange>& out) {
    a_from_ = a_from;
    b_from_ = b_from;
    rounds_.clear();
    const int n = static_cast<int>(std::min<std::size_t>(a_.size() - a_from, 1U << 30));
    const int m = static_cast<int>(std::min<std::size_t>(b_.size() - b_from, 1U << 30));
    for (int d = 0;; ++d) {
      std::vector<int>& round = rounds_.emplace_back(static_cast<std::size_t>(2 * d + 1), -1);
      int best_k = 0, best_sum = -1;
      for (int k = -d; k <= d; k += 2) {
        int x = d == 0 ? 0 : reach(d - 1, k, n, m);
        if (x < 0) continue;
        while (x < n && x - k < m && at_a(x) == at_b(x - k)) ++x;
        const int column = k + d;
        round[static_cast<std::size_t>(column)] = x;
        if (2 * x - k > best_sum) best_sum = 2 * x - k, best_k = k;
        if (x >= n && x - k >= m) return collect(d, k, out);
      }
      if (d >= kWindow) return collect(d, best_k, out);
    }
  }

 private:
  [[nodiscard]] std::uint32_t at_a(int x) const {
    return a_[a_from_ + static_cast<std::size_t>(x)];
  }
  [[nodiscard]] std::uint32_t at_b(int y) const {
    return b_[b_from_ + static_cast<std::size_t>(y)];
  }

  /// How far diagonal `k` was followed in round `d`; -1: not reached.
  [[nodiscard]] int followed(int d, int k) const {
    if (k < -d || k > d) return -1;
    const int column = k + d;
    return rounds_[static_cast<std::size_t>(d)][static_cast<std::size_t>(column)];
  }

  /// The furthest start on diagonal `k` after one more step from round `d`; -1: none.
  [[nodiscard]] int reach(int d, int k, int n, int m) const {
    const int down = followed(d, k + 1);  // an element of b is new
    const int right = followed(d, k - 1) < 0 ? -1 : followed(d, k - 1) + 1;  // one of a is gone
    int x = -1;
    if (down >= 0 && down - k <= m) x = down;
    if (right >= 0 && right <= n) x = std::max(x, right);
    return x;
  }

  std::pair<std::size_t, std::size_t> collect(int d, int k, std::vector<DiffRange>& out) const {
    const int end_x = followed(d, k), end_y = end_x - k;
    std::vector<DiffRange> steps;
    const int n = static_cast<int>(a_.size() - a_from_), m = static_cast<int>(b_.size() - b_from_);
    for (; d > 0; --d) {
      const int start = reach(d - 1, k, n, m);
      const int right = followed(d - 1, k - 1);
      const bool gone = right >= 0 && right + 1 == start;
      const int px = gone ? start - 1 : start;
      const int py = gone ? start - k : start - k - 1;
      const auto x = a_from_ + static_cast<std::size_t>(px),
                 y = b_from_ + static_cast<std::size_t>(py);
      steps.push_back({x, x + (gone ? 1 : 0), y, y + (gone ? 0 : 1)});
      k += gone ? -1 : 1;
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (!out.empty() && out.back().a_end == step->a_begin && out.back().b_end == step->b_begin) {
        out.back().a_end = step->a_end;
        out.back().b_end = step->b_end;
      } else {
        out.push_back(*step);
      }
    }
    return {a_from_ + static_cast<std::size_t>(end_x), b_from_ + static_cast<std::size_t>(end_y)};
  }

  std::span<const std::uint32_t> a_, b_;
  std::size_t a_from_ = 0, b_from_ = 0;
  std::vector<std::vector<int>> rounds_;
};

/// Gives equal pieces of text equal numbers.
class Numbers {
 public:
  std::uint32_t operator()(std::string_view piece) {
    return known_.emplace(piece, static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::unordered_map<std::string_view, std::uint32_t> known_;
};

struct Pieces {
  std::vector<std::uint32_t> numbers;
  std::vector<std::size_t> begins;  ///< and the end of the text
};

bool in_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Pieces words(std::string_view text, Numbers& numbers) {
  Pieces out;
  for (std::size_t pos = 0; pos < text.size();) {
    std::size_t end = pos + 1;
    if (in_identifier(text[pos]))
      while (end < text.size() && in_identifier(text[end])) ++end;
    else if (text[pos] == ' ')
      while (end < text.size() && text[end] == ' ') ++end;
    out.begins.push_back(pos);
    out.numbers.push_back(numbers(text.substr(pos, end - pos)));
    pos = end;
  }
  out.begins.push_back(text.size());
  return out;
}

Pieces lines(std::string_view text, Numbers& numbers) {
  Pieces out;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t eol = text.find('\n', pos);
    const std::size_t end = eol == std::string_view::npos ? text.size() : eol + 1;
    out.begins.push_back(pos);
    out.numbers.push_back(numbers(text.substr(pos, end - pos)));
    pos = end;
  }
  out.begins.push_back(text.size());
  return out;
}

}  // namespace

std::vector<DiffRange> diff(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::vector<DiffRange> out;
  Search search(a, b);
  std::size_t x = 0, y = 0;
  while (x < a.size() || y < b.size()) std::tie(x, y) = search.run(x, y, out);
  return out;
}

std::vector<DiffRange> diff_words(std::string_view a, std::string_view b) {
  Numbers numbers;
  const Pieces old_words = words(a, numbers), new_words = words(b, numbers);
  std::vector<DiffRange> out = diff(old_words.numbers, new_words.numbers);
  for (DiffRange& range : out)
    range = {old_words.begins[range.a_begin], old_words.begins[range.a_end],
             new_words.begins[range.b_begin], new_words.begins[range.b_end]};
  return out;
}

std::string unified_diff(std::string_view a, std::string_view b, std::string_view name_a,
                         std::string_view name_b, bool colour) {
  constexpr std::size_t kContext = 3;
  Numbers numbers;
  const Pieces before = lines(a, numbers), after = lines(b, numbers);
  const std::vector<DiffRange> ranges = diff(before.numbers, after.numbers);
  if (ranges.empty()) return {};
  std::string out;
  const auto put = [&](std::string_view escape, char mark, std::string_view line) {
    const bool whole = line.ends_with('\n');
    if (whole) line.remove_suffix(1);
    if (colour) out += escape;
    if (mark) out += mark;
    out += line;
    if (colour && !escape.empty()) out += "\x1b[0m";
    out += '\n';
    if (!whole && mark) out += "\\ No newline at end of file\n";
  };
  const auto line_of = [](std::string_view text, const Pieces& pieces, std::size_t index) {
    return text.substr(pieces.begins[index], pieces.begins[index + 1] - pieces.begins[index]);
  };
  put("\x1b[1m", 0, "--- " + std::string(name_a));
  put("\x1b[1m", 0, "+++ " + std::string(name_b));
  const std::size_t a_lines = before.numbers.size();
  for (std::size_t i = 0; i < ranges.size();) {
    std::size_t last = i;
    while (last + 1 < ranges.size() &&
           ranges[last + 1].a_begin - ranges[last].a_end <= 2 * kContext)
      ++last;
    const std::size_t lead = std::min(kContext, ranges[i].a_begin);
    const std::size_t tail = std::min(kContext, a_lines - ranges[last].a_end);
    const std::size_t a_from = ranges[i].a_begin - lead, a_to = ranges[last].a_end + tail;
    const std::size_t b_from = ranges[i].b_begin - lead, b_to = ranges[last].b_end + tail;
    const auto span = [](std::size_t from, std::size_t to) {
      return std::to_string(to > from ? from + 1 : from) + "," + std::to_string(to - from);
    };
    put("\x1b[36m", 0, "@@ -" + span(a_from, a_to) + " +" + span(b_from, b_to) + " @@");
    std::size_t at = a_from;
    for (; i <= last; ++i) {
      for (; at < ranges[i].a_begin; ++at) put("", ' ', line_of(a, before, at));
      for (; at < ranges[i].a_end; ++at) put("\x1b[31m", '-', line_of(a, before, at));
      for (std::size_t y = ranges[i].b_begin; y < ranges[i].b_end; ++y)
        put("\x1b[32m", '+', line_of(b, after, y));
    }
    for (; at < a_to; ++at) put("", ' ', line_of(a, before, at));
  }
  return out;
}

}  // namespace rayhook
