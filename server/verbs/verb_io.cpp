// SPDX-License-Identifier: Apache-2.0
#include "verb_io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "lib/config.hpp"
#include "lib/review.hpp"

namespace rayhook {
namespace {

/// A file descriptor; standard input is not closed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// What the last system call that failed says of it.
std::string last_error() { return std::generic_category().message(errno); }

std::string display(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace

Result<std::string> read_input(const std::string& path, std::size_t limit) {
  const auto failed = [&] {
    return fail(Errc::io, display(path) + ": cannot be read: " + last_error());
  };
  const Descriptor input(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (input.get() < 0) return failed();
  std::string text;
  constexpr std::size_t kChunk = 256 * 1024;
  std::size_t size = 0;
  for (;;) {
    if (text.size() < size + kChunk) text.resize(std::max(size + kChunk, size * 2));
    const ssize_t count = ::read(input.get(), text.data() + size, kChunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    size += static_cast<std::size_t>(count);
    if (size > limit)
      return fail(Errc::too_large,
                  display(path) + ": larger than " + std::to_string(limit >> 20) + " MiB");
    if (count == 0) break;
  }
  text.reserve(size + kPadding);
  text.resize(size);
  return text;
}

int write_output(std::string_view verb, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      return 0;
    } else if (errno != EINTR) {
      return complain(verb, {Errc::io, "standard output cannot be written: " + last_error()});
    }
  }
  return 0;
}

int complain(std::string_view verb, const Error& error) {
  std::string line = "rayhook ";
  line.append(verb).append(": ").append(error.what);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  line += '\n';
  std::fputs(line.c_str(), stderr);
  return error.code == Errc::bad_usage ? 2 : 1;
}

Result<std::vector<InputFile>> read_manifests(const std::vector<std::string>& paths) {
  if (std::ranges::count(paths, "-") > 1)
    return fail(Errc::bad_usage, "standard input (-f -) can be given only once");
  std::vector<InputFile> out;
  for (const std::string& path : paths) {
    auto text = read_input(path, kMaxManifestBytes);
    if (!text) return std::unexpected(std::move(text.error()));
    auto manifest = Manifest::parse(*text, display(path));
    if (!manifest) return std::unexpected(std::move(manifest.error()));
    out.push_back({path, std::move(*text), std::move(*manifest)});
  }
  return out;
}

void add_file_option(CLI::App& verb, std::vector<std::string>& files) {
  verb.add_option("-f,--file", files,
                  "Manifest, YAML or JSON; - is standard input; several may be given")
      ->type_name("FILE")
      ->required();
}

void add_color_option(CLI::App& verb, std::string& color) {
  verb.add_option("--color", color,
                  "Colours: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

void add_config_option(CLI::App& verb, std::optional<std::string>& path) {
  verb.add_option("--config", path,
                  "Configuration, YAML (docs/configuration.md); without it, the defaults")
      ->type_name("FILE");
}

Result<Policy> read_config(const std::optional<std::string>& path) {
  if (!path) return Policy{};
  if (*path == "-") return fail(Errc::bad_usage, "--config: takes a file, not standard input");
  constexpr std::size_t kMaxBytes = 1024 * 1024;
  const auto text = read_input(*path, kMaxBytes);
  if (!text) return fail(text.error().code, "--config " + text.error().what);
  auto policy = read_policy(*text);
  if (!policy) return fail(policy.error().code, "--config " + *path + ": " + policy.error().what);
  return policy;
}

bool wants_color(std::string_view color) {
  if (color != "auto") return color == "always";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets the environment
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (!refused || !*refused);
}

}  // namespace rayhook
