// SPDX-License-Identifier: Apache-2.0
#include "explain.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/reason.hpp"
#include "manifest_judge.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output = "text";
  std::string color = "auto";
  std::optional<std::string> config;
};

/// ANSI escapes, or nothing.
struct Paint {
  bool on;
  [[nodiscard]] std::string operator()(std::string_view escape, std::string_view text) const {
    if (!on) return std::string(text);
    return std::string("\x1b[").append(escape).append("m").append(text).append("\x1b[0m");
  }
};

Decision of_no_concern() { return {Reason::not_our_kind, Outcome::leave, {}, {}, {}, {}}; }

bool changes(const Decision& decision) {
  return decision.outcome == Outcome::patch && !decision.patch.empty();
}

/// `N variables restored`, and each on a line of its own: the finding has them in a row.
void append_restored(std::string& out, const Paint& paint, const Finding& finding) {
  std::string_view rest = finding.after;
  out += std::to_string(1 + std::ranges::count(rest, ' ')) + " restored\n";
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    out += "    " + paint("32", one) + "\n";
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
}

void append_text(std::string& out, const Paint& paint, const std::string& title,
                 const Subject& subject, const Decision& decision) {
  const bool changed = changes(decision);
  out += paint("1", title);
  if (!subject.pointer.empty()) out += " (" + full_place(subject, "") + ")";
  out += ": " + paint(changed ? "32" : "33", changed ? "changed" : "unchanged") + ": ";
  out += std::string(word(decision.reason)) + "\n  " + std::string(text(decision.reason).sentence) +
         "\n";
  for (const Finding& finding : decision.findings) {
    const std::string place = full_place(subject, finding.where);
    out += "  " + place + (place.empty() ? "" : ": ");
    if (finding.before.empty()) {
      append_restored(out, paint, finding);
      continue;
    }
    if (finding.after.empty())
      out += finding.before;
    else
      out += paint("31", finding.before) + " → " + paint("32", finding.after);
    if (!finding.note.empty()) out += " (" + std::string(finding.note) + ")";
    out += '\n';
  }
  if (decision.findings.size() >= kMaxFindings) out += "  (no more than these are listed)\n";
  for (const std::string& warning : decision.warnings)
    out += "  " + paint("33", "warning:") + " " + warning + "\n";
}

OrderedJson as_json(const InputFile& file, const ManifestObject& object, const Subject& subject,
                    const Decision& decision) {
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : decision.findings)
    findings.push_back({{"where", full_place(subject, finding.where)},
                        {"before", finding.before},
                        {"after", finding.after},
                        {"note", finding.note}});
  return {{"file", file.name},
          {"document", object.document},
          {"line", object.line},
          {"apiVersion", object.api_version},
          {"kind", object.kind},
          {"namespace", object.ns},
          {"name", object.name},
          {"where", full_place(subject, "")},
          {"changed", changes(decision)},
          {"reason", word(decision.reason)},
          {"sentence", text(decision.reason).sentence},
          {"findings", std::move(findings)},
          {"warnings", decision.warnings}};
}

int run_explain(const Options& options) {
  const auto policy = read_config(options.config);
  if (!policy) return complain("explain", policy.error());
  auto files = read_manifests(options.files);
  if (!files) return complain("explain", files.error());
  std::vector<Manifest> manifests;
  for (InputFile& file : *files) manifests.push_back(std::move(file.manifest));
  auto facts = ManifestFacts::from(manifests);
  if (!facts) return complain("explain", facts.error());
  ManifestJudge judge(std::move(*facts), *policy);

  const Paint paint{options.output == "text" && wants_color(options.color)};
  std::string out;
  OrderedJson list = OrderedJson::array();
  for (std::size_t f = 0; f < files->size(); ++f) {
    const InputFile& file = (*files)[f];
    for (const ManifestObject& object : manifests[f].objects()) {
      const std::string title =
          (files->size() > 1 ? file.name + ": " : std::string()) + object_name(object);
      const auto say = [&](const Subject& subject, const Decision& decision) {
        if (options.output == "json")
          list.push_back(as_json(file, object, subject, decision));
        else
          append_text(out, paint, title, subject, decision);
      };
      if (object.subjects.empty()) say({}, of_no_concern());
      for (const Subject& subject : object.subjects) {
        const auto decision = judge.judge(object, subject);
        if (!decision) return complain("explain", decision.error());
        say(subject, *decision);
      }
    }
  }
  if (options.output == "json")
    out = list.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  return write_output("explain", out);
}

}  // namespace

void add_explain(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<Options>();
  CLI::App& verb = *app.add_subcommand("explain", "Say of each object what would change, and why");
  add_file_option(verb, options->files);
  verb.add_option("-o,--output", options->output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_color_option(verb, options->color);
  add_config_option(verb, options->config);
  verb.footer(
      "Services among the input (of all files) are the known ones.\n"
      "Example:\n"
      "  rayhook explain -f cluster.yaml");
  verb.callback([options, &run] { run = [options] { return run_explain(*options); }; });
}

}  // namespace rayhook
