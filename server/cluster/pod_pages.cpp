// SPDX-License-Identifier: Apache-2.0
#include "pod_pages.hpp"

#include "lib/list_splitter.hpp"

namespace rayhook {

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

Task<Result<bool>> PodPages::next(const Clock& clock, TimePoint end, OnPod on_pod) {
  std::string path = "/api/v1/namespaces/" + ns_ + "/pods?limit=" + std::to_string(kPodPage);
  if (!continue_.empty()) path += "&continue=" + percent_encoded(continue_);
  ListSplitter splitter;
  Error fault{Errc::internal, {}};
  bool enough = false;
  const ListSplitter::OnItem on_item = [&](std::string_view item) {
    const Result<const Review*> pod = reader_.parse_pod(item);
    if (!pod || !(*pod)->malformed.empty()) return true;
    enough = !on_pod(**pod);
    return !enough;
  };
  OnBytes on_bytes = [&](std::string_view bytes) {
    const Result<bool> fed = splitter.feed(bytes, on_item);
    if (!fed) fault = fed.error();
    return fed.value_or(false);
  };
  const StreamTimes times{end, end - clock.now(), end};
  const Result<KubeAnswer> answer =
      co_await client_.stream(std::move(path), times, std::move(on_bytes));
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status != 200)
    co_return fail(Errc::unreachable,
                   "the API server answered with status " + std::to_string(answer->status));
  if (enough) co_return false;
  if (!fault.what.empty()) co_return std::unexpected(fault);
  const Result<ListEnd> list_end = splitter.end();
  if (!list_end) co_return std::unexpected(list_end.error());
  continue_ = list_end->continue_token;
  co_return !continue_.empty();
}

}  // namespace rayhook
