// SPDX-License-Identifier: Apache-2.0
#include "file_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rayhook {

Result<std::string> read_file(const std::string& path, std::string_view what, std::size_t limit) {
  const auto failed = [&](const char* did) {
    return fail(Errc::io, std::string(what) + ": cannot " + did + " " + path + ": " +
                              std::generic_category().message(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open");
  std::string out;
  char block[16 * 1024];
  for (;;) {
    const ssize_t bytes = ::read(fd, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      auto error = failed("read");
      ::close(fd);
      return error;
    }
    if (bytes == 0) break;
    out.append(block, static_cast<std::size_t>(bytes));
    if (out.size() > limit) break;
  }
  ::close(fd);
  if (out.size() > limit)
    return fail(Errc::too_large, std::string(what) + ": " + path + " is larger than " +
                                     std::to_string(limit) + " bytes");
  return out;
}

}  // namespace rayhook
