// SPDX-License-Identifier: Apache-2.0
// What the verbs that read manifests have in common: input, output, complaints.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error.hpp"
#include "lib/manifest.hpp"
#include "lib/policy.hpp"

namespace CLI {
class App;
}

namespace rayhook {

/// Reads a file, or standard input for `-`, whole, at most `limit` bytes. Behind the text lie
/// kPadding more bytes of capacity. Errors name the file.
[[nodiscard]] Result<std::string> read_input(const std::string& path, std::size_t limit);

/// Writes all of `text` to standard output. A reader that has gone away is no error; a full disk
/// is one. Returns the exit code, having complained on stderr.
[[nodiscard]] int write_output(std::string_view verb, std::string_view text);

/// One line on stderr; returns the exit code for such an error.
int complain(std::string_view verb, const Error& error);

/// A manifest file that was read.
struct InputFile {
  std::string name;  ///< as given; `-` for standard input
  std::string text;
  Manifest manifest;
};

/// Reads all of them, in order; `-` may be given once.
[[nodiscard]] Result<std::vector<InputFile>> read_manifests(const std::vector<std::string>& paths);

/// Adds `-f, --file` (several, required) and `--color`.
void add_file_option(CLI::App& verb, std::vector<std::string>& files);
void add_color_option(CLI::App& verb, std::string& color);

/// Adds `--config`.
void add_config_option(CLI::App& verb, std::optional<std::string>& path);

/// Reads the file of `--config`; without one, the default policy. Errors name flag and file.
[[nodiscard]] Result<Policy> read_config(const std::optional<std::string>& path);

/// Whether to write ANSI escapes: `always`, `never`, or `auto`: to a terminal, if NO_COLOR is
/// unset.
[[nodiscard]] bool wants_color(std::string_view color);

}  // namespace rayhook
