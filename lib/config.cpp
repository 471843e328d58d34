// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "patch.hpp"
#include "yaml.hpp"
#include "yaml_emit.hpp"

namespace rayhook {
namespace {

using Json = nlohmann::ordered_json;

/// JSON on one line, in ASCII, not too long: for a complaint.
std::string shown(const Json& value) {
  return shortened(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
}

std::unexpected<Error> wrong(const std::string& key, const Json& value,
                             const std::string& expected) {
  const std::string given = value.is_null() ? "no value" : shown(value);
  return fail(Errc::bad_config, key + ": " + given + " is given; expected " + expected);
}

// The kinds of values. Each says what it takes, and reads and writes it.

/// One word of a few.
template <class Enum>
struct OneOf {
  std::vector<std::pair<std::string_view, Enum>> words;

  [[nodiscard]] Result<void> read(const std::string& key, const Json& value, Enum& out) const {
    std::string expected;
    for (const auto& [word, meaning] : words) {
      if (value.is_string() && value.get_ref<const std::string&>() == word) {
        out = meaning;
        return {};
      }
      if (!expected.empty()) expected += word == words.back().first ? " or " : ", ";
      expected += word;
    }
    return wrong(key, value, expected);
  }
  [[nodiscard]] Json write(const Enum& in) const {
    const auto found = std::ranges::find(words, in, [](const auto& pair) { return pair.second; });
    return std::string(found == words.end() ? "" : found->first);
  }
};

/// A time: `2s`, `500ms`, `1m` or `0`; in milliseconds.
struct Time {
  std::uint32_t most_ms;

  [[nodiscard]] Result<void> read(const std::string& key, const Json& value,
                                  std::uint32_t& out) const {
    if (const auto ms = milliseconds(value); ms && *ms <= most_ms) {
      out = static_cast<std::uint32_t>(*ms);
      return {};
    }
    return wrong(key, value, "a time from 0 to " + text(most_ms) + ", such as 2s or 500ms");
  }
  [[nodiscard]] Json write(const std::uint32_t& in) const {
    if (in == 0) return 0;
    return text(in);
  }

 private:
  static std::string text(std::uint32_t ms) {
    if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
  }
  static std::optional<std::uint64_t> milliseconds(const Json& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() == 0) return 0;
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc()) return std::nullopt;
    const std::string_view unit(end, text.data() + text.size());
    if (unit == "ms") return count;
    if (unit == "s") return std::uint64_t{count} * 1000;
    if (unit == "m") return std::uint64_t{count} * 60'000;
    return unit.empty() && count == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
};

/// A whole number from 1 on.
template <class Number>
struct Count {
  Number most;

  [[nodiscard]] Result<void> read(const std::string& key, const Json& value, Number& out) const {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() - 1 < most) {
      out = static_cast<Number>(value.get<std::uint64_t>());
      return {};
    }
    return wrong(key, value, "a whole number from 1 to " + std::to_string(most));
  }
  [[nodiscard]] Json write(const Number& in) const { return in; }
};

bool is_word_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// A DNS label (RFC 1123) of lower case.
bool is_dns_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, [](char c) { return is_word_character(c) || c == '-'; });
}

bool is_dns_name(std::string_view text) {
  // A name may have 253 characters, and `SERVICE.NAMESPACE.svc.` goes before this one.
  if (text.empty() || text.size() > 120) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, is_word_character);
}

/// A string of a certain form.
struct Text {
  bool (*fits)(std::string_view);
  std::string_view expected;

  [[nodiscard]] Result<void> read(const std::string& key, const Json& value,
                                  std::string& out) const {
    if (value.is_string() && fits(value.get_ref<const std::string&>())) {
      out = value.get_ref<const std::string&>();
      return {};
    }
    return wrong(key, value, std::string(expected));
  }
  [[nodiscard]] Json write(const std::string& in) const { return in; }
};

/// A list, which takes the place of the default one.
template <class Item>
struct ListOf {
  Item item;
  static constexpr std::size_t kMost = 64;

  template <class Value>
  [[nodiscard]] Result<void> read(const std::string& key, const Json& value,
                                  std::vector<Value>& out) const {
    if (!value.is_array() || value.size() > kMost)
      return wrong(key, value, "a list of at most " + std::to_string(kMost) + " values: [a, b]");
    out.assign(value.size(), {});
    for (std::size_t i = 0; i < out.size(); ++i)
      if (auto read = item.read(key + "[" + std::to_string(i) + "]", value[i], out[i]); !read)
        return read;
    return {};
  }
  template <class Value>
  [[nodiscard]] Json write(const std::vector<Value>& in) const {
    Json out = Json::array();
    for (const Value& one : in) out.push_back(item.write(one));
    return out;
  }
};

std::string path(std::string_view group, std::string_view name) {
  return group.empty() ? std::string(name) : std::string(group) + "." + std::string(name);
}

/// One key of the configuration. `group` is the mapping that it stands in; empty: the outermost.
struct Option {
  std::string_view group, name;
  std::function<Result<void>(const std::string& key, const Json&, Policy&)> read;
  std::function<Json(const Policy&)> write;
};

/// `place` is a function from the policy to the member that the option sets.
template <class Type, class Place>
Option option(std::string_view group, std::string_view name, const Type& type, Place place) {
  return {group, name,
          [type, place](const std::string& key, const Json& value, Policy& policy) {
            return type.read(key, value, place(policy));
          },
          [type, place](const Policy& policy) { return type.write(place(policy)); }};
}

/// All there are, in the order of the documentation. Reading, writing and the tests go by this.
std::vector<Option> options() {
  const Text port_name{is_dns_label, "the name of a port: a-z, 0-9 and -, at most 63 characters"};
  const Text word{is_word, "a word of a-z and 0-9, at most 63 characters"};
  const Text domain{is_dns_name,
                    "a DNS name in lower case without a dot at its end, at most 120 "
                    "characters, such as cluster.local"};
  return {
      option("", "kuberay",
             OneOf<KubeRay>{{{"auto", KubeRay::automatic},
                             {"convert", KubeRay::convert},
                             {"ignore", KubeRay::ignore}}},
             [](auto& policy) -> auto& { return policy.kuberay; }),
      option("", "dnsName",
             OneOf<DnsName>{{{"short", DnsName::short_name},
                             {"namespace", DnsName::with_namespace},
                             {"fqdn", DnsName::fqdn}}},
             [](auto& policy) -> auto& { return policy.dns_name; }),
      option("", "clusterDomain", domain,
             [](auto& policy) -> auto& { return policy.cluster_domain; }),
      option("", "dockerLinks",
             OneOf<DockerLinks>{
                 {{"mentioned", DockerLinks::mentioned}, {"always", DockerLinks::always}}},
             [](auto& policy) -> auto& { return policy.docker_links; }),
      option("", "hostNetworkDns",
             OneOf<HostNetworkDns>{
                 {{"patch", HostNetworkDns::patch}, {"leave", HostNetworkDns::leave}}},
             [](auto& policy) -> auto& { return policy.host_network_dns; }),
      option("unknownService", "hold", Time{10'000},
             [](auto& policy) -> auto& { return policy.unknown_service.hold_ms; }),
      option("unknownService", "retryFor", Time{600'000},
             [](auto& policy) -> auto& { return policy.unknown_service.retry_for_ms; }),
      option("head", "portNames", ListOf<Text>{port_name},
             [](auto& policy) -> auto& { return policy.gcs_port_names; }),
      option("head", "portNumbers", ListOf<Count<std::uint16_t>>{{65535}},
             [](auto& policy) -> auto& { return policy.gcs_port_numbers; }),
      option("head", "words", ListOf<Text>{word},
             [](auto& policy) -> auto& { return policy.head_words; }),
      option("restored", "maxVariables", Count<std::size_t>{4096},
             [](auto& policy) -> auto& { return policy.max_restored; }),
      option("restored", "maxBytes", Count<std::size_t>{256 * 1024},
             [](auto& policy) -> auto& { return policy.max_restored_bytes; }),
  };
}

/// How many characters to insert, remove or replace (Levenshtein); the case does not matter.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::unexpected<Error> unknown(const std::vector<Option>& all, std::string_view group,
                               std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);  // of `head.words`, say
  std::string_view nearest, above;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  const auto consider = [&](std::string_view key, std::string_view its_group) {
    const std::size_t far = distance(last.substr(0, 100), key);
    if (far >= least) return;
    least = far;
    nearest = key;
    above = its_group;
  };
  // Within a group only its keys; outermost all of them, for one that lacks its group.
  for (const Option& one : all) {
    if (group.empty() && !one.group.empty()) consider(one.group, "");
    if (group.empty() || one.group == group) consider(one.name, one.group);
  }
  std::string what = "there is no key " + shown(path(group, name)) + "; the nearest one is ";
  what += nearest;
  if (!above.empty()) what.append(", under ").append(above);
  return fail(Errc::bad_config, std::move(what));
}

/// Reads the keys of one mapping.
Result<void> read_members(const std::vector<Option>& all, std::string_view group,
                          const Json& mapping, Policy& policy) {
  if (mapping.is_null()) return {};  // all of it is left out, or commented out
  if (!mapping.is_object()) {
    if (!group.empty()) return wrong(std::string(group), mapping, "keys and values");
    return fail(Errc::bad_config, shown(mapping) + " is given; expected keys and values");
  }
  for (const auto& [name, value] : mapping.get_ref<const Json::object_t&>()) {
    const auto found = std::ranges::find_if(
        all, [&](const Option& one) { return one.group == group && one.name == name; });
    Result<void> read;
    if (found != all.end())
      read = found->read(path(group, name), value, policy);
    else if (group.empty() && !name.empty() && std::ranges::count(all, name, &Option::group) > 0)
      read = read_members(all, name, value, policy);
    else
      read = unknown(all, group, name);
    if (!read) return read;
  }
  return {};
}

}  // namespace

Result<Policy> read_policy(std::string_view yaml) {
  const Result<Json> document = read_yaml(yaml);
  if (!document) return fail(Errc::bad_config, document.error().what);
  Policy policy;
  if (auto read = read_members(options(), "", *document, policy); !read)
    return std::unexpected(std::move(read.error()));
  return policy;
}

Json policy_json(const Policy& policy) {
  Json out = Json::object();
  for (const Option& one : options()) {
    Json& mapping = one.group.empty() ? out : out[std::string(one.group)];
    mapping[std::string(one.name)] = one.write(policy);
  }
  return out;
}

std::string write_policy(const Policy& policy) {
  std::string out;
  yaml::append_block_members(out, policy_json(policy), 0);
  return out;
}

}  // namespace rayhook
