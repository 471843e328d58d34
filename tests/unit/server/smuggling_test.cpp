// SPDX-License-Identifier: Apache-2.0
// Requests that two readers could frame in two ways. Each must be refused, with the connection
// ended, or have one meaning; whatever follows must never be taken for a second request.
#include <gmock/gmock.h>

#include "support.hpp"

namespace rayhook::test {
namespace {

struct Case {
  std::string name;
  std::string request;
  std::string status;  ///< of the first answer
  int answers;         ///< how many in all
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

/// A request line and fields of our own, then what the case is about. Behind the end of the header
/// stands `body`.
std::string request(std::string_view fields, std::string_view body = {},
                    std::string_view line = "POST /mutate HTTP/1.1",
                    std::string_view host = "Host: h\r\n") {
  return std::string(line) + "\r\n" + std::string(host) + "Content-Type: application/json\r\n" +
         std::string(fields) + "\r\n" + std::string(body);
}

const std::string inner = "GET /inner HTTP/1.1\r\nHost: h\r\n\r\n";

std::vector<Case> cases() {
  const std::string length = "Content-Length: " + std::to_string(inner.size()) + "\r\n";
  const std::string chunks = "0\r\n\r\n";
  const auto refused = [](std::string name, std::string bytes) {
    return Case{std::move(name), std::move(bytes), "400", 1};
  };
  return {
      // What Beast (Boost 1.81 to 1.91) takes; ours to refuse.
      refused("te_gzip_and_length",
              request("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", "12345")),
      refused("te_chunked_gzip_and_length",
              request("Transfer-Encoding: chunked, gzip\r\nContent-Length: 5\r\n", "12345")),
      refused("te_gzip_chunked", request("Transfer-Encoding: gzip, chunked\r\n", chunks + inner)),
      refused("te_xchunked_and_length", request("Transfer-Encoding: xchunked\r\n" + length, inner)),
      refused("te_gzip_alone", request("Transfer-Encoding: gzip\r\n", inner)),
      refused("te_identity", request("Transfer-Encoding: identity\r\n" + length, inner)),
      refused("te_empty", request("Transfer-Encoding:\r\n" + length, inner)),
      refused("http10_chunked",
              request("Transfer-Encoding: chunked\r\n", chunks + inner, "POST /mutate HTTP/1.0")),
      refused("folded", request("X-A: 1\r\n b\r\n" + length, inner)),
      refused("folded_te", request("Transfer-Encoding:\r\n chunked\r\n", chunks + inner)),
      refused("folded_with_tab", request("X-A: 1\r\n\tb\r\n" + length, inner)),
      refused("two_equal_lengths", request(length + length, inner)),
      refused("length_list", request("Content-Length: 5, 5\r\n", "12345")),
      refused("no_host", request(length, inner, "POST /mutate HTTP/1.1", "")),
      refused("two_hosts", request("Host: h\r\n" + length, inner)),
      refused("absolute_target", request(length, inner, "POST http://h/mutate HTTP/1.1")),
      refused("target_star", request(length, inner, "OPTIONS * HTTP/1.1")),
      refused("target_authority", request(length, inner, "CONNECT h:443 HTTP/1.1")),
      refused("eight_bit_target", request(length, inner, "POST /mut\xc3\xa4te HTTP/1.1")),
      refused("upgrade", request("Connection: upgrade\r\nUpgrade: h2c\r\n" + length, inner)),
      // What Beast refuses; it has to stay so.
      refused("length_then_te", request(length + "Transfer-Encoding: chunked\r\n", chunks + inner)),
      refused("te_then_length", request("Transfer-Encoding: chunked\r\n" + length, chunks + inner)),
      refused("two_te", request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                                chunks + inner)),
      refused(
          "te_then_identity",
          request("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunks + inner)),
      refused("space_before_colon", request("Transfer-Encoding : chunked\r\n", chunks + inner)),
      refused("bare_lf", "POST /mutate HTTP/1.1\nHost: h\n\n" + inner),
      refused("bare_lf_in_field", request("X-A: 1\nX-B: 2\r\n" + length, inner)),
      refused("bare_cr", request("X-A: 1\rX-B: 2\r\n" + length, inner)),
      refused("nul", request(std::string("X-A: 1\0", 7) + "\r\n" + length, inner)),
      refused("nul_in_target",
              request(length, inner, std::string_view("POST /mu\0te HTTP/1.1", 20))),
      refused("length_plus", request("Content-Length: +5\r\n", "12345")),
      refused("length_minus", request("Content-Length: -1\r\n", inner)),
      refused("length_hex", request("Content-Length: 0x5\r\n", "12345")),
      refused("length_overflow", request("Content-Length: 18446744073709551621\r\n", "12345")),
      refused("length_empty", request("Content-Length:\r\n", "12345")),
      refused("two_lengths", request("Content-Length: 5\r\nContent-Length: 6\r\n", "123456")),
      refused("length_list_differs", request("Content-Length: 5, 6\r\n", "123456")),
      refused("http09", "GET /mutate\r\n\r\n"),
      refused("http12", request(length, inner, "POST /mutate HTTP/1.2")),
      refused("http20", request(length, inner, "POST /mutate HTTP/2.0")),
      refused("h2_preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      refused("chunk_size_bad", request("Transfer-Encoding: chunked\r\n", "x\r\n\r\n" + inner)),
      refused("chunk_size_negative",
              request("Transfer-Encoding: chunked\r\n", "-1\r\n\r\n" + inner)),
      refused("chunk_size_prefix",
              request("Transfer-Encoding: chunked\r\n", "0x5\r\n12345\r\n" + chunks)),
      refused("chunk_size_overflow",
              request("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFFFF\r\n" + inner)),
      refused("chunk_without_crlf",
              request("Transfer-Encoding: chunked\r\n", "5\r\n12345xx" + chunks)),
      refused("chunk_bare_lf",
              request("Transfer-Encoding: chunked\r\n", "5\n12345\n0\n\n" + inner)),
      refused("chunk_extension_bad",
              request("Transfer-Encoding: chunked\r\n", "5;=x\r\n12345\r\n" + chunks)),
      refused("length_in_trailer",
              request("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 5\r\n\r\n" + inner)),
      refused("leading_crlf", "\r\n" + request(length, inner)),
      refused("leading_space", " " + request(length, inner)),
      // What has one meaning: the body is a body, and what stands behind it the next request.
      {"inner_request_is_the_body", request(length, inner), "400", 1},
      {"body_of_a_get", request(length, inner, "GET /mutate HTTP/1.1"), "405", 1},
      {"upper_case_chunked", request("Transfer-Encoding: CHUNKED\r\n", chunks + inner), "400", 2},
      {"no_body_then_next", request("", inner), "400", 2},
      {"length_zero_then_next", request("Content-Length: 0\r\n", inner), "400", 2},
      {"trailers_are_no_header",
       request("Transfer-Encoding: chunked\r\n", "0\r\nX-Admin: 1\r\nHost: x\r\n\r\n" + inner),
       "400", 2},
      {"leading_zeros_in_length", request("Content-Length: 005\r\n", "12345" + inner), "400", 2},
  };
}

class SmugglingTest : public testing::TestWithParam<Case> {};

TEST_P(SmugglingTest, HasOneMeaning) {
  const Case& one = GetParam();
  for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{1}, std::size_t{7}}) {
    World world;
    Client client(world.context);
    client.send(one.request, piece);
    ASSERT_THAT(client.out, testing::StartsWith("HTTP/1.1 " + one.status + " ")) << piece;
    int answers = 0;
    for (std::size_t at = client.out.find("HTTP/1.1 "); at != std::string::npos;
         at = client.out.find("HTTP/1.1 ", at + 1))
      ++answers;
    // `inner` would be a 404.
    EXPECT_EQ(answers, one.answers) << piece << "\n" << client.out;
    const bool inner_answered = client.out.find("HTTP/1.1 404 ") != std::string::npos;
    EXPECT_EQ(inner_answered, one.answers == 2) << client.out;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmugglingTest, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

TEST(SmugglingRefusals, EndTheConnection) {
  World world;
  Client client(world.context);
  client.send(request("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", "12345"));
  EXPECT_TRUE(client.closed);
  EXPECT_TRUE(client.session.unread_input());
  EXPECT_THAT(client.out, testing::HasSubstr("\r\nConnection: close\r\n"));
}

}  // namespace
}  // namespace rayhook::test
