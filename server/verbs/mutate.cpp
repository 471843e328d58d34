// SPDX-License-Identifier: Apache-2.0
#include "mutate.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/reason.hpp"
#include "lib/text_diff.hpp"
#include "manifest_judge.hpp"
#include "verb_io.hpp"

namespace rayhook {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output = "yaml";
  std::string color = "auto";
  std::optional<std::string> config;
};

/// What is said on stderr.
struct Summary {
  std::string text;
  std::size_t objects = 0, changed = 0, left = 0, warnings = 0;
};

/// `spec.containers[0].args[0]: $A → b; 5 variables restored`
std::string what_changed(const Subject& subject, const Decision& decision) {
  constexpr std::size_t kListed = 3;
  std::string out;
  std::size_t rewritten = 0, restored = 0;
  const auto add = [&](const std::string& part) {
    out.append(out.empty() ? "" : "; ").append(part);
  };
  for (const Finding& finding : decision.findings) {
    if (finding.after.empty()) continue;
    if (finding.before.empty())
      restored += 1 + static_cast<std::size_t>(std::ranges::count(finding.after, ' '));
    else if (++rewritten <= kListed)
      add(full_place(subject, finding.where) + ": " + finding.before + " → " + finding.after);
  }
  if (rewritten > kListed) add(std::to_string(rewritten - kListed) + " more");
  if (restored > 0)
    add(std::to_string(restored) + (restored == 1 ? " variable" : " variables") + " restored");
  return out;
}

/// Why an object was left, where that may surprise whoever converts its Service: `unchanged:
/// service-absent: …`. Empty: it need not be said, or a warning says it.
std::string why_left(const Decision& decision) {
  if (!text(decision.reason).of_concern || !decision.warnings.empty()) return {};
  std::string out = "unchanged: ";
  out.append(word(decision.reason)).append(": ").append(text(decision.reason).sentence);
  if (decision.reason == Reason::malformed && !decision.findings.empty())
    out.append(" (").append(decision.findings.front().before).append(")");
  return out;
}

Result<void> mutate_file(InputFile& file, bool several, ManifestJudge& judge, Summary& summary) {
  const std::string prefix = several ? file.name + ": " : "";
  const auto objects = file.manifest.objects();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    bool changed = false;
    for (std::size_t j = 0; j < objects[i].subjects.size(); ++j) {
      const Subject& subject = objects[i].subjects[j];
      auto decision = judge.judge(objects[i], subject);
      if (!decision) return std::unexpected(decision.error());
      const std::string name = prefix + object_name(objects[i]) + ": ";
      if (decision->outcome == Outcome::patch && !decision->patch.empty()) {
        const std::string what = what_changed(subject, *decision);
        summary.text.append(name).append(word(decision->reason));
        if (!what.empty()) summary.text.append(": ").append(what);
        summary.text += '\n';
        changed = true;
        if (auto done = file.manifest.apply(i, j, decision->patch); !done) return done;
      } else if (const std::string why = why_left(*decision); !why.empty()) {
        summary.text.append(name).append(why).append("\n");
        ++summary.left;
      }
      for (const std::string& warning : decision->warnings) {
        summary.text.append(name).append("warning: ").append(warning).append("\n");
        ++summary.warnings;
      }
    }
    ++summary.objects;
    summary.changed += changed ? 1 : 0;
  }
  return {};
}

/// The file with what was applied; the loss of comments is said.
std::string changed_text(const InputFile& file, Summary& summary) {
  std::vector<std::size_t> lost;
  std::string out = file.manifest.yaml(lost);
  for (const std::size_t document : lost)
    summary.text.append(file.name)
        .append(": document ")
        .append(std::to_string(document))
        .append(": its comments could not be kept\n");
  return out;
}

std::string all_yaml(const std::vector<InputFile>& files, Summary& summary) {
  std::string out;
  for (const InputFile& file : files) {
    const std::string text = changed_text(file, summary);
    if (!out.empty() && !out.ends_with('\n')) out += '\n';
    if (!out.empty() && !text.starts_with("---")) out += "---\n";
    out += text;
  }
  return out;
}

std::string all_json(const std::vector<InputFile>& files) {
  OrderedJson list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", OrderedJson::array()}};
  for (const InputFile& file : files)
    for (OrderedJson& object : file.manifest.json()) list["items"].push_back(std::move(object));
  return list.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string all_diffs(const std::vector<InputFile>& files, bool color, Summary& summary) {
  std::string out;
  for (const InputFile& file : files) {
    const std::string name = file.name == "-" ? "stdin" : file.name;
    out += unified_diff(file.text, changed_text(file, summary), name, name + " (rayhook)", color);
  }
  return out;
}

int run_mutate(const Options& options) {
  const auto policy = read_config(options.config);
  if (!policy) return complain("mutate", policy.error());
  auto files = read_manifests(options.files);
  if (!files) return complain("mutate", files.error());
  std::vector<Manifest> manifests;  // ManifestFacts wants them in a row
  for (InputFile& file : *files) manifests.push_back(std::move(file.manifest));
  auto facts = ManifestFacts::from(manifests);
  if (!facts) return complain("mutate", facts.error());
  for (std::size_t i = 0; i < manifests.size(); ++i) (*files)[i].manifest = std::move(manifests[i]);

  ManifestJudge judge(std::move(*facts), *policy);
  Summary summary;
  for (InputFile& file : *files)
    if (auto done = mutate_file(file, files->size() > 1, judge, summary); !done)
      return complain("mutate", done.error());

  const std::string out = options.output == "json" ? all_json(*files)
                          : options.output == "diff"
                              ? all_diffs(*files, wants_color(options.color), summary)
                              : all_yaml(*files, summary);
  if (const int code = write_output("mutate", out); code != 0) return code;
  const std::string left =
      summary.left == 0 ? "" : ", " + std::to_string(summary.left) + " left (see above)";
  std::fprintf(stderr, "%srayhook mutate: %zu of %zu objects changed%s, %zu warnings\n",
               summary.text.c_str(), summary.changed, summary.objects, left.c_str(),
               summary.warnings);
  return 0;
}

}  // namespace

void add_mutate(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<Options>();
  CLI::App& verb =
      *app.add_subcommand("mutate", "Change manifests as the webhook would change their objects");
  add_file_option(verb, options->files);
  verb.add_option("-o,--output", options->output,
                  "yaml: the files, changed in place; json: one List; diff: what would change")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json", "diff"}))
      ->capture_default_str();
  add_color_option(verb, options->color);
  add_config_option(verb, options->config);
  verb.footer(
      "Services among the input (of all files) are the known ones; what changed is said on "
      "stderr.\n"
      "Objects of no concern, comments and layout stay as they are.\n"
      "Examples:\n"
      "  rayhook mutate -f cluster.yaml -o diff\n"
      "  helm template ray . | rayhook mutate -f - | kubectl apply -f -");
  verb.callback([options, &run] { run = [options] { return run_mutate(*options); }; });
}

}  // namespace rayhook
