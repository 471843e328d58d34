// SPDX-License-Identifier: Apache-2.0
#include "pod_rule.hpp"

#include <algorithm>

#include "own_names.hpp"
#include "patch.hpp"
#include "pod_text.hpp"
#include "restore.hpp"
#include "service_rule.hpp"
#include "variables.hpp"
#include "words.hpp"

namespace rayhook {
namespace {

/// Whether the pod can resolve the name of a Service, and what would help
/// (kubernetes pkg/kubelet/network/dns/dns.go).
enum class Resolver { works, host_network, by_policy };

Resolver resolver(const Pod& pod) {
  if (pod.dns_policy == "ClusterFirstWithHostNet") return Resolver::works;
  if (!pod.dns_policy.empty() && pod.dns_policy != "ClusterFirst") return Resolver::by_policy;
  return pod.host_network ? Resolver::host_network : Resolver::works;
}

/// True if the pod's controller makes it again, soon and by itself, when it was refused
/// (kubernetes pkg/controller/{replicaset,statefulset,daemon,job}; tried, see docs/reliability.md).
bool controller_retries(const Pod& pod) {
  if (pod.controller_api.starts_with("apps/"))
    return pod.controller == "ReplicaSet" || pod.controller == "StatefulSet" ||
           pod.controller == "DaemonSet";
  return pod.controller_api.starts_with("batch/") && pod.controller == "Job";
}

/// Decides one pod. Lives for one call of decide_pod.
class PodDecision {
 public:
  PodDecision(const Review& review, const Policy& policy, const Facts& facts)
      : review_(review), pod_(review.pod), policy_(policy), facts_(facts), own_(review.pod) {}

  Decision decide() {
    survey();
    if (awaited_ && !review_.dry_run && controller_retries(pod_)) return wait_for(*awaited_);
    if (cared_.empty()) {
      list_mentions();
      return leave(reason_for_leaving());
    }
    fill_table();
    for (const Container& container : pod_.containers) look_at(container);
    if (edits_.empty() && restored_.empty()) {
      Decision out = leave(reason_for_leaving());
      if (any_cut_) warn_cut(out);
      return out;
    }
    if (const Resolver state = resolver(pod_); state != Resolver::works) {
      const bool cure = state == Resolver::host_network && !edits_.empty() &&
                        policy_.host_network_dns == HostNetworkDns::patch;
      if (!cure) return leave_unresolving(state);
      dns_patch_ = true;
    }
    return change();
  }

 private:
  struct Named {  // what the pod's text says of one fact
    bool anywhere = false, docker_link = false;
  };
  struct Tally {  // mentions that lead to no care
    bool own = false, absent = false, unknown = false, left = false;
  };

  /// The fact that a mention is about, or nullptr.
  const ServiceFact* fact_of(const Mention& mention) const {
    for (const ServiceFact& fact : facts_.services)
      if (names_service(mention.prefix, fact.name)) return &fact;
    return nullptr;
  }

  /// Reads all mentions once: which Services the text names, and what cannot be helped.
  void survey() {
    named_.resize(facts_.services.size());
    caring_.resize(facts_.services.size());
    mentions_.resize(pod_.containers.size());
    for (std::size_t c = 0; c < pod_.containers.size(); ++c) survey(pod_.containers[c], c);
    choose_cared();
  }

  /// Judged when first asked for: a namespace may have thousands of Services.
  const Caring& caring(std::size_t fact) {
    auto& known = caring_[fact];
    if (!known) known = care_for(facts_.services[fact], policy_);
    return *known;
  }

  void choose_cared() {
    std::size_t unnamed = 0;  // variables of Services that the text does not name
    for (std::uint32_t i = 0; i < facts_.services.size(); ++i) {
      // More of them would be cut again: see choose_restored.
      if (!named_[i].anywhere && unnamed > policy_.max_restored) continue;
      const Care care = caring(i).care;
      if (care == Care::none || (care == Care::text_only && !named_[i].anywhere)) continue;
      cared_.push_back(i);
      if (!named_[i].anywhere) unnamed += 1 + facts_.services[i].service->ports.size();
    }
  }

  void survey(const Container& container, std::size_t c) {
    for (std::uint32_t i = container.texts_begin; i < container.texts_end; ++i) {
      MentionFinder finder(pod_.texts[i].value);
      Mention last{};  // the same name again and again says nothing new
      for (Mention mention; finder.next(mention);) {
        if (mentioning_.empty() || mentioning_.back() != i) mentioning_.push_back(i);
        if (mention.name == last.name && mention.prefix == last.prefix) continue;
        last = mention;
        own_.fill(container);
        note(pod_.texts[i], mention, mentions_[c]);
      }
    }
  }

  void note(const Text& text, const Mention& mention, std::vector<std::uint32_t>& in_container) {
    if (own_.hides(text, mention.name)) {
      tally_.own = true;
      return;
    }
    const ServiceFact* fact = fact_of(mention);
    if (!fact || fact->known == Known::unknown) {
      tally_.unknown = true;
      return;
    }
    if (fact->known == Known::absent) {
      tally_.absent = true;
      if (fact->retry && !awaited_) awaited_ = fact;
      return;
    }
    const auto index = static_cast<std::uint32_t>(fact - facts_.services.data());
    if (caring(index).care == Care::none) tally_.left = true;
    named_[index].anywhere = true;
    named_[index].docker_link = named_[index].docker_link || mention.docker_link;
    if (std::ranges::find(in_container, index) == in_container.end()) in_container.push_back(index);
  }

  Reason reason_for_leaving() const {
    if (!pod_.decision.empty()) return Reason::already_done;
    if (tally_.unknown) return Reason::service_unknown;
    if (tally_.absent) return Reason::service_absent;
    if (tally_.left) return Reason::service_left;
    return tally_.own ? Reason::own_variables : Reason::no_reference;
  }

  /// The text has `X_PORT` of this very Service. By itself such a name asks for no Service (many
  /// programs have a variable called so), but beside a headless one kubelet no longer sets it.
  bool names_bare_port(std::string_view service) const {
    const std::string name = variable_prefix(service) + "_PORT";
    return std::ranges::any_of(pod_.texts,
                               [&](const Text& text) { return has_identifier(text.value, name); });
  }

  void fill_table() {
    for (const std::uint32_t i : cared_) {
      const ServiceFact& fact = facts_.services[i];
      const bool links = policy_.docker_links == DockerLinks::always || named_[i].docker_link ||
                         names_bare_port(fact.name);
      std::vector<ServiceVariable> variables;
      append_variables(*fact.service, dns_name(fact.name, review_.ns, policy_), links, variables);
      table_.add(i, std::move(variables));
      table_has_links_ = table_has_links_ || links;
    }
    table_.seal();
  }

  /// A bare pod that `kubectl apply` made must keep its text: apply would compare it with the
  /// manifest and fail, since a pod's text cannot be changed.
  bool keeps_text() const { return pod_.applied && pod_.controller.empty(); }

  void look_at(const Container& container) {
    const auto c = static_cast<std::size_t>(&container - pod_.containers.data());
    own_.fill(container);
    if (!mentions_[c].empty() || table_has_links_) {
      if (!keeps_text()) text_.rewrite(pod_, container, own_, table_, edits_);
      find_left(container);
    }
    restore(container, mentions_[c]);
  }

  void restore(const Container& container, const std::vector<std::uint32_t>& mentioned) {
    RestoreLimits limits{policy_.max_restored, policy_.max_restored_bytes};
    Restored restored{container.init, container.index, container.has_env, {}, false};
    restored.cut =
        choose_restored(table_, limits, restored.rows, [&](const VariableTable::Row& row) {
          const bool full = caring(row.service).care == Care::full;
          const bool here = std::ranges::find(mentioned, row.service) != mentioned.end();
          if ((!full && !here) || own_.has(row.variable.name)) return Wish::none;
          return here || named_[row.service].anywhere ? Wish::named : Wish::unnamed;
        });
    any_cut_ = any_cut_ || restored.cut;
    if (restored.rows.empty()) return;
    any_env_from_ = any_env_from_ || container.has_env_from;
    restored_.push_back(std::move(restored));
  }

  static std::string place(const Container& container) {
    return std::string(container.init ? "spec.initContainers[" : "spec.containers[") +
           std::to_string(container.index) + "].";
  }

  std::string place(const Container& container, const Text& text) const {
    std::string out = place(container);
    const std::string index = "[" + std::to_string(text.index) + "]";
    switch (text.field) {
      case Field::command:
        return out + "command" + index;
      case Field::args:
        return out + "args" + index;
      case Field::env_value:
        return out + "env" + index + ".value";
      case Field::probe:
      case Field::hook:
        break;
    }
    std::string path(kExecPaths[text.exec]);
    std::ranges::replace(path, '/', '.');
    return out + path + index;
  }

  /// Lists the mentions that were not rewritten, and why; for `rayhook explain` and the log.
  void find_left(const Container& container) {
    const auto begin = std::ranges::lower_bound(mentioning_, container.texts_begin);
    const auto end = std::ranges::lower_bound(mentioning_, container.texts_end);
    if (begin == end) return;
    own_.fill(container);
    // Without a command the image's entry point reads args, and that may be a shell.
    const bool has_command = std::any_of(
        pod_.texts.begin() + container.texts_begin, pod_.texts.begin() + container.texts_end,
        [](const Text& text) { return text.field == Field::command; });
    for (const std::uint32_t i : std::ranges::subrange(begin, end)) {
      const auto found = std::ranges::lower_bound(edits_, i, {}, &TextEdits::text);
      const TextEdits* edits = found != edits_.end() && found->text == i ? &*found : nullptr;
      if (findings_.size() >= kMaxFindings) return;
      MentionFinder finder(pod_.texts[i].value);
      std::size_t edit = 0;
      for (Mention mention; findings_.size() < kMaxFindings && finder.next(mention);) {
        while (edits && edit < edits->edits.size() && edits->edits[edit].end <= mention.begin)
          ++edit;
        if (edits && edit < edits->edits.size() && edits->edits[edit].begin <= mention.begin)
          continue;
        findings_.push_back({place(container, pod_.texts[i]),
                             std::string(mention.name),
                             {},
                             why_left(mention, i, has_command)});
      }
    }
  }

  /// The same for a pod beside no Service of concern: which names it has, and why they stay.
  void list_mentions() {
    for (const Container& container : pod_.containers) find_left(container);
  }

  std::string_view why_left(const Mention& mention, std::uint32_t text, bool has_command) {
    if (own_.hides(pod_.texts[text], mention.name)) return "the container defines it itself";
    const VariableTable::Row* row = table_.find(mention.name);
    if (!row) {
      const ServiceFact* fact = fact_of(mention);
      if (!fact || fact->known == Known::unknown) return "its Service could not be looked up";
      if (fact->known == Known::absent) return "there is no such Service";
      const auto index = static_cast<std::size_t>(fact - facts_.services.data());
      return caring(index).care == Care::none ? "its Service keeps its variables"
                                              : "its Service has no such port";
    }
    if (keeps_text()) return "left for kubectl apply; restored as env";
    switch (text_.doubt(text)) {
      case ShellDoubt::none:
        break;
      case ShellDoubt::unterminated:
        return "the script does not end where it should; restored as env";
      case ShellDoubt::sets_variables:
        return "the script may set it (eval, source …); restored as env";
      case ShellDoubt::field_separator:
        return "the script changes IFS; restored as env";
      case ShellDoubt::unreadable:
        return "the script is not certain to be read right; restored as env";
      case ShellDoubt::unknown_text:
        return "kubelet puts unknown text into the script; restored as env";
    }
    const Text& at = pod_.texts[text];
    const bool dollar =
        mention.begin > 0 && (at.value[mention.begin - 1] == '$' ||
                              (mention.begin > 1 && at.value[mention.begin - 1] == '{' &&
                               at.value[mention.begin - 2] == '$'));
    if (dollar && has_command && !text_.is_script(text) &&
        (at.field == Field::command || at.field == Field::args)) {
      no_shell_ = true;
      return "no shell expands it here; restored as env";
    }
    return "not certain to be expanded here; restored as env";
  }

  Decision leave(Reason reason) {
    Decision out{};
    out.reason = reason;
    out.findings = std::move(findings_);
    return out;
  }

  /// Refused, to be made again: admitted now, it would look for its head in vain for ever.
  Decision wait_for(const ServiceFact& service) {
    Decision out = leave(Reason::service_awaited);
    out.outcome = Outcome::deny;
    out.deny_message = "rayhook: service-awaited: Service " + shortened(service.name, 63) +
                       ", where the pod looks for its Ray head, does not exist in its namespace "
                       "yet; " +
                       std::string(pod_.controller) + " tries again by itself";
    return out;
  }

  Decision leave_unresolving(Resolver state) {
    Decision out =
        leave(state == Resolver::host_network ? Reason::host_network : Reason::dns_policy);
    patch_texts(out);  // for the findings: what would have been rewritten
    out.patch.clear();
    for (Finding& finding : out.findings) {
      finding.after.clear();
      if (finding.note == "rewritten" || finding.note.ends_with("restored as env"))
        finding.note = "the pod cannot resolve the Service's name";
    }
    const std::string name = shortened(pod_.name.empty() ? pod_.generate_name : pod_.name, 36);
    warn(out,
         state == Resolver::host_network
             ? "host-network: pod " + name +
                   " cannot resolve Services; use dnsPolicy ClusterFirstWithHostNet"
             : "dns-policy: pod " + name + " cannot resolve Services; use dnsPolicy ClusterFirst");
    return out;
  }

  Decision change() {
    Decision out{};
    out.outcome = Outcome::patch;
    out.reason = edits_.empty() ? Reason::restored : Reason::rewritten;
    out.findings = std::move(findings_);
    make_room(out);
    patch_texts(out);
    for (const Restored& restored : restored_) patch_env(restored, out);
    if (dns_patch_) {
      out.patch.push_back({PatchOp::Kind::add, "/spec/dnsPolicy", "\"ClusterFirstWithHostNet\""});
      out.findings.push_back({"spec.dnsPolicy", "ClusterFirst", "ClusterFirstWithHostNet",
                              "to resolve the name with hostNetwork"});
    }
    const std::string mark = decision_mark(out.reason);
    if (pod_.decision != mark)
      annotate(out, pod_.has_metadata, pod_.has_annotations, {{kDecisionAnnotation, mark}});
    add_warnings(out);
    return out;
  }

  /// For all that `change` may add, so that nothing is moved about while it grows.
  void make_room(Decision& out) const {
    std::size_t entries = 0, rewritten = 0;
    for (const Restored& restored : restored_) entries += restored.rows.size();
    for (const TextEdits& change : edits_) rewritten += change.edits.size();
    out.patch.reserve(edits_.size() + entries + 2);
    out.findings.reserve(std::min(kMaxFindings, out.findings.size() + rewritten) +
                         restored_.size() + 1);
  }

  void patch_texts(Decision& out) {
    std::size_t c = 0;
    std::string text;
    for (const TextEdits& change : edits_) {
      while (pod_.containers[c].texts_end <= change.text) ++c;
      const Container& container = pod_.containers[c];
      const Text& source = pod_.texts[change.text];
      text.clear();
      std::size_t done = 0;
      for (const Edit& edit : change.edits) {
        text.append(source.value, done, edit.begin - done);
        text += edit.row->variable.value;
        done = edit.end;
        if (out.findings.size() < kMaxFindings)
          out.findings.push_back(
              {place(container, source),
               std::string(source.value.substr(edit.begin, edit.end - edit.begin)),
               edit.row->variable.value, "rewritten"});
      }
      text.append(source.value, done);
      PatchOp op{PatchOp::Kind::replace, text_pointer(container, source), {}};
      op.value.reserve(text.size() + 16);
      append_json_string(op.value, text);
      out.patch.push_back(std::move(op));
    }
  }

  static std::string container_pointer(bool init, std::uint32_t index) {
    return std::string(init ? "/spec/initContainers/" : "/spec/containers/") +
           std::to_string(index) + "/";
  }

  static std::string text_pointer(const Container& container, const Text& text) {
    std::string out = container_pointer(container.init, container.index);
    switch (text.field) {
      case Field::command:
        out += "command/";
        break;
      case Field::args:
        out += "args/";
        break;
      case Field::env_value:
        return out + "env/" + std::to_string(text.index) + "/value";
      case Field::probe:
      case Field::hook:
        out.append(kExecPaths[text.exec]).append("/");
        break;
    }
    return out + std::to_string(text.index);
  }

  /// To the front of `env`, so that entries that follow can refer to them.
  static void patch_env(const Restored& restored, Decision& out) {
    const std::string path = container_pointer(restored.init, restored.index) + "env";
    std::string names, list = "[";
    std::size_t position = 0;
    for (const VariableTable::Row* row : restored.rows) {
      std::string entry;
      entry.reserve(row->variable.name.size() + row->variable.value.size() + 32);
      entry += "{\"name\":";
      append_json_string(entry, row->variable.name);
      entry += ",\"value\":";
      append_json_string(entry, row->variable.value);
      entry += '}';
      if (restored.has_env) {
        out.patch.push_back(
            {PatchOp::Kind::add, path + "/" + std::to_string(position++), std::move(entry)});
      } else {
        if (list.size() > 1) list += ',';
        list += entry;
      }
      if (!names.empty()) names += ' ';
      names.append(row->variable.name).append("=").append(row->variable.value);
    }
    if (!restored.has_env) out.patch.push_back({PatchOp::Kind::add, path, list + "]"});
    if (out.findings.size() < kMaxFindings)
      out.findings.push_back(
          {std::string(restored.init ? "spec.initContainers[" : "spec.containers[") +
               std::to_string(restored.index) + "].env",
           {},
           std::move(names),
           "restored"});
  }

  static void warn_cut(Decision& out) {
    warn(out, std::string(word(out.reason)) +
                  ": too many service variables for one container; some were left out");
  }

  void add_warnings(Decision& out) const {
    const std::string lead = std::string(word(out.reason)) + ": ";
    for (const std::uint32_t i : cared_)
      if (caring_[i]->convertible)
        warn(out, lead + "Service " + shortened(facts_.services[i].name, 30) +
                      " still has a cluster IP; delete and create it again");
    if (any_env_from_) warn(out, lead + "restored variables win over same names from envFrom");
    if (any_cut_) warn_cut(out);
    if (no_shell_)
      warn(out,
           lead + "no shell found to expand $NAME in command or args; without one write $(NAME)");
  }

  const Review& review_;
  const Pod& pod_;
  const Policy& policy_;
  const Facts& facts_;

  OwnNames own_;
  PodText text_;
  VariableTable table_;
  Tally tally_;
  std::vector<Named> named_;                          // by fact
  std::vector<std::optional<Caring>> caring_;         // by fact; see caring()
  std::vector<std::uint32_t> cared_;                  // facts with variables of concern
  std::vector<std::vector<std::uint32_t>> mentions_;  // by container: facts it names
  std::vector<std::uint32_t> mentioning_;             // texts with a mention, of whatever Service
  std::vector<TextEdits> edits_;
  std::vector<Restored> restored_;
  std::vector<Finding> findings_;
  bool table_has_links_ = false;  // then a text may hold a name that is no mention: `X_PORT`
  const ServiceFact* awaited_ = nullptr;  // absent, and worth another try
  bool dns_patch_ = false, any_env_from_ = false, any_cut_ = false, no_shell_ = false;
};

}  // namespace

std::optional<Reason> pod_gate(const Review& review) {
  if (review.pod.mirror) return Reason::mirror_pod;
  if (review.pod.opted_out) return Reason::opted_out;
  if (!review.pod.service_links) return Reason::service_links_off;
  return std::nullopt;
}

Decision decide_pod(const Review& review, const Policy& policy, const Facts& facts) {
  if (const auto reason = pod_gate(review)) {
    Decision out{};
    out.reason = *reason;
    return out;
  }
  return PodDecision(review, policy, facts).decide();
}

}  // namespace rayhook
