// SPDX-License-Identifier: Apache-2.0
#include "request_parser.hpp"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <cstring>

namespace rayhook {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view std_view(beast::string_view text) { return {text.data(), text.size()}; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_json(std::string_view content_type) {
  const std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
  return beast::iequals({type.data(), type.size()}, "application/json");
}

/// `10s` → 10 s. The API server rounds up to whole seconds.
std::optional<std::chrono::seconds> seconds(std::string_view text) {
  if (!text.ends_with('s')) return std::nullopt;
  text.remove_suffix(1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(std::clamp(value, 1U, 30U));
}

/// True if a line of a header begins with a blank: it would go on with the line before.
bool has_folded_line(std::string_view lines) {
  for (std::size_t at = lines.find('\n'); at != std::string_view::npos && at + 1 < lines.size();
       at = lines.find('\n', at + 1))
    if (lines[at + 1] == ' ' || lines[at + 1] == '\t') return true;
  return false;
}

/// Beast's parser, noting what the header says.
class Parser final : public http::basic_parser<true> {
 public:
  RequestHead head;
  unsigned hosts = 0, content_lengths = 0, transfer_encodings = 0, content_types = 0;
  bool list_of_lengths = false, upgrade = false, bad_target = false, other_coding = false;
  std::string* body = nullptr;  // where chunks go

 private:
  using ErrorCode = beast::error_code;
  using View = beast::string_view;

  void on_request_impl(http::verb method, View, View target, int version, ErrorCode&) override {
    head.method = method == http::verb::post   ? RequestHead::Method::post
                  : method == http::verb::head ? RequestHead::Method::head
                                               : RequestHead::Method::other;
    head.http11 = version >= 11;
    read_target(std_view(target));
  }

  void read_target(std::string_view target) {
    bad_target = !target.starts_with('/') || std::ranges::any_of(target, [](char c) {
      return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7F;
    });
    const std::size_t mark = std::min(target.find('?'), target.size());
    const std::string_view path = target.substr(0, mark);
    head.path = path == "/mutate"  ? RequestHead::Path::mutate
                : path == "/audit" ? RequestHead::Path::audit
                                   : RequestHead::Path::other;
    for (std::string_view query = target.substr(mark); !query.empty();) {
      query.remove_prefix(1);  // `?` or `&`
      const std::string_view pair = query.substr(0, query.find('&'));
      if (pair.starts_with("timeout="))
        head.timeout = seconds(pair.substr(8)).value_or(head.timeout);
      query.remove_prefix(pair.size());
    }
  }

  void on_field_impl(http::field name, View, View text, ErrorCode&) override {
    if (in_trailer_) return;
    const std::string_view value = std_view(text);
    switch (name) {
      case http::field::host:
        ++hosts;
        break;
      case http::field::content_length:
        ++content_lengths;
        list_of_lengths = list_of_lengths || value.find(',') != std::string_view::npos;
        break;
      case http::field::transfer_encoding:
        ++transfer_encodings;
        other_coding = other_coding || !beast::iequals(text, "chunked");
        break;
      case http::field::content_type:
        ++content_types;
        head.json = content_types == 1 && is_json(value);
        break;
      case http::field::upgrade:
        upgrade = true;
        break;
      case http::field::expect:
        if (beast::iequals(text, "100-continue"))
          head.expect_continue = true;
        else
          head.expect_other = true;
        break;
      default:
        break;
    }
  }

  void on_header_impl(ErrorCode&) override { in_trailer_ = true; }

  void on_response_impl(int, View, int, ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(View part, ErrorCode&) override { return part.size(); }
  void on_chunk_header_impl(std::uint64_t, View, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View part, ErrorCode&) override {
    if (body) body->append(part.data(), part.size());
    return part.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  bool in_trailer_ = false;
};

constexpr Refusal kHeadTooLarge{HttpFault::head_too_large, "the request header is too large"};

/// The refusal for an error of Beast's parser.
Refusal refusal_for(const beast::error_code& error) {
  if (error == http::error::body_limit)
    return {HttpFault::too_large, "the body is larger than an AdmissionReview can be"};
  if (error == http::error::header_limit) return kHeadTooLarge;
  return {HttpFault::bad_request, "not a well-formed HTTP/1 request"};
}

/// What Beast takes but nobody should: see beast PR 3098 and RFC 9112 sections 5.2 and 6.3.
std::optional<std::string_view> objection(const Parser& parser) {
  const RequestHead& head = parser.head;
  if (parser.bad_target) return "the request target must be a path";
  if (parser.upgrade) return "no upgrade is offered";
  if (parser.transfer_encodings > 1 || parser.other_coding)
    return "the only transfer coding that is taken is chunked, alone";
  if (parser.chunked() && !head.http11) return "HTTP/1.0 knows no chunks";
  if (parser.content_lengths > 1 || parser.list_of_lengths)
    return "there must be one Content-Length";
  if (parser.hosts > 1 || (head.http11 && parser.hosts == 0)) return "there must be one Host";
  return std::nullopt;
}

}  // namespace

struct RequestParser::State {
  const Limits& limits;
  std::optional<Parser> parser;
  std::size_t head_bytes = 0;  // consumed so far
  Refusal refusal{HttpFault::bad_request, {}};

  Got refuse(Refusal why) {
    refusal = why;
    return Got::refused;
  }
};

RequestParser::RequestParser(const Limits& limits) : state_(new State{limits, {}, 0, {}}) {
  reset();
}
RequestParser::~RequestParser() = default;

void RequestParser::reset() {
  Parser& parser = state_->parser.emplace();
  parser.header_limit(static_cast<std::uint32_t>(state_->limits.head_bytes));
  parser.body_limit(state_->limits.body_bytes);
  state_->head_bytes = 0;
}

RequestParser::Got RequestParser::read_head(std::string_view bytes, std::size_t& consumed) {
  State& state = *state_;
  Parser& parser = *state.parser;
  beast::error_code error;
  const std::size_t used = parser.put({bytes.data(), bytes.size()}, error);
  consumed += used;
  state.head_bytes += used;
  if (has_folded_line(bytes.substr(0, used)))
    return state.refuse({HttpFault::bad_request, "folded header lines are not taken"});
  if (error == http::error::need_more) {
    if (state.head_bytes + bytes.size() - used >= state.limits.head_bytes)
      return state.refuse(kHeadTooLarge);
    return Got::more;
  }
  if (error) return state.refuse(refusal_for(error));
  if (!parser.is_header_done()) return Got::more;
  if (state.head_bytes > state.limits.head_bytes) return state.refuse(kHeadTooLarge);
  if (const auto objection_text = objection(parser))
    return state.refuse({HttpFault::bad_request, *objection_text});
  RequestHead& head = parser.head;
  head.keep_alive = parser.keep_alive();
  head.chunked = parser.chunked();
  if (const auto length = parser.content_length()) head.content_length = *length;
  return Got::done;
}

RequestParser::Got RequestParser::read_chunks(std::string_view bytes, std::size_t& consumed,
                                              std::string& body) {
  // At least `0 CRLF CRLF` is still to come, and Beast asserts that it sees that much.
  constexpr std::size_t kLeast = 5;
  State& state = *state_;
  Parser& parser = *state.parser;
  parser.eager(true);
  // Beast takes a chunk's size and extensions, or the trailers, once it sees all of them. It is
  // never shown more than the limit, so what is too large is so however the bytes were cut.
  while (bytes.size() >= kLeast) {
    const std::string_view shown = bytes.substr(0, state.limits.chunk_frame_bytes);
    parser.body = &body;
    beast::error_code error;
    const std::size_t used = parser.put({shown.data(), shown.size()}, error);
    parser.body = nullptr;
    consumed += used;
    bytes.remove_prefix(used);
    if (error && error != http::error::need_more) return state.refuse(refusal_for(error));
    if (parser.is_done()) return Got::done;
    if (used == 0 && shown.size() == state.limits.chunk_frame_bytes)
      return state.refuse({HttpFault::bad_request, "chunk extensions or trailers are too large"});
    if (used == 0) break;
  }
  return Got::more;
}

const RequestHead& RequestParser::head() const { return state_->parser->head; }
const Refusal& RequestParser::refusal() const { return state_->refusal; }

}  // namespace rayhook
