// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "error.hpp"

namespace rayhook {

/// What stands around the items of a Kubernetes List: where the list was taken, and whether there
/// is more of it.
struct ListEnd {
  std::string resource_version;
  std::string continue_token;  ///< empty: this was the last page
};

/// Cuts a Kubernetes List (`{"kind":…,"metadata":…,"items":[{…},{…}]}`) into its items while its
/// bytes come in, so that a list of any length costs the memory of one item. It only finds where
/// an item begins and ends; reading it, and refusing what is no JSON, is the reader's. Not
/// thread-safe. One object reads one list.
class ListSplitter {
 public:
  /// Takes an item's JSON text, behind which kPadding more bytes are readable; valid during the
  /// call. False: enough.
  using OnItem = std::function<bool(std::string_view)>;

  /// Longest item, and longest text around the items. A stored object has at most 1.5 MiB.
  static constexpr std::size_t kMostItem = 2 * 1024 * 1024;
  static constexpr std::size_t kMostFrame = 64 * 1024;

  /// Takes the next bytes; false if `on_item` had enough. Errors: Errc::too_large, Errc::bad_json.
  [[nodiscard]] Result<bool> feed(std::string_view bytes, const OnItem& on_item);

  /// After the last byte. Errors: Errc::bad_json if the list did not end, or is none.
  [[nodiscard]] Result<ListEnd> end() const;

 private:
  void see_string_byte(char c);

  std::string frame_;   // the list without its items
  std::string item_;    // the item that is coming in
  std::string key_;     // the last string at the list's own level
  unsigned depth_ = 0;  // brackets that are open
  bool in_string_ = false, escaped_ = false;
  bool in_items_ = false;  // inside the brackets of `items`
  bool ended_ = false;
};

}  // namespace rayhook
