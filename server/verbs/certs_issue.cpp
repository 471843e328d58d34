// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>

#include "certs.hpp"
#include "certs/certificate.hpp"
#include "certs/rotation.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

struct Options {
  std::string folder;
  std::vector<std::string> names;
  int days = 90;
};

/// Writes a file beside its place and renames it, so that whoever reads it sees the old or the new.
/// Its mode is right from the first byte on.
Result<void> write_file(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  const auto failed = [&path] {
    return fail(Errc::io,
                path.string() + " cannot be written: " + std::generic_category().message(errno));
  };
  const std::string beside = path.string() + ".new";
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return failed();
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const auto error = failed();
      ::close(fd);
      ::unlink(beside.c_str());
      return error;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::close(fd) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) return failed();
  return {};
}

Result<std::string> issue(const Options& options) {
  RotationRules rules;
  rules.names = options.names;
  rules.leaf_life = rules.authority_life = options.days * kSecondsPerDay;
  const std::int64_t now = std::time(nullptr);
  const Result<IssuedPair> authority = new_authority(rules, now);
  if (!authority) return std::unexpected(authority.error());
  const Result<IssuedPair> leaf = new_leaf(*authority, rules, now);
  if (!leaf) return std::unexpected(leaf.error());

  const std::filesystem::path folder = options.folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::io, folder.string() + " cannot be made: " + error.message());
  Result<void> done = write_file(folder / "ca.crt", authority->certificate, 0644);
  if (done) done = write_file(folder / "tls.crt", leaf->certificate, 0644);
  if (done) done = write_file(folder / "tls.key", leaf->key, 0600);
  if (!done) return std::unexpected(std::move(done.error()));
  std::string names;
  for (const std::string& name : options.names) names += (names.empty() ? "" : ", ") + name;
  return "ca.crt, tls.crt and tls.key are in " + folder.string() + ", for " + names + ", until " +
         utc(now + rules.leaf_life) + "\n";
}

int run_issue(const Options& options) {
  const Result<std::string> said = issue(options);
  return said ? write_output("certs issue", *said) : complain("certs issue", said.error());
}

}  // namespace

void add_certs_issue(CLI::App& certs, std::function<int()>& run) {
  const auto options = std::make_shared<Options>();
  CLI::App& verb = *certs.add_subcommand(
      "issue", "Make a CA and a server certificate of it in a folder, for development");
  verb.add_option("folder", options->folder, "Gets ca.crt, tls.crt and tls.key")
      ->type_name("DIR")
      ->required();
  verb.add_option("--name", options->names, "DNS name or IP address; several may be given")
      ->type_name("NAME")
      ->default_str("localhost, 127.0.0.1, ::1");
  verb.add_option("--days", options->days, "How long it is valid")
      ->capture_default_str()
      ->check(CLI::Range(1, 3650));
  verb.footer(
      "The CA's key is thrown away: nobody can make a second certificate that those who trust\n"
      "ca.crt would take.");
  verb.callback([options, &run] {
    if (options->names.empty()) options->names = {"localhost", "127.0.0.1", "::1"};
    run = [options] { return run_issue(*options); };
  });
}

}  // namespace rayhook
