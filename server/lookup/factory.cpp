// SPDX-License-Identifier: Apache-2.0
#include "factory.hpp"

#include "fixed_lookup.hpp"
#include "lib/manifest.hpp"
#include "server/file_text.hpp"

namespace rayhook {
namespace {

Result<LookupFactory> from_file(const std::string& path, Log& log) {
  const Result<std::string> text = read_file(path, "--lookup file", kMaxManifestBytes);
  if (!text) return std::unexpected(text.error());
  const Result<Manifest> manifest = Manifest::parse(*text, path);
  if (!manifest) return std::unexpected(manifest.error());
  const Result<ManifestFacts> known =
      ManifestFacts::from(std::span(&*manifest, 1), NoNamespace::any);
  if (!known) return std::unexpected(known.error());
  log.event(LogLevel::info, "Services read from a file",
            {{"file", path}, {"services", static_cast<std::int64_t>(known->service_count())}});
  return [known = *known](asio::io_context&) -> std::unique_ptr<Lookup> {
    return std::make_unique<FileLookup>(known);
  };
}

}  // namespace

Result<LookupFactory> lookup_factory(const LookupOptions& options, const Policy& policy,
                                     const Clock& clock, Metrics& metrics, Log& log) {
  if (options.source == "none")
    return
        [](asio::io_context&) -> std::unique_ptr<Lookup> { return std::make_unique<NoLookup>(); };
  if (options.source.starts_with("file:")) return from_file(options.source.substr(5), log);
  (void)policy, (void)clock, (void)metrics;
  return fail(Errc::bad_usage,
              "--lookup " + options.source + ": expected cluster, file:PATH or none");
}

}  // namespace rayhook
