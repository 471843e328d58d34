// SPDX-License-Identifier: Apache-2.0
#include "certs.hpp"

#include <CLI/CLI.hpp>

namespace rayhook {

void add_certs(CLI::App& app, std::function<int()>& run) {
  CLI::App& certs = *app.add_subcommand("certs", "Issue, show, check and rotate certificates");
  certs.require_subcommand(1);
  certs.footer("docs/certificates.md says which way of keeping certificates is for whom.");
  add_certs_issue(certs, run);
  add_certs_show(certs, run);
  add_certs_check(certs, run);
  add_certs_rotate(certs, run);
}

}  // namespace rayhook
