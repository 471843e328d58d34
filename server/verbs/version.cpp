// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include <openssl/crypto.h>
#include <simdjson.h>
#include <spdlog/version.h>

#include <CLI/CLI.hpp>
#include <boost/version.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/version.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string version_json() {
  const nlohmann::ordered_json out = {
      {"version", kVersion},
      {"libraries",
       {{"boost", dotted(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"simdjson", dotted(simdjson::SIMDJSON_VERSION_MAJOR, simdjson::SIMDJSON_VERSION_MINOR,
                            simdjson::SIMDJSON_VERSION_REVISION)},
        {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                 NLOHMANN_JSON_VERSION_PATCH)},
        {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
        {"cli11", CLI11_VERSION}}}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void add_version(CLI::App& app, std::function<int()>& run) {
  auto format = std::make_shared<std::string>("text");
  CLI::App& verb = *app.add_subcommand("version", "Say which version this is");
  verb.add_option("-o,--output", *format, "text, or json with the libraries' versions")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  verb.callback([format, &run] {
    run = [format] {
      return write_output("version", *format == "json" ? version_json()
                                                       : "rayhook " + std::string(kVersion) + "\n");
    };
  });
}

}  // namespace rayhook
