// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "certs.hpp"
#include "certs/certificate.hpp"
#include "certs/rotation.hpp"
#include "certs_cluster.hpp"
#include "server/file_text.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> files;
  std::string output = "text";
  CertsPlace place;
};

struct Shown {
  std::string where;
  CertificateFacts facts;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string time_left(std::int64_t seconds) {
  if (seconds < 0) return "expired";
  if (seconds < 2 * kSecondsPerDay) return std::to_string(seconds / 3600) + " hours left";
  return std::to_string(seconds / kSecondsPerDay) + " days left";
}

void append_text(std::string& out, const Shown& shown, std::int64_t now) {
  const CertificateFacts& facts = shown.facts;
  out += shown.where + "\n";
  const auto line = [&out](std::string_view name, const std::string& value) {
    out.append("  ").append(name).append(std::string(9 - name.size(), ' ')) += value + "\n";
  };
  line("subject", facts.subject);
  line("issuer", facts.issuer);
  if (!facts.names.empty()) line("names", joined(facts.names));
  line("from", utc(facts.not_before));
  line("until", utc(facts.not_after) + " (" + time_left(facts.not_after - now) + ")");
  line("key", facts.key + (facts.authority ? ", a CA" : ""));
  line("serial", facts.serial);
  line("sha256", facts.fingerprint);
}

OrderedJson as_json(const Shown& shown) {
  const CertificateFacts& facts = shown.facts;
  return {
      {"where", shown.where},       {"subject", facts.subject},      {"issuer", facts.issuer},
      {"names", facts.names},       {"notBefore", facts.not_before}, {"notAfter", facts.not_after},
      {"key", facts.key},           {"ca", facts.authority},         {"serial", facts.serial},
      {"sha256", facts.fingerprint}};
}

Result<void> add(std::vector<Shown>& out, const std::string& text, const std::string& where) {
  const auto certificates = read_certificates({text, where});
  if (!certificates) return std::unexpected(certificates.error());
  for (const Certificate& one : *certificates) {
    const std::string number =
        certificates->size() > 1 ? " #" + std::to_string(out.size() + 1) : "";
    out.push_back({where + number, describe(one.get())});
  }
  return {};
}

Result<std::vector<Shown>> from_files(const Options& options) {
  std::vector<Shown> out;
  for (const std::string& file : options.files) {
    const Result<std::string> text = read_file(file, "certs show");
    if (!text) return std::unexpected(text.error());
    if (Result<void> good = add(out, *text, file); !good) return std::unexpected(good.error());
  }
  return out;
}

Result<std::vector<Shown>> from_cluster(const Options& options) {
  auto cluster = CertsCluster::open(options.place);
  if (!cluster) return std::unexpected(std::move(cluster.error()));
  const auto secret = (*cluster)->secret(options.place.secret);
  if (!secret) return std::unexpected(secret.error());
  const auto configuration = (*cluster)->configuration();
  if (!configuration) return std::unexpected(configuration.error());
  const std::string title = options.place.name_space + "/" + options.place.secret;
  if (!*secret) return fail(Errc::bad_certificate, "there is no Secret " + title);
  std::vector<Shown> out;
  for (const char* key : {"tls.crt", "ca.crt"}) {
    if ((*secret)->text(key).empty()) continue;
    const Result<void> good = add(out, (*secret)->text(key), "Secret " + title + " " + key);
    if (!good) return std::unexpected(good.error());
  }
  if (!*configuration) return out;
  for (std::size_t i = 0; i < (*configuration)->bundles.size(); ++i) {
    const std::string where = "caBundle of " + (*configuration)->webhooks[i];
    const Result<void> good = add(out, (*configuration)->bundles[i], where);
    if (!good) return std::unexpected(good.error());
  }
  return out;
}

int run_show(const Options& options) {
  const auto shown = options.files.empty() ? from_cluster(options) : from_files(options);
  if (!shown) return complain("certs show", shown.error());
  std::string out;
  if (options.output == "json") {
    OrderedJson list = OrderedJson::array();
    for (const Shown& one : *shown) list.push_back(as_json(one));
    out = list.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  } else {
    for (const Shown& one : *shown) append_text(out, one, std::time(nullptr));
  }
  return write_output("certs show", out);
}

}  // namespace

void add_certs_show(CLI::App& certs, std::function<int()>& run) {
  const auto options = std::make_shared<Options>();
  CLI::App& verb = *certs.add_subcommand(
      "show", "Show certificates: of PEM files, or those of an installation in a cluster");
  verb.add_option("file", options->files,
                  "PEM; without one, the Secret and the caBundle in the cluster are shown")
      ->type_name("FILE");
  verb.add_option("-o,--output", options->output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_place_options(verb, options->place);
  verb.callback([options, &run] { run = [options] { return run_show(*options); }; });
}

}  // namespace rayhook
