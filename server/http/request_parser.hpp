// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/limits.hpp"
#include "server/metrics.hpp"

namespace rayhook {

/// What matters of a request's header. A value.
struct RequestHead {
  enum class Method : std::uint8_t { post, head, other };
  enum class Path : std::uint8_t { mutate, audit, other };

  Method method = Method::other;
  Path path = Path::other;
  bool http11 = true;
  bool keep_alive = false;  ///< the client's wish, by version and Connection
  bool chunked = false;
  std::uint64_t content_length = 0;  ///< 0 also where there is none
  bool json = false;                 ///< exactly one Content-Type, and it is application/json
  bool expect_continue = false;      ///< Expect: 100-continue
  bool expect_other = false;         ///< an expectation that nobody can meet
  /// `?timeout=10s`, within 1…30 s; 10 s, the API server's default, where absent or unreadable.
  std::chrono::seconds timeout{10};
};

/// Why a request's bytes cannot be taken, with one line for the client; static storage.
struct Refusal {
  HttpFault fault;
  std::string_view message;
};

/// Reads HTTP/1.x requests with Beast's parser, and refuses what could be framed in two ways, which
/// Beast (as of Boost 1.81) takes: other transfer codings than exactly `chunked`, chunks in
/// HTTP/1.0, two Content-Lengths even if alike, none or two Hosts, folded lines, upgrades, targets
/// that are no path. Holds no input: the caller keeps what is not consumed. Linear time.
/// Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const Limits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class Got {
    more,     ///< all is well so far; more bytes are needed
    done,     ///< the header, or the chunked body, is complete
    refused,  ///< see refusal(); the connection cannot go on
  };

  /// Begins the next request.
  void reset();

  /// Reads the header from `bytes`, which begin where the last call's consumed bytes ended.
  /// Adds to `consumed`; bytes of the body are never consumed.
  [[nodiscard]] Got read_head(std::string_view bytes, std::size_t& consumed);

  /// Reads a chunked body, appending to `body`, trailers passed over. Call after a head with
  /// `chunked`, until done or refused.
  [[nodiscard]] Got read_chunks(std::string_view bytes, std::size_t& consumed, std::string& body);

  [[nodiscard]] const RequestHead& head() const;
  [[nodiscard]] const Refusal& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rayhook
