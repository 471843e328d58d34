// SPDX-License-Identifier: Apache-2.0
// Configurations: refused in one line, or read; and what was read is written and read again as the
// same.
#include "lib/config.hpp"
#include "support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rayhook;
  using fuzz::must;
  const Result<Policy> policy = read_policy(fuzz::text_of(data, size));
  if (!policy) {
    must(!policy.error().what.empty() && policy.error().what.find('\n') == std::string::npos);
    return 0;
  }
  const std::string written = write_policy(*policy);
  const Result<Policy> again = read_policy(written);
  must(again && write_policy(*again) == written);
  return 0;
}
