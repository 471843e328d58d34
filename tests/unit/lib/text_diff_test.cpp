// SPDX-License-Identifier: Apache-2.0
#include "lib/text_diff.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace rayhook {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// Applies the answer to `a`; checks that it is in order and that what it leaves out is equal.
Numbers rebuilt(const Numbers& a, const Numbers& b) {
  Numbers out;
  std::size_t at_a = 0, at_b = 0;
  for (const DiffRange& range : diff(a, b)) {
    EXPECT_GE(range.a_begin, at_a);
    EXPECT_EQ(range.a_begin - at_a, range.b_begin - at_b);
    for (std::size_t i = at_a; i < range.a_begin; ++i) out.push_back(a[i]);
    for (std::size_t i = range.b_begin; i < range.b_end; ++i) out.push_back(b[i]);
    at_a = range.a_end;
    at_b = range.b_end;
  }
  for (std::size_t i = at_a; i < a.size(); ++i) out.push_back(a[i]);
  return out;
}

TEST(TextDiff, RebuildsTheNewFromTheOld) {
  std::mt19937 engine(7);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 2000; ++round) {
    Numbers a(random() % 30), b;
    for (auto& value : a) value = random() % 5;
    for (const auto value : a) {
      if (random() % 4 == 0) b.push_back(random() % 5);
      if (random() % 4 != 0) b.push_back(value);
    }
    ASSERT_EQ(rebuilt(a, b), b);
  }
}

TEST(TextDiff, ManyDifferencesStayCheap) {
  Numbers a(200'000), b;
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint32_t>(i % 1000);
    b.push_back(i % 3 == 0 ? 5000 : a[i]);
  }
  EXPECT_EQ(rebuilt(a, b), b);
  EXPECT_EQ(rebuilt(a, {}), Numbers{});
  EXPECT_EQ(rebuilt({}, a), a);
}

TEST(TextDiff, WordsKeepTheirPlaces) {
  const std::string a = "nc $HOST $PORT; ray --address=$HOST:$PORT",
                    b = "nc head 1; ray --address=head:1";
  std::vector<std::string> changes;
  for (const DiffRange& range : diff_words(a, b))
    changes.push_back(a.substr(range.a_begin, range.a_end - range.a_begin) + ">" +
                      b.substr(range.b_begin, range.b_end - range.b_begin));
  EXPECT_EQ(changes, (std::vector<std::string>{"$HOST>head", "$PORT>1", "$HOST>head", "$PORT>1"}));
}

TEST(TextDiff, Unified) {
  EXPECT_EQ(unified_diff("a\n", "a\n", "x", "y", true), "");
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10", "x",
                         "y", false),
            "--- x\n+++ y\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n"
            "\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff("", "a\n", "x", "y", true),
            "\x1b[1m--- x\x1b[0m\n\x1b[1m+++ y\x1b[0m\n\x1b[36m@@ -0,0 +1,1 "
            "@@\x1b[0m\n\x1b[32m+a\x1b[0m\n");
}

}  // namespace
}  // namespace rayhook
