// SPDX-License-Identifier: Apache-2.0
#include "factory.hpp"

#include <cstdlib>

#include "cluster_lookup.hpp"
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

Result<LookupFactory> from_cluster(const std::string& kubeconfig, const Policy& policy,
                                   const Clock& clock, Metrics& metrics, Log& log) {
  const auto environment = [](const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets the environment
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const Result<ClusterAccess> access =
      kubeconfig.empty() ? service_account_access(environment("KUBERNETES_SERVICE_HOST"),
                                                  environment("KUBERNETES_SERVICE_PORT"))
                         : read_kubeconfig(kubeconfig);
  if (!access) return std::unexpected(access.error());
  const auto tls = client_tls(*access);
  if (!tls) return std::unexpected(tls.error());
  return [access = *access, tls = *tls, &policy, &clock, &metrics,
          &log](asio::io_context& context) -> std::unique_ptr<Lookup> {
    return std::make_unique<ClusterLookup>(context, tls, access, policy, clock, metrics, log);
  };
}

}  // namespace

Result<LookupFactory> lookup_factory(const LookupOptions& options, const Policy& policy,
                                     const Clock& clock, Metrics& metrics, Log& log) {
  if (options.source == "none")
    return
        [](asio::io_context&) -> std::unique_ptr<Lookup> { return std::make_unique<NoLookup>(); };
  if (options.source.starts_with("file:")) return from_file(options.source.substr(5), log);
  if (options.source == "cluster")
    return from_cluster(options.kubeconfig, policy, clock, metrics, log);
  return fail(Errc::bad_usage,
              "--lookup " + options.source + ": expected cluster, file:PATH or none");
}

}  // namespace rayhook
