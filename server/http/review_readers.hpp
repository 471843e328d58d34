// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lib/review.hpp"

namespace rayhook {

/// A thread's readers of reviews: each review that is being decided holds one, since a Review lives
/// in its reader. Nearly always the same one is used again and again. Not thread-safe.
class ReviewReaders {
 public:
  /// Never null.
  [[nodiscard]] std::unique_ptr<ReviewReader> take() {
    if (spare_.empty()) return std::make_unique<ReviewReader>();
    std::unique_ptr<ReviewReader> out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }

  /// `big`: it has read an unusually large text, whose memory is given back.
  void give_back(std::unique_ptr<ReviewReader> reader, bool big) {
    if (!reader || spare_.size() >= kSpare) return;
    if (big) reader->shrink();
    spare_.push_back(std::move(reader));
  }

 private:
  static constexpr std::size_t kSpare = 4;
  std::vector<std::unique_ptr<ReviewReader>> spare_;
};

}  // namespace rayhook
