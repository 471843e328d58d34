// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "expansion.hpp"
#include "own_names.hpp"
#include "pod.hpp"
#include "shell.hpp"
#include "variables.hpp"

namespace rayhook {

/// The variables that may be put in place of references, of all Services that are cared for.
/// Names are unique. Views and indices stay valid until the next `fill`.
class VariableTable {
 public:
  struct Row {
    ServiceVariable variable;
    std::uint32_t service;  ///< whose it is, an index of the caller's
  };

  void clear();
  void add(std::uint32_t service, std::vector<ServiceVariable> variables);
  /// To be called after the last `add`. Where two Services give one name, the first one has it.
  void seal();

  [[nodiscard]] const Row* find(std::string_view name) const;
  /// All rows, in the order of `add`; a row that lost its name to another has an empty name.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::vector<std::uint32_t> by_name_;
};

/// One token of a text and what takes its place.
struct Edit {
  std::size_t begin, end;
  const VariableTable::Row* row;
  bool must = false;  ///< it cannot be restored, so it may not be left
};

/// The references of one text that are rewritten.
struct TextEdits {
  std::uint32_t text;       ///< index into Pod::texts
  std::vector<Edit> edits;  ///< in order, not overlapping
};

/// Finds what can be rewritten in a container's texts. Holds scratch memory: keep one per thread.
class PodText {
 public:
  /// Appends to `out` the texts of `container` with at least one sure reference, in order of the
  /// texts. `own` is the container's.
  void rewrite(const Pod& pod, const Container& container, const OwnNames& own,
               const VariableTable& table, std::vector<TextEdits>& out);

  /// Why shell references of a text were left, for the findings: the doubt of its script, or none.
  [[nodiscard]] ShellDoubt doubt(std::uint32_t text) const;
  /// True if the text is a script that a shell reads.
  [[nodiscard]] bool is_script(std::uint32_t text) const;

 private:
  struct Script {
    std::uint32_t text;
    ShellDoubt doubt;
  };

  void find_scripts(const Pod& pod, const Container& container);
  void kubelet_edits(const Text& text, const OwnNames& own, const VariableTable& table);
  void shell_edits(const Container& container, const Text& text, Script& script,
                   const OwnNames& own, const VariableTable& table);

  std::vector<Script> scripts_;
  std::vector<Edit> edits_;
  std::vector<std::string_view> names_, argv_;
  std::vector<std::uint32_t> argv_texts_;
};

/// Drops the edits of one text that would leave half of an address rewritten: host and port must
/// be of one Service and both be known. Takes IPv6 brackets around a host into its edit.
void pair_edits(std::string_view text, std::vector<Edit>& edits);

}  // namespace rayhook
