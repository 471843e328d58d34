// SPDX-License-Identifier: Apache-2.0
#include "cpu_quota.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "file_text.hpp"

namespace rayhook {

unsigned threads_for(std::string_view cpu_max, unsigned processors) {
  processors = std::max(processors, 1U);
  std::int64_t quota = 0, period = 0;
  const char* begin = cpu_max.data();
  const char* end = begin + cpu_max.size();
  const auto first = std::from_chars(begin, end, quota);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ' ') return processors;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc{} || quota <= 0 || period <= 0) return processors;
  const std::int64_t threads = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<unsigned>(std::clamp<std::int64_t>(threads, 1, processors));
}

unsigned default_threads() {
  cpu_set_t set;
  unsigned processors = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    processors = static_cast<unsigned>(CPU_COUNT(&set));
  if (const auto text = read_file("/sys/fs/cgroup/cpu.max", "cpu.max"))
    return threads_for(*text, processors);
  const auto quota = read_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "quota");
  const auto period = read_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "period");
  if (!quota || !period) return processors;
  const std::string text = quota->substr(0, quota->find('\n')) + " " + *period;
  return threads_for(text, processors);
}

}  // namespace rayhook
