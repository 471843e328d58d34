// SPDX-License-Identifier: Apache-2.0
// The load of tests/server/soak.py: many TLS connections with a few reviews each, some of which
// break off after a random number of sent bytes, wherever that is: in the handshake, in a header,
// in a body, in the middle of a TLS record.
//
//   soak_load PORT CA REVIEWS RECONNECTS ABORTED_PERCENT SEED BODY…
//
// Prints one JSON object with what was done. Exit code 1: a review that was sent whole on a
// connection that was not broken off got no good answer.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kThreads = 32;
constexpr std::size_t kNoEnd = std::numeric_limits<std::size_t>::max();

struct Options {
  std::uint16_t port = 0;
  std::uint64_t reviews = 0, reconnects = 0;
  unsigned aborted_percent = 0;
  unsigned seed = 0;
  std::vector<std::string> requests;
};

struct Done {
  std::atomic<std::uint64_t> connections{0}, reviews{0}, aborted{0}, failures{0};
};

/// A blocking TLS client that ends after `budget` sent bytes, with a reset.
class Client {
 public:
  Client(SSL_CTX* tls, std::uint16_t port, std::size_t budget)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)), ssl_(SSL_new(tls)), budget_(budget) {
    from_ = BIO_new(BIO_s_mem());
    to_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_, from_, to_);
    SSL_set_connect_state(ssl_);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const timeval patience{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr storage{};
    static_assert(sizeof storage == sizeof address);
    std::copy_n(reinterpret_cast<const char*>(&address), sizeof address,
                reinterpret_cast<char*>(&storage));
    open_ = ::connect(socket_, &storage, sizeof storage) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (broken_off_) {
      const linger reset{1, 0};
      ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    ::close(socket_);
    SSL_free(ssl_);
  }

  [[nodiscard]] bool handshake() {
    while (open_) {
      const int result = SSL_do_handshake(ssl_);
      if (!flush()) return false;
      if (result == 1) return true;
      if (!wants_more(result)) return false;
    }
    return false;
  }

  [[nodiscard]] bool send(std::string_view text) {
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) > 0 && flush();
  }

  /// An answer that says `"allowed":true`, whole.
  [[nodiscard]] bool good_answer() {
    std::string text;
    std::array<char, 16 * 1024> piece;
    for (;;) {
      const int bytes = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
      if (bytes > 0) {
        text.append(piece.data(), static_cast<std::size_t>(bytes));
        if (complete(text))
          return text.starts_with("HTTP/1.1 200 ") &&
                 text.find(R"("allowed":true)") != std::string::npos;
      } else if (!wants_more(bytes)) {
        return false;
      }
    }
  }

  void end() {
    SSL_shutdown(ssl_);
    (void)flush();
  }

 private:
  static bool complete(const std::string& text) {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t head = text.find("\r\n\r\n");
    const std::size_t length = text.find(kLength);
    if (head == std::string::npos || length == std::string::npos) return false;
    return text.size() >= head + 4 + std::strtoul(&text[length + kLength.size()], nullptr, 10);
  }

  /// Sends what TLS has to say, as far as the budget goes.
  bool flush() {
    char* bytes = nullptr;
    const auto size = static_cast<std::size_t>(BIO_get_mem_data(to_, &bytes));
    const std::size_t now = std::min(size, budget_);
    for (std::size_t sent = 0; sent < now;) {
      const ssize_t count = ::send(socket_, bytes + sent, now - sent, MSG_NOSIGNAL);
      if (count <= 0) return open_ = false;
      sent += static_cast<std::size_t>(count);
    }
    if (budget_ != kNoEnd) budget_ -= now;
    if (now < size) broken_off_ = true;
    BIO_reset(to_);
    return open_ = !broken_off_;
  }

  /// True once more bytes are there for TLS.
  bool wants_more(int result) {
    if (SSL_get_error(ssl_, result) != SSL_ERROR_WANT_READ) return false;
    std::array<char, 16 * 1024> piece;
    const ssize_t bytes = ::recv(socket_, piece.data(), piece.size(), 0);
    if (bytes <= 0) return false;
    return BIO_write(from_, piece.data(), static_cast<int>(bytes)) == bytes;
  }

  int socket_;
  SSL* ssl_;
  BIO* from_ = nullptr;
  BIO* to_ = nullptr;
  std::size_t budget_;
  bool open_ = false, broken_off_ = false;
};

/// One connection with its reviews. False: something that should have been answered was not.
bool connection(const Options& options, SSL_CTX* tls, std::mt19937& random, Done& done) {
  const std::uint64_t count = std::max<std::uint64_t>(1, options.reviews / options.reconnects);
  const bool aborted = random() % 100 < options.aborted_percent;
  std::size_t typical = 600;  // of the handshake
  for (const std::string& request : options.requests) typical += request.size();
  Client client(tls, options.port, aborted ? random() % typical : kNoEnd);
  if (aborted) ++done.aborted;
  ++done.connections;
  if (!client.handshake()) return aborted;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string& request = options.requests[random() % options.requests.size()];
    if (!client.send(request)) return aborted;
    if (!client.good_answer()) return false;
    ++done.reviews;
  }
  client.end();
  return true;
}

void work(const Options& options, SSL_CTX* tls, unsigned number, Done& done,
          std::atomic<std::uint64_t>& next) {
  std::mt19937 random(options.seed + number);
  while (next.fetch_add(1) < options.reconnects)
    if (!connection(options, tls, random, done)) ++done.failures;
}

std::string request_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string body{std::istreambuf_iterator<char>(file), {}};
  return "POST /mutate?timeout=10s HTTP/1.1\r\nHost: localhost\r\n"
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fputs("usage: soak_load PORT CA REVIEWS RECONNECTS ABORTED_PERCENT SEED BODY…\n", stderr);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  Options options;
  options.port = static_cast<std::uint16_t>(std::strtoul(argv[1], nullptr, 10));
  options.reviews = std::strtoull(argv[3], nullptr, 10);
  options.reconnects = std::strtoull(argv[4], nullptr, 10);
  options.aborted_percent = static_cast<unsigned>(std::strtoul(argv[5], nullptr, 10));
  options.seed = static_cast<unsigned>(std::strtoul(argv[6], nullptr, 10));
  for (int i = 7; i < argc; ++i) options.requests.push_back(request_of(argv[i]));

  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls(SSL_CTX_new(TLS_client_method()),
                                                              &SSL_CTX_free);
  if (SSL_CTX_load_verify_file(tls.get(), argv[2]) != 1) return 2;
  SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER, nullptr);

  Done done;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { work(options, tls.get(), i, done, next); });
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"connections\": %llu, \"reviews\": %llu, \"aborted\": %llu, \"failures\": %llu}\n",
              static_cast<unsigned long long>(done.connections.load()),
              static_cast<unsigned long long>(done.reviews.load()),
              static_cast<unsigned long long>(done.aborted.load()),
              static_cast<unsigned long long>(done.failures.load()));
  return done.failures == 0 ? 0 : 1;
}
