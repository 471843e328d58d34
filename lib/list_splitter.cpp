// SPDX-License-Identifier: Apache-2.0
#include "list_splitter.hpp"

#include <nlohmann/json.hpp>

#include "review.hpp"

namespace rayhook {
namespace {

// The list's object is at depth 1, its `items` at 2, an item from 3 on.
constexpr unsigned kList = 1, kItems = 2;

std::unexpected<Error> no_list(std::string_view why) {
  return fail(Errc::bad_json, "the API server's list: " + std::string(why));
}

}  // namespace

void ListSplitter::see_string_byte(char c) {
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    return;
  }
  if (depth_ == kList) key_ += c;
}

Result<bool> ListSplitter::feed(std::string_view bytes, const OnItem& on_item) {
  for (const char c : bytes) {
    const bool inside = in_items_ && depth_ > kItems;
    bool item_ends = false;
    if (in_string_) {
      see_string_byte(c);
    } else if (c == '"') {
      in_string_ = true;
      if (depth_ == kList) key_.clear();
    } else if (c == '{' || c == '[') {
      if (ended_) return no_list("something follows its end");
      ++depth_;
      if (depth_ == kItems && c == '[' && key_ == "items") in_items_ = true;
    } else if (c == '}' || c == ']') {
      if (depth_ == 0) return no_list("a bracket too many");
      --depth_;
      item_ends = in_items_ && depth_ == kItems;
      if (depth_ == kList) in_items_ = false;
      ended_ = depth_ == 0;
    }
    if (inside || (in_items_ && depth_ > kItems)) {
      if (item_.size() >= kMostItem)
        return fail(Errc::too_large,
                    "an object of the list is over " + std::to_string(kMostItem) + " bytes");
      item_ += c;
    } else if (!in_items_ || depth_ < kItems || c == '[') {
      if (frame_.size() >= kMostFrame)
        return fail(Errc::too_large,
                    "the list's own fields are over " + std::to_string(kMostFrame) + " bytes");
      frame_ += c;
    }
    if (!item_ends) continue;
    const std::size_t size = item_.size();
    item_.resize(size + kPadding);
    const bool go_on = on_item(std::string_view(item_).substr(0, size));
    item_.clear();
    if (!go_on) return false;
  }
  return true;
}

Result<ListEnd> ListSplitter::end() const {
  if (!ended_) return no_list("it broke off");
  const auto frame = nlohmann::json::parse(frame_, nullptr, false);
  if (!frame.is_object()) return no_list("it is no JSON object");
  const auto metadata = frame.find("metadata");
  if (!frame.contains("items") || metadata == frame.end() || !metadata->is_object())
    return no_list("it has no items, or no metadata");
  const auto text = [&](const char* key) {
    const auto found = metadata->find(key);
    return found != metadata->end() && found->is_string() ? found->get<std::string>()
                                                          : std::string();
  };
  return ListEnd{text("resourceVersion"), text("continue")};
}

}  // namespace rayhook
