// SPDX-License-Identifier: Apache-2.0
// The fast path of shell_differential.py: reads scripts, rewrites what scan_shell is sure of as
// the Pod rule does, writes them back. One long-lived process instead of one for each case.
//
// In:  LENGTH EXPANDS MASK NAME=VALUE …\n, then LENGTH bytes. NAME= a variable of interest, +NAME=
//      one that kubelet puts in besides. Bit i of MASK: the i-th reference is to be replaced.
// Out: DOUBT REPLACED LENGTH\n, then LENGTH bytes.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lib/shell.hpp"

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream header(line);
    std::size_t length = 0;
    int expands = 0;
    std::uint64_t mask = 0;
    header >> length >> expands >> mask;
    std::map<std::string, std::string, std::less<>> values;
    std::vector<std::string> own;
    for (std::string pair; header >> pair;) {
      const std::size_t equals = pair.find('=');
      const bool given = pair.starts_with('+');
      const std::string name = pair.substr(given ? 1 : 0, equals - (given ? 1 : 0));
      if (given)
        own.push_back(name);
      else
        values[name] = pair.substr(equals + 1);
    }
    std::string text(length, '\0');
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(length))) return 1;

    std::vector<std::string_view> names;
    names.reserve(values.size());
    for (const auto& [name, value] : values) names.push_back(name);
    const auto paren = [&](std::string_view name) {
      const bool known = values.contains(name) || std::ranges::find(own, name) != own.end();
      return known ? rayhook::ParenName::harmless : rayhook::ParenName::not_expanded;
    };
    const rayhook::ShellScan scan = rayhook::scan_shell(text, names, {expands != 0, paren});
    std::string rewritten;
    std::size_t done = 0;
    std::size_t replaced = 0;
    for (std::size_t i = 0; i < scan.sure.size(); ++i) {
      const rayhook::ShellReference& reference = scan.sure[i];
      if ((mask >> (i % 64) & 1) == 0) continue;
      const std::string& value = values.find(reference.name)->second;
      if (reference.whole_word && rayhook::is_shell_reserved(value)) continue;
      rewritten.append(text, done, reference.begin - done).append(value);
      done = reference.end;
      ++replaced;
    }
    rewritten.append(text, done);
    std::cout << static_cast<int>(scan.doubt) << ' ' << replaced << ' ' << rewritten.size() << '\n'
              << rewritten << std::flush;
  }
}
