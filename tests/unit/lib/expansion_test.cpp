// SPDX-License-Identifier: Apache-2.0
#include "lib/expansion.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace rayhook {
namespace {

std::vector<std::string> spans(std::string_view text) {
  KubeletReferenceFinder finder(text);
  std::vector<std::string> out;
  for (KubeletReference reference{}; finder.next(reference);) {
    EXPECT_EQ(text.substr(reference.begin, reference.end - reference.begin),
              "$(" + std::string(reference.name) + ")");
    out.push_back(std::to_string(reference.begin) + ":" + std::string(reference.name));
  }
  return out;
}

using List = std::vector<std::string>;

TEST(KubeletReferences, AreFoundInOrder) {
  EXPECT_EQ(spans("$(A)"), (List{"0:A"}));
  EXPECT_EQ(spans("ray://$(A):$(B)/"), (List{"6:A", "11:B"}));
  EXPECT_EQ(spans("$(A)$(A)"), (List{"0:A", "4:A"}));
}

TEST(KubeletReferences, DollarsEscapeInPairs) {
  EXPECT_EQ(spans("$$(A)"), List{});
  EXPECT_EQ(spans("$$$(A)"), (List{"2:A"}));
  EXPECT_EQ(spans("$$$$(A)"), List{});
  EXPECT_EQ(spans("$$ $(A)"), (List{"3:A"}));
  EXPECT_EQ(spans("$A$(A)"), (List{"2:A"}));
}

TEST(KubeletReferences, AnythingUpToTheFirstParenthesisIsTheName) {
  EXPECT_EQ(spans("$()"), (List{"0:"}));
  EXPECT_EQ(spans("$( A)"), (List{"0: A"}));
  EXPECT_EQ(spans("$(A:-x)"), (List{"0:A:-x"}));
  EXPECT_EQ(spans("$(a $(A))"), (List{"0:a $(A"}));
  EXPECT_EQ(spans("$($$A)"), (List{"0:$$A"}));
  EXPECT_EQ(spans("'$(A)'"), (List{"1:A"}));
}

TEST(KubeletReferences, LookAlikesAreNone) {
  for (const char* text : {"", "$", "$$", "$A", "${A}", "$ (A)", "(A)", "$(A", "$(A $$(B", "a$"})
    EXPECT_EQ(spans(text), List{}) << text;
}

TEST(KubeletReferences, HostileTextsEnd) {
  constexpr std::size_t kSize = 8 << 20;
  for (const std::string_view piece : {"$", "$(", "$$", ")", "$ ", "$)", "$(A)", "$((", "a"}) {
    std::string text;
    while (text.size() < kSize) text += piece;
    std::size_t found = 0;
    KubeletReferenceFinder finder(text);
    for (KubeletReference reference{}; finder.next(reference);) ++found;
    EXPECT_EQ(found, piece == "$(A)" ? kSize / 4 : 0) << piece;
  }
}

}  // namespace
}  // namespace rayhook
