// SPDX-License-Identifier: Apache-2.0
// The names a container defines itself: the same answers for few of them and for many.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/own_names.hpp"

namespace rayhook {
namespace {

class OwnNamesTest : public testing::TestWithParam<std::size_t> {
 protected:
  /// Names that are of no concern, then X, Y, X, and as many more.
  void SetUp() override {
    const std::size_t others = GetParam();
    for (std::size_t i = 0; i < others; ++i) names_.push_back("OTHER_" + std::to_string(i));
    pod_.env.push_back({"ANOTHER_CONTAINERS", "z", EnvSource::value});
    const auto add_others = [&] {
      for (const std::string& name : names_) pod_.env.push_back({name, "o", EnvSource::value});
    };
    add_others();
    first_x_ = static_cast<std::uint32_t>(others);
    for (const auto& [name, value] :
         {std::pair{"X", "first"}, std::pair{"Y", "only"}, std::pair{"X", "last"}})
      pod_.env.push_back({name, value, EnvSource::value});
    add_others();
    container_.env_begin = 1;
    container_.env_end = static_cast<std::uint32_t>(pod_.env.size());
    own_.fill(container_);
  }

  static Text text(Field field, std::uint32_t index) { return {field, 0, index, ""}; }

  std::vector<std::string> names_;
  Pod pod_;
  Container container_;
  OwnNames own_{pod_};
  std::uint32_t first_x_ = 0;
};

TEST_P(OwnNamesTest, Has) {
  EXPECT_TRUE(own_.has("X"));
  EXPECT_TRUE(own_.has("Y"));
  for (const char* name : {"", "Z", "x", "XX", "ANOTHER_CONTAINERS"})
    EXPECT_FALSE(own_.has(name)) << name;
}

TEST_P(OwnNamesTest, AValueSeesOnlyWhatIsDeclaredBeforeIt) {
  EXPECT_FALSE(own_.hides(text(Field::env_value, first_x_), "X"));
  EXPECT_TRUE(own_.hides(text(Field::env_value, first_x_ + 1), "X"));
  EXPECT_FALSE(own_.hides(text(Field::env_value, first_x_ + 1), "Y"));
  EXPECT_TRUE(own_.hides(text(Field::args, 0), "Y"));
  EXPECT_FALSE(own_.hides(text(Field::args, 0), "Z"));
}

TEST_P(OwnNamesTest, TheLastEntryCounts) {
  ASSERT_NE(own_.entry("X"), nullptr);
  EXPECT_EQ(own_.entry("X")->value, "last");
  EXPECT_EQ(own_.entry("Y")->value, "only");
  EXPECT_EQ(own_.entry("Z"), nullptr);
  EXPECT_EQ(own_.entry("ANOTHER_CONTAINERS"), nullptr);
}

TEST_P(OwnNamesTest, AnotherContainerTakesTheirPlace) {
  Container other = container_;
  other.env_end = other.env_begin;
  own_.fill(other);
  EXPECT_FALSE(own_.has("X"));
  EXPECT_EQ(own_.entry("X"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(FewAndMany, OwnNamesTest, testing::Values(0, 1, 30, 31, 500));

}  // namespace
}  // namespace rayhook
