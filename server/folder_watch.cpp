// SPDX-License-Identifier: Apache-2.0
#include "folder_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace rayhook {
namespace {

using ErrorCode = boost::system::error_code;
constexpr asio::use_awaitable_t<Executor> kTask;

}  // namespace

FolderWatch::FolderWatch(asio::io_context& context) : descriptor_(context.get_executor()) {
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) return;
  ErrorCode error;
  descriptor_.assign(fd, error);
  if (error) ::close(fd);
}

void FolderWatch::watch(const std::string& folder) {
  if (!works()) return;
  inotify_add_watch(descriptor_.native_handle(), folder.c_str(),
                    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE);
}

Task<void> FolderWatch::run(std::function<void()> changed) {
  std::array<char, 4096> events;  // what exactly happened does not matter: the files are read again
  while (works()) {
    ErrorCode error;
    co_await descriptor_.async_read_some(asio::buffer(events), asio::redirect_error(kTask, error));
    if (error) co_return;
    changed();
  }
}

}  // namespace rayhook
