// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "lib/review.hpp"

namespace rayhook {

/// Every limit of the HTTPS side, in one place. Times are looked at once a second, so each may be
/// overrun by up to a second. A value, fixed at start.
struct Limits {
  /// Request line and header fields together; the API server sends about 400 bytes. Beyond: 431.
  std::size_t head_bytes = 8 * 1024;
  /// Body, with Content-Length or in chunks. Beyond: 413.
  std::size_t body_bytes = kMaxReviewBytes;
  /// Framing of a chunked body (extensions, trailers) that is waiting for its end. Beyond: 400.
  std::size_t chunk_frame_bytes = 16 * 1024;

  /// Bodies over `small_body` that may be here at once, all connections together: one more is
  /// answered with 503 and Retry-After. Small ones need no such limit: there are at most as many as
  /// connections.
  std::size_t all_bodies = 16 * 1024 * 1024;
  std::size_t small_body = 16 * 1024;

  /// Open connections. For one more another is cut off, and counted: see Worker::make_room.
  std::size_t connections = 256;
  /// TLS handshakes under way, the expensive part of a connection. For one more the oldest is cut
  /// off, and counted: who holds them open keeps nobody out.
  std::size_t handshakes = 64;

  /// From accept to the end of the TLS handshake.
  std::chrono::seconds handshake{10};
  /// Between requests. The API server's client keeps connections for 90 s: the server must not be
  /// the one that closes first, since a POST that meets the close is not sent again.
  std::chrono::seconds idle{180};
  /// From a request's first byte to the end of its header.
  std::chrono::seconds header{10};
  /// From there to the end of its body.
  std::chrono::seconds body{30};
  /// For taking an answer.
  std::chrono::seconds write{10};
  /// For an orderly end (close_notify, and reading what the peer still sends).
  std::chrono::seconds shutdown{2};

  /// After so much time, or so many requests, the next answer ends its connection: new connections
  /// see a new certificate, and spread over replicas.
  std::chrono::seconds max_age{600};
  std::uint32_t max_requests = 100'000;

  /// Buffers of a connection that grew beyond this are given back after the request.
  std::size_t kept_bytes = 16 * 1024;
};

}  // namespace rayhook
