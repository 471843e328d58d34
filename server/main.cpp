// SPDX-License-Identifier: Apache-2.0
// The program `rayhook`: its command line. Everything else is in the library beside it, which the
// tests link too.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "lib/version.hpp"
#include "server/verbs/certs.hpp"
#include "server/verbs/config.hpp"
#include "server/verbs/explain.hpp"
#include "server/verbs/mutate.hpp"
#include "server/verbs/probe.hpp"
#include "server/verbs/review.hpp"
#include "server/verbs/serve.hpp"
#include "server/verbs/version.hpp"

namespace {

/// CLI11's own complaint, on one line, with the way out.
int bad_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string verb;
  for (const CLI::App* chosen : app.get_subcommands()) verb = " " + chosen->get_name();
  std::string what = error.what();
  const auto extra = app.remaining();
  if (verb.empty() && !extra.empty()) what = "there is no verb or option `" + extra.front() + "`";
  for (char& c : what)
    if (c == '\n') c = ' ';
  std::fprintf(stderr, "rayhook%s: %s; see `rayhook%s --help`\n", verb.c_str(), what.c_str(),
               verb.c_str());
  return 2;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Rayhook makes Ray head Services headless, and lets everything that reads their\n"
      "service variables go on working. As a webhook (serve), or on files (the others).",
      "rayhook");
  app.set_version_flag("--version", "rayhook " + std::string(rayhook::kVersion));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::function<int()> verb;
  rayhook::add_serve(app, verb);
  rayhook::add_mutate(app, verb);
  rayhook::add_explain(app, verb);
  rayhook::add_review(app, verb);
  rayhook::add_config(app, verb);
  rayhook::add_certs(app, verb);
  rayhook::add_probe(app, verb);
  rayhook::add_version(app, verb);
  // Last, or every verb without one of its own would inherit it.
  app.footer(
      "Example: what would Rayhook change in this manifest?\n"
      "  rayhook mutate -f cluster.yaml -o diff\n"
      "Exit codes: 0 done, 1 bad input, 2 bad usage. `rayhook VERB --help` says more.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return bad_usage(app, error);
  }
  return verb ? verb() : 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a pipe that nobody reads fails instead
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rayhook: %s\n", error.what());
    return 1;
  }
}
