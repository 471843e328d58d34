// SPDX-License-Identifier: Apache-2.0
#include "watched_file.hpp"

#include "server/file_text.hpp"

namespace rayhook {
namespace {

constexpr std::chrono::seconds kLookAgain{10};

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::optional<std::string> WatchedFile::changed(TimePoint now, bool at_once) {
  if (none() || (!at_once && looked_ && now - *looked_ < kLookAgain)) return std::nullopt;
  looked_ = now;
  struct stat present{};
  if (::stat(path_.c_str(), &present) != 0 || same(present, seen_)) return std::nullopt;
  Result<std::string> text = read_file(path_, what_);
  if (!text || text->empty()) return std::nullopt;  // being written
  seen_ = present;
  return std::move(*text);
}

}  // namespace rayhook
