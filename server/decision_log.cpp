// SPDX-License-Identifier: Apache-2.0
#include "decision_log.hpp"

#include "json_line.hpp"

namespace rayhook {
namespace {

/// Of the line's members and what they mean: docs/audit-log.md. A member may be added; one that is
/// taken away, renamed or given another meaning makes this one more.
constexpr std::int64_t kSchema = 1;

constexpr std::size_t kMaxWarnings = 8;

void append_changes(JsonLine& line, const std::string& out, const Decision& decision) {
  // The longest change: four texts, every byte of which may become six.
  constexpr std::size_t kChangeRoom = 4 * 6 * JsonLine::kTextLimit;
  const std::size_t begin = out.size();
  line.begin_array("changes");
  std::int64_t omitted = 0;
  for (const Finding& finding : decision.findings) {
    if (omitted > 0 ||
        (out.size() > begin + Log::kLineBytes / 8 && out.size() + kChangeRoom > Log::kLineBytes)) {
      ++omitted;
      continue;
    }
    line.begin_object()
        .text("where", finding.where)
        .text("before", finding.before)
        .text("after", finding.after);
    if (finding.after.empty()) line.text("note", finding.note);
    line.end_object();
  }
  line.end_array();
  if (omitted > 0) line.number("changesOmitted", omitted);
}

void append_warnings(JsonLine& line, const Decision& decision) {
  if (decision.warnings.empty()) return;
  line.begin_array("warnings");
  for (std::size_t i = 0; i < decision.warnings.size() && i < kMaxWarnings; ++i)
    line.element(decision.warnings[i]);
  line.end_array();
}

}  // namespace

void append_decision_line(std::string& out, const Review& review, const Decision& decision,
                          Mode mode, std::size_t patch_bytes,
                          std::chrono::steady_clock::duration took, LogLevel level) {
  JsonLine line(out);
  stamp(line, level, "decision");
  line.number("schema", kSchema).text("uid", review.uid, 64).text("namespace", review.ns);
  if (!review.name.empty())
    line.text("name", review.name);
  else
    line.text("generateName", review.generate_name);
  line.text("kind", review.kind_name, 64)
      .text("operation", review.operation, 16)
      .text("user", review.user)
      .boolean("dryRun", review.dry_run)
      .text("reason", word(decision.reason))
      .text("outcome", word(decision.outcome))
      .text("mode", word(mode));
  if (!decision.deny_message.empty()) line.text("message", decision.deny_message);
  append_warnings(line, decision);
  append_changes(line, out, decision);
  line.number("patchBytes", static_cast<std::int64_t>(patch_bytes))
      .number("durationMicros",
              std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  line.end();
}

void DecisionLog::decided(const Review& review, const Decision& decision, Mode mode,
                          std::size_t patch_bytes, std::chrono::steady_clock::duration took) {
  const bool of_concern = text(decision.reason).of_concern;
  if (events_ && of_concern && !review.dry_run) events_->decided(review, decision, mode);
  const LogLevel level = of_concern ? LogLevel::info : LogLevel::debug;
  if (!log_.enabled(level)) return;
  line_.clear();
  append_decision_line(line_, review, decision, mode, patch_bytes, took, level);
  log_.write(level, line_);
}

}  // namespace rayhook
