// SPDX-License-Identifier: Apache-2.0
#include "variables.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rayhook {
namespace {

constexpr std::string_view kHost = "_SERVICE_HOST";
constexpr std::string_view kPort = "_SERVICE_PORT";
constexpr std::string_view kLink = "_PORT_";
constexpr std::size_t kMaxLabel = 63;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_upper(c) || is_digit(c) || c == '_'; }

char mangled(char c) {
  if (c >= 'a' && c <= 'z') return static_cast<char>(c - 'a' + 'A');
  return c == '-' ? '_' : c;
}

std::string mangled(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return mangled(c); });
  return out;
}

/// A DNS-1035 label, mangled: a letter first, no dash (now `_`) at the end.
bool is_prefix(std::string_view prefix) {
  return !prefix.empty() && prefix.size() <= kMaxLabel && is_upper(prefix.front()) &&
         prefix.back() != '_' && prefix != "KUBERNETES";
}

/// `6379_TCP`, `6379_TCP_ADDR` …: what may follow `X_PORT_` in a docker-link name.
bool is_link_tail(std::string_view tail) {
  std::size_t digits = 0;
  while (digits < tail.size() && is_digit(tail[digits])) ++digits;
  if (digits == 0 || digits > 5) return false;
  tail.remove_prefix(digits);
  for (std::string_view protocol : {"_TCP", "_UDP", "_SCTP"}) {
    if (!tail.starts_with(protocol)) continue;
    const std::string_view rest = tail.substr(protocol.size());
    return rest.empty() || rest == "_PROTO" || rest == "_PORT" || rest == "_ADDR";
  }
  return false;
}

}  // namespace

std::string variable_prefix(std::string_view service) { return mangled(service); }

std::string service_name(std::string_view prefix) {
  std::string out(prefix);
  for (char& c : out) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return out;
}

bool names_service(std::string_view prefix, std::string_view service) {
  return std::ranges::equal(prefix, service, [](char p, char s) { return p == mangled(s); });
}

std::string dns_name(std::string_view service, std::string_view ns, const Policy& policy) {
  std::string out(service);
  if (policy.dns_name == DnsName::short_name || ns.empty()) return out;
  out.append(".").append(ns);
  if (policy.dns_name == DnsName::fqdn) out.append(".svc.").append(policy.cluster_domain);
  return out;
}

void append_variables(const Service& service, std::string_view dns_name, bool docker_links,
                      std::vector<ServiceVariable>& out) {
  const std::string prefix = variable_prefix(service.name);
  const std::string host(dns_name);
  // Kubelet makes the first port's variables even if there is no port: nothing to say then.
  if (service.ports.empty()) {
    out.push_back({prefix + "_SERVICE_HOST", host, VariableKind::host});
    return;
  }
  out.reserve(out.size() + 2 + service.ports.size() * (docker_links ? 6 : 1));
  const auto number = [](const ServicePort& port) { return std::to_string(port.target); };
  const auto known = [](const ServicePort& port) { return port.target_name.empty(); };

  out.push_back({prefix + "_SERVICE_HOST", host, VariableKind::host});
  if (known(service.ports.front()))
    out.push_back({prefix + "_SERVICE_PORT", number(service.ports.front()), VariableKind::port});
  for (const ServicePort& port : service.ports)
    if (!port.name.empty() && known(port))
      out.push_back(
          {prefix + "_SERVICE_PORT_" + mangled(port.name), number(port), VariableKind::port});
  if (!docker_links) return;

  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; });
    return text;
  };
  bool first = true;
  for (const ServicePort& port : service.ports) {
    if (!known(port)) {
      first = false;
      continue;
    }
    const std::string protocol = lower(port.protocol);
    std::string url = protocol;
    url.append("://").append(host).append(":").append(number(port));
    if (first) out.push_back({prefix + "_PORT", url, VariableKind::docker_link});
    first = false;
    // The name holds the Service's port, the value where to go.
    std::string link = prefix + "_PORT_";
    link.append(std::to_string(port.port)).append("_").append(port.protocol);
    out.push_back({link, url, VariableKind::docker_link});
    out.push_back({link + "_PROTO", protocol, VariableKind::docker_link});
    out.push_back({link + "_PORT", number(port), VariableKind::docker_link});
    out.push_back({link + "_ADDR", host, VariableKind::docker_link});
  }
}

bool MentionFinder::next(Mention& out) {
  for (;;) {
    if (next_in_identifier(out)) return true;
    // On to the next identifier that holds `_S` or `_P`; memchr passes over what has no `_`.
    for (;;) {
      const void* hit = pos_ < text_.size()
                            ? std::memchr(text_.data() + pos_, '_', text_.size() - pos_)
                            : nullptr;
      if (!hit) {
        pos_ = begin_ = end_ = split_ = text_.size();
        return false;
      }
      const auto at = static_cast<std::size_t>(static_cast<const char*>(hit) - text_.data());
      pos_ = at + 1;
      const char after = pos_ < text_.size() ? text_[pos_] : '\0';
      if (after != 'S' && after != 'P') continue;
      begin_ = at;
      // Never further back than the last identifier's end, which keeps the whole linear.
      while (begin_ > end_ && is_name_char(text_[begin_ - 1])) --begin_;
      end_ = at;
      while (end_ < text_.size() && is_name_char(text_[end_])) ++end_;
      split_ = at;
      pos_ = end_;
      break;
    }
  }
}

bool MentionFinder::next_in_identifier(Mention& out) {
  if (split_ >= end_) return false;
  // A lower-case letter makes it another name (`…_SERVICE_HOSTname`).
  const bool goes_on = end_ < text_.size() && text_[end_] >= 'a' && text_[end_] <= 'z';
  const std::string_view name = text_.substr(begin_, end_ - begin_);
  while (!goes_on && split_ < end_) {
    const std::size_t at = text_.substr(0, end_).find('_', split_);
    if (at == std::string_view::npos) break;
    split_ = at + 1;
    const std::string_view rest = text_.substr(at, end_ - at);
    const bool host = rest == kHost;
    const bool port =
        rest.starts_with(kPort) && (rest.size() == kPort.size() || rest[kPort.size()] == '_');
    const bool link = rest.starts_with(kLink) && is_link_tail(rest.substr(kLink.size()));
    if (!host && !port && !link) continue;
    const std::string_view prefix = text_.substr(begin_, at - begin_);
    if (!is_prefix(prefix)) {
      // An over-long run before it can only be no Service; and it must not be tried again and
      // again, which would be quadratic.
      if (prefix.size() > kMaxLabel) break;
      continue;
    }
    out = {begin_, end_, name, prefix, link};
    return true;
  }
  split_ = end_;
  return false;
}

}  // namespace rayhook
