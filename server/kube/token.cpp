// SPDX-License-Identifier: Apache-2.0
#include "token.hpp"

#include "server/file_text.hpp"

namespace rayhook {
namespace {

constexpr std::chrono::seconds kLookAgain{10};

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

void Token::look(TimePoint now) {
  looked_ = now;
  struct stat present{};
  if (::stat(file_.c_str(), &present) != 0 || same(present, seen_)) return;
  const Result<std::string> text = read_file(file_, "token", 64 * 1024);
  if (!text) return;
  std::string token = *text;
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  // It goes into a header: anything else is no token.
  for (const char c : token)
    if (c <= ' ' || c > '~') return;
  if (token.empty()) return;  // being written
  value_ = std::move(token);
  seen_ = present;
}

const std::string& Token::get(TimePoint now) {
  if (!file_.empty() && (!looked_ || now - *looked_ >= kLookAgain)) look(now);
  return value_;
}

bool Token::refused(TimePoint now) {
  if (file_.empty()) return false;
  const std::string before = value_;
  look(now);
  return value_ != before;
}

}  // namespace rayhook
