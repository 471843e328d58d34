// SPDX-License-Identifier: Apache-2.0
#include "restore.hpp"

#include <algorithm>
#include <array>

namespace rayhook {
namespace {

std::size_t bytes_of(const VariableTable::Row& row) {
  return row.variable.name.size() + row.variable.value.size();
}

bool is_link(const VariableTable::Row& row) {
  return row.variable.kind == VariableKind::docker_link;
}

}  // namespace

bool choose_restored(const VariableTable& table, const RestoreLimits& limits,
                     std::vector<const VariableTable::Row*>& out,
                     const std::function<Wish(const VariableTable::Row&)>& wish) {
  std::vector<std::pair<const VariableTable::Row*, Wish>> wanted;
  wanted.reserve(table.rows().size());
  std::size_t bytes = 0;
  for (const VariableTable::Row& row : table.rows()) {
    if (row.variable.name.empty()) continue;
    const Wish how = wish(row);
    if (how == Wish::none) continue;
    wanted.emplace_back(&row, how);
    bytes += bytes_of(row);
  }
  std::size_t entries = wanted.size();
  const auto fits = [&] { return entries <= limits.entries && bytes <= limits.bytes; };
  const bool cut = !fits();

  // One round per kind of what may go; a Service goes whole, the last one first.
  const auto drop = [&](Wish how, bool links_only) {
    std::size_t end = wanted.size();
    while (!fits() && end > 0) {
      const std::uint32_t service = wanted[end - 1].first->service;
      std::size_t begin = end;
      while (begin > 0 && wanted[begin - 1].first->service == service) --begin;
      for (std::size_t i = begin; i < end; ++i) {
        auto& [row, row_wish] = wanted[i];
        if (row_wish != how || (links_only && !is_link(*row))) continue;
        --entries;
        bytes -= bytes_of(*row);
        row_wish = Wish::none;
      }
      end = begin;
    }
  };
  drop(Wish::unnamed, true);
  drop(Wish::unnamed, false);
  drop(Wish::named, true);
  drop(Wish::named, false);

  out.reserve(out.size() + entries);
  for (const auto& [row, how] : wanted)
    if (how != Wish::none) out.push_back(row);
  return cut;
}

}  // namespace rayhook
