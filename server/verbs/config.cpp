// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "lib/config.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

struct Options {
  std::optional<std::string> config;
  std::string output = "yaml";
};

int run_config(const Options& options) {
  const auto policy = read_config(options.config);
  if (!policy) return complain("config", policy.error());
  if (options.output == "yaml") return write_output("config", write_policy(*policy));
  using Json = nlohmann::ordered_json;
  return write_output(
      "config", policy_json(*policy).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

void add_config(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<Options>();
  CLI::App& verb =
      *app.add_subcommand("config", "Check a configuration file; show what is in force with it");
  add_config_option(verb, options->config);
  verb.add_option("-o,--output", options->output, "yaml or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}))
      ->capture_default_str();
  verb.footer(
      "What the file leaves out is shown with its default.\n"
      "Example:\n"
      "  rayhook config --config rayhook.yaml");
  verb.callback([options, &run] { run = [options] { return run_config(*options); }; });
}

}  // namespace rayhook
