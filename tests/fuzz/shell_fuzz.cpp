// SPDX-License-Identifier: Apache-2.0
// Scripts through the scanner. (Whether dash and bash agree is tests/oracle/'s.) Any text: the
// references that it is sure of are where it says, in order, and of the names asked for.
#include <algorithm>
#include <array>

#include "lib/expansion.hpp"
#include "lib/shell.hpp"
#include "support.hpp"

namespace {

using namespace rayhook;
using fuzz::must;

constexpr std::array<std::string_view, 3> kNames{"A_SERVICE_HOST", "A_SERVICE_PORT", "B"};

void scan(std::string_view text, bool expands, ParenName paren) {
  const KubeletPass kubelet{expands, [paren](std::string_view) { return paren; }};
  const ShellScan out = scan_shell(text, kNames, kubelet);
  must(out.doubt == ShellDoubt::none || out.sure.empty());
  std::size_t before = 0;
  for (const ShellReference& reference : out.sure) {
    must(before <= reference.begin && reference.begin < reference.end &&
         reference.end <= text.size());
    must(text[reference.begin] == '$');
    const std::string_view token = text.substr(reference.begin, reference.end - reference.begin);
    must(token.find(reference.name) != std::string_view::npos);
    must(std::ranges::find(kNames, reference.name) != kNames.end());
    before = reference.end;
  }
}

void split_into_words(std::string_view text) {
  std::vector<std::string_view> argv;
  while (!text.empty() && argv.size() < 40) {
    const std::size_t end = text.find('\n');
    argv.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  must(shell_script_index(argv) <= argv.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  scan(text, true, ParenName::harmless);
  scan(text, true, ParenName::unknown);
  scan(text, true, ParenName::not_expanded);
  scan(text, false, ParenName::not_expanded);
  split_into_words(text);
  return 0;
}
