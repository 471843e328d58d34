// SPDX-License-Identifier: Apache-2.0
#include "pod_text.hpp"

#include <algorithm>

namespace rayhook {
namespace {

bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_identifier(std::string_view name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::ranges::all_of(name, is_identifier_char);
}

/// Text that means nothing to a shell, whatever stands around it.
bool is_harmless(std::string_view value) {
  return value != "eval" && value != "source" && value != "." && value != "alias" &&
         std::ranges::all_of(value, [](char c) {
           return is_identifier_char(c) ||
                  std::string_view("./:@%+,-").find(c) != std::string_view::npos;
         });
}

bool is_host(const ServiceVariable& variable) {
  return variable.kind == VariableKind::host || variable.name.ends_with("_ADDR");
}

bool is_service_variable(std::string_view name) {
  MentionFinder finder(name);
  Mention mention;
  return finder.next(mention) && mention.name.size() == name.size();
}

/// The identifier that a reference at the beginning of `text` names (`$X`, `${X}`, `$(X)`, with
/// more dollars before it), or nothing.
std::string_view referenced(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] == '$') ++at;
  if (at == 0) return {};
  if (at < text.size() && (text[at] == '{' || text[at] == '(')) ++at;
  std::size_t end = at;
  while (end < text.size() && is_identifier_char(text[end])) ++end;
  return text.substr(at, end - at);
}

/// The identifier that a reference at the end of `text` names, or nothing.
std::string_view referenced_before(std::string_view text) {
  if (text.ends_with('}') || text.ends_with(')')) text.remove_suffix(1);
  std::size_t begin = text.size();
  while (begin > 0 && is_identifier_char(text[begin - 1])) --begin;
  const char before = begin > 0 ? text[begin - 1] : ' ';
  if (before != '$' && before != '{' && before != '(') return {};
  return text.substr(begin);
}

}  // namespace

void VariableTable::clear() {
  rows_.clear();
  by_name_.clear();
}

void VariableTable::add(std::uint32_t service, std::vector<ServiceVariable> variables) {
  if (rows_.empty()) rows_.reserve(variables.size());  // mostly there is one Service
  for (ServiceVariable& variable : variables) rows_.push_back({std::move(variable), service});
}

void VariableTable::seal() {
  by_name_.resize(rows_.size());
  for (std::uint32_t i = 0; i < rows_.size(); ++i) by_name_[i] = i;
  std::ranges::sort(by_name_, [&](std::uint32_t a, std::uint32_t b) {
    const int order = rows_[a].variable.name.compare(rows_[b].variable.name);
    return order != 0 ? order < 0 : a < b;
  });
  const auto same = [&](std::uint32_t a, std::uint32_t b) {
    return rows_[a].variable.name == rows_[b].variable.name;
  };
  const auto rest = std::ranges::unique(by_name_, same);
  by_name_.erase(rest.begin(), rest.end());
  std::vector<bool> kept(rows_.size(), false);
  for (const std::uint32_t i : by_name_) kept[i] = true;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (!kept[i]) rows_[i].variable.name.clear();
}

const VariableTable::Row* VariableTable::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(by_name_, name, {}, [&](std::uint32_t i) {
    return std::string_view(rows_[i].variable.name);
  });
  if (found == by_name_.end() || rows_[*found].variable.name != name) return nullptr;
  return &rows_[*found];
}

ShellDoubt PodText::doubt(std::uint32_t text) const {
  const auto found = std::ranges::find(scripts_, text, &Script::text);
  return found == scripts_.end() ? ShellDoubt::none : found->doubt;
}

bool PodText::is_script(std::uint32_t text) const {
  return std::ranges::find(scripts_, text, &Script::text) != scripts_.end();
}

/// Room for the words of most exec arrays.
constexpr std::size_t kUsualArgv = 8;

/// A container has up to six exec arrays: command with args, three probes, two hooks.
void PodText::find_scripts(const Pod& pod, const Container& container) {
  scripts_.clear();
  argv_.reserve(kUsualArgv);
  argv_texts_.reserve(kUsualArgv);
  const auto collect = [&](auto&& wanted) {
    for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
      if (!wanted(pod.texts[i])) continue;
      argv_.push_back(pod.texts[i].value);
      argv_texts_.push_back(i);
    }
  };
  const auto look = [&] {
    const std::size_t index = argv_.empty() ? 0 : shell_script_index(argv_);
    if (index < argv_.size()) scripts_.push_back({argv_texts_[index], ShellDoubt::none});
    argv_.clear();
    argv_texts_.clear();
  };
  collect([](const Text& text) { return text.field == Field::command; });
  collect([](const Text& text) { return text.field == Field::args; });
  look();
  for (std::size_t exec = 0; exec < std::size(kExecPaths); ++exec) {
    collect([&](const Text& text) {
      return (text.field == Field::probe || text.field == Field::hook) && text.exec == exec;
    });
    look();
  }
}

void PodText::kubelet_edits(const Text& text, const OwnNames& own, const VariableTable& table) {
  KubeletReferenceFinder finder(text.value);
  for (KubeletReference reference{}; finder.next(reference);) {
    const VariableTable::Row* row = table.find(reference.name);
    if (!row) continue;
    // Where the container defines the name itself later on, nothing can be restored for this text.
    if (!own.hides(text, reference.name))
      edits_.push_back({reference.begin, reference.end, row, own.has(reference.name)});
  }
}

void PodText::shell_edits(const Container& container, const Text& text, Script& script,
                          const OwnNames& own, const VariableTable& table) {
  names_.clear();
  MentionFinder finder(text.value);
  for (Mention mention; finder.next(mention);) {
    if (own.has(mention.name)) continue;
    const VariableTable::Row* row = table.find(mention.name);
    // Views into the table, not into the text, so that each name stands here once.
    if (row && row->variable.value.find(':') == std::string::npos &&
        std::ranges::find(names_, std::string_view(row->variable.name)) == names_.end())
      names_.push_back(row->variable.name);
  }
  if (names_.empty()) return;

  // What kubelet puts in place of `$(NAME)` before the shell reads the script.
  const auto paren = [&](std::string_view name) {
    if (const EnvEntry* entry = own.entry(name)) {
      if (entry->source == EnvSource::value)
        return is_harmless(entry->value) ? ParenName::harmless : ParenName::unknown;
      return entry->source == EnvSource::harmless ? ParenName::harmless : ParenName::unknown;
    }
    // Not in a probe: there service variables are not expanded, but restored ones will be.
    if (text.field == Field::probe) return ParenName::not_expanded;
    if (container.has_env_from && is_identifier(name)) return ParenName::unknown;
    // Some Service's address or number; or a word that the shell runs, harmless to read.
    if (table.find(name) || is_service_variable(name)) return ParenName::harmless;
    return ParenName::not_expanded;
  };
  const ShellScan scan =
      scan_shell(text.value, names_, KubeletPass{text.field != Field::hook, paren});
  script.doubt = scan.doubt;
  for (const ShellReference& reference : scan.sure) {
    const VariableTable::Row* row = table.find(reference.name);
    if (!row || (reference.whole_word && is_shell_reserved(row->variable.value))) continue;
    edits_.push_back({reference.begin, reference.end, row});
  }
}

/// What stands from begin to end has brackets around it that only an IPv6 address may have: a port
/// follows them (`[$X]:1`, `"[$X]":$Y`), or they stand in a URL. Those of a list, an index or a
/// shell's test are no such.
bool in_ipv6_brackets(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view before = text.substr(0, begin), after = text.substr(end);
  if (!before.ends_with('[') || !after.starts_with(']')) return false;
  if (before.ends_with("//[")) return true;
  return (before.size() < 2 || !is_identifier_char(before[before.size() - 2])) &&
         (after.starts_with("]:") || after.starts_with("]\":"));
}

void pair_edits(std::string_view text, std::vector<Edit>& edits) {
  const auto drop = [](Edit& edit) {
    if (!edit.must) edit.row = nullptr;
  };
  // Brackets first: they move the ends that the pairs are found by.
  for (Edit& edit : edits)
    if (is_host(edit.row->variable) && in_ipv6_brackets(text, edit.begin, edit.end)) {
      --edit.begin;
      ++edit.end;
    }
  for (std::size_t i = 0; i < edits.size(); ++i) {
    Edit& edit = edits[i];
    if (!edit.row || !is_host(edit.row->variable)) continue;
    if (edit.end >= text.size() || text[edit.end] != ':') continue;
    const std::string_view port = referenced(text.substr(edit.end + 1));
    if (!is_service_variable(port)) continue;
    Edit* next =
        i + 1 < edits.size() && edits[i + 1].begin == edit.end + 1 ? &edits[i + 1] : nullptr;
    if (next && next->row && next->row->service == edit.row->service) continue;
    drop(edit);
    if (next) drop(*next);
  }
  for (std::size_t i = 0; i < edits.size(); ++i) {
    Edit& edit = edits[i];
    if (!edit.row || is_host(edit.row->variable)) continue;
    if (edit.begin == 0 || text[edit.begin - 1] != ':') continue;
    const std::size_t colon = edit.begin - 1;
    if (i > 0 && edits[i - 1].end == colon && edits[i - 1].row) continue;
    const std::string_view host = referenced_before(text.substr(0, colon));
    if (is_service_variable(host)) drop(edit);
  }
  std::erase_if(edits, [](const Edit& edit) { return edit.row == nullptr; });
}

void PodText::rewrite(const Pod& pod, const Container& container, const OwnNames& own,
                      const VariableTable& table, std::vector<TextEdits>& out) {
  find_scripts(pod, container);
  for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
    const Text& text = pod.texts[i];
    if (text.value.find('$') == std::string_view::npos) continue;
    edits_.clear();
    if (text.field == Field::command || text.field == Field::args || text.field == Field::env_value)
      kubelet_edits(text, own, table);
    const std::size_t from_kubelet = edits_.size();
    const auto script = std::ranges::find(scripts_, i, &Script::text);
    if (script != scripts_.end()) shell_edits(container, text, *script, own, table);
    if (edits_.empty()) continue;
    if (from_kubelet != 0 && from_kubelet != edits_.size())
      std::ranges::sort(edits_, {}, &Edit::begin);
    pair_edits(text.value, edits_);
    if (!edits_.empty()) out.push_back({i, edits_});
  }
}

}  // namespace rayhook
