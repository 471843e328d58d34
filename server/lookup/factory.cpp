// SPDX-License-Identifier: Apache-2.0
#include "factory.hpp"

#include "cluster_lookup.hpp"
#include "fixed_lookup.hpp"
#include "lib/manifest.hpp"
#include "server/file_text.hpp"

namespace rayhook {
namespace {

using Source = std::unique_ptr<LookupSource>;

class NoSource final : public LookupSource {
 public:
  std::unique_ptr<Lookup> make(asio::io_context&) override { return std::make_unique<NoLookup>(); }
};

class FileSource final : public LookupSource {
 public:
  explicit FileSource(ManifestFacts known) : known_(std::move(known)) {}
  std::unique_ptr<Lookup> make(asio::io_context&) override {
    return std::make_unique<FileLookup>(known_);
  }

 private:
  ManifestFacts known_;
};

class ClusterSource final : public LookupSource {
 public:
  template <class... Args>
  explicit ClusterSource(Args&&... args) : cluster_(std::forward<Args>(args)...) {}
  std::unique_ptr<Lookup> make(asio::io_context& context) override {
    return std::make_unique<ClusterLookup>(context, cluster_);
  }
  void start() override { cluster_.start(); }
  [[nodiscard]] EventSink* events() override { return cluster_.events(); }
  [[nodiscard]] bool ready() const override { return cluster_.ready(); }

 private:
  Cluster cluster_;
};

Result<Source> from_file(const std::string& path, Log& log) {
  const Result<std::string> text = read_file(path, "--lookup file", kMaxManifestBytes);
  if (!text) return std::unexpected(text.error());
  const Result<Manifest> manifest = Manifest::parse(*text, path);
  if (!manifest) return std::unexpected(manifest.error());
  const Result<ManifestFacts> known =
      ManifestFacts::from(std::span(&*manifest, 1), ManifestsOf::cluster);
  if (!known) return std::unexpected(known.error());
  log.event(LogLevel::info, "Services read from a file",
            {{"file", path}, {"services", static_cast<std::int64_t>(known->service_count())}});
  return std::make_unique<FileSource>(*known);
}

Result<Source> from_cluster(const LookupOptions& options, const Policy& policy, const Clock& clock,
                            Metrics& metrics, Log& log) {
  const Result<ClusterAccess> access = cluster_access(options.kubeconfig);
  if (!access) return std::unexpected(access.error());
  const auto tls = client_tls(*access);
  if (!tls) return std::unexpected(tls.error());
  return std::make_unique<ClusterSource>(*access, *tls, options.cluster, policy, clock, metrics,
                                         log);
}

}  // namespace

Result<std::unique_ptr<LookupSource>> lookup_source(const LookupOptions& options,
                                                    const Policy& policy, const Clock& clock,
                                                    Metrics& metrics, Log& log) {
  if (options.source == "none") return std::make_unique<NoSource>();
  if (options.source.starts_with("file:")) return from_file(options.source.substr(5), log);
  if (options.source == "cluster") return from_cluster(options, policy, clock, metrics, log);
  return fail(Errc::bad_usage,
              "--lookup " + options.source + ": expected cluster, file:PATH or none");
}

}  // namespace rayhook
