// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <string>

#include "net.hpp"

namespace rayhook {

/// Says when something in a folder has changed (inotify). Kubelet replaces all files of a mounted
/// Secret at once, by renaming a link called `..data` in their folder: a watch on a file would see
/// nothing of it. Not thread-safe.
class FolderWatch {
 public:
  explicit FolderWatch(asio::io_context& context);

  /// False if the system gives no watches (its limit per user is reached): then somebody must look
  /// now and then.
  [[nodiscard]] bool works() const { return descriptor_.is_open(); }

  /// From now on also this folder. May be called again for one that is watched, or was deleted and
  /// made anew. A folder that is not there is passed over.
  void watch(const std::string& folder);

  /// Calls `changed` whenever something has changed, until the io_context ends.
  [[nodiscard]] Task<void> run(std::function<void()> changed);

 private:
  asio::posix::basic_stream_descriptor<Executor> descriptor_;
};

}  // namespace rayhook
