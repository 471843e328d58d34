// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace rayhook {

namespace asio = boost::asio;

/// One io_context per thread, and never a strand: so the executor's type is known, which spares
/// Asio an allocation and an indirect call per operation (facts: performance-notes, step 2).
using Executor = asio::io_context::executor_type;

/// What a coroutine returns. Mind the traps of g++ 12: no lambda, aggregate or conditional
/// expression may be a temporary inside `co_await …`; give it a name first.
template <class T>
using Task = asio::awaitable<T, Executor>;

}  // namespace rayhook
