// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "lib/review.hpp"

namespace rayhook {

/// A connection's unread bytes, in one piece, with kPadding readable bytes behind them, so that a
/// review is read where it lies. Memory that was never written is not resident. Not thread-safe.
class ReadBuffer {
 public:
  explicit ReadBuffer(std::size_t initial) : initial_(initial) { allocate(initial); }

  [[nodiscard]] std::string_view data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  /// Where the next bytes go; never empty. Moves bytes: views into `data()` are void.
  [[nodiscard]] std::span<char> space() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < kLeastSpace) reserve(size() + kLeastSpace);
    return {bytes_.get() + end_, capacity_ - end_};
  }
  /// `n` bytes were written to `space()`.
  void written(std::size_t n) { end_ += n; }

  void consume(std::size_t n) { begin_ += n; }

  /// The byte behind the first `n` unread ones, read or not.
  [[nodiscard]] char& behind(std::size_t n) { return bytes_[begin_ + n]; }

  /// Makes room for `total` bytes from the first unread one on. Views into `data()` are void.
  void reserve(std::size_t total) {
    if (capacity_ - begin_ >= total) return;
    if (capacity_ >= total) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, size());
    } else {
      const std::unique_ptr<char[]> old = std::move(bytes_);
      const std::size_t begin = begin_, length = size();
      allocate(total + kLeastSpace);  // so that space() need not grow it again
      std::memcpy(bytes_.get(), old.get() + begin, length);
      end_ = length;
      begin_ = 0;
      return;
    }
    end_ = size();
    begin_ = 0;
  }

  /// Gives memory back if it holds more than `kept` bytes of it and needs less.
  void shrink(std::size_t kept) {
    if (capacity_ <= kept || size() > initial_) return;
    const std::unique_ptr<char[]> old = std::move(bytes_);
    const std::size_t begin = begin_, length = size();
    allocate(initial_);
    std::memcpy(bytes_.get(), old.get() + begin, length);
    begin_ = 0;
    end_ = length;
  }

 private:
  static constexpr std::size_t kLeastSpace = 4096;

  void allocate(std::size_t capacity) {
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity + kPadding);
    capacity_ = capacity;
  }

  std::size_t initial_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace rayhook
