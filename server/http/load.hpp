// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace rayhook {

/// What the server's connections use together at this moment. Thread-safe.
struct Load {
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> body_bytes{0};  ///< of large bodies: see Limits::small_body
};

/// A share of something that is limited, given back when it dies. Not thread-safe; what it counts
/// in is, and outlives it.
class Share {
 public:
  Share() = default;
  Share(Share&& other) noexcept
      : used_(std::exchange(other.used_, nullptr)), amount_(std::exchange(other.amount_, 0)) {}
  Share& operator=(Share&& other) noexcept {
    release();
    used_ = std::exchange(other.used_, nullptr);
    amount_ = std::exchange(other.amount_, 0);
    return *this;
  }
  ~Share() { release(); }

  /// Takes `amount` more of `used`, always the same one, unless that would be more than `most`.
  [[nodiscard]] bool take(std::atomic<std::size_t>& used, std::size_t amount, std::size_t most) {
    if (used.fetch_add(amount) + amount > most) {
      used.fetch_sub(amount);
      return false;
    }
    used_ = &used;
    amount_ += amount;
    return true;
  }

  void release() {
    if (used_) used_->fetch_sub(amount_);
    used_ = nullptr;
    amount_ = 0;
  }

  [[nodiscard]] std::size_t amount() const { return amount_; }

 private:
  std::atomic<std::size_t>* used_ = nullptr;
  std::size_t amount_ = 0;
};

}  // namespace rayhook
