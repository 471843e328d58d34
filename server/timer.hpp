// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "net.hpp"

namespace rayhook {

/// A timer on a thread's own io_context.
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

/// Waits until the timer expires or is cancelled. `timer` must outlive the coroutine.
[[nodiscard]] inline Task<void> wait(Timer& timer) {
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable_t<Executor>(), ignored));
}

}  // namespace rayhook
