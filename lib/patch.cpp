// SPDX-License-Identifier: Apache-2.0
#include "patch.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

#include "version.hpp"

namespace rayhook {
namespace {

constexpr std::size_t kMaxWarning = 120;

/// The tokens of a JSON pointer, one by one.
struct Pointer {
  std::string_view rest;

  [[nodiscard]] bool take(std::string_view token) {
    if (!rest.starts_with('/')) return false;
    const std::string_view tail = rest.substr(1);
    const std::size_t end = std::min(tail.find('/'), tail.size());
    if (tail.substr(0, end) != token) return false;
    rest = tail.substr(end);
    return true;
  }

  [[nodiscard]] bool take_index(std::size_t& index) {
    if (!rest.starts_with('/')) return false;
    const char* begin = rest.data() + 1;
    const char* last = rest.data() + rest.size();
    const auto [end, error] = std::from_chars(begin, last, index);
    // No leading zeros: appliers differ on them (RFC 6901 forbids them).
    if (error != std::errc{} || (*begin == '0' && end != begin + 1)) return false;
    rest = std::string_view(end, static_cast<std::size_t>(last - end));
    return rest.empty() || rest.front() == '/';
  }

  [[nodiscard]] bool done() const { return rest.empty(); }
};

/// True if one of these eight bytes may have to be escaped in a JSON string: eight at a time, since
/// whole scripts pass through here. (For each byte: below 0x20, or equal to `"` or `\`.)
bool needs_escape(const char* eight) {
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof word);
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x8080808080808080;
  const auto has_zero = [](std::uint64_t w) { return (w - kOnes) & ~w & kHigh; };
  const std::uint64_t control = (word - kOnes * 0x20) & ~word & kHigh;
  return (control | has_zero(word ^ (kOnes * '"')) | has_zero(word ^ (kOnes * '\\'))) != 0;
}

bool is_string(std::string_view json) { return json.size() >= 2 && json.front() == '"'; }

/// A container while the operations are applied one after the other.
struct ContainerShape {
  bool has_env;
  std::size_t entries;  // of env
  std::uint32_t text;   // replacements come in the order of the texts: the next may be this one
};

/// What grows while the operations are applied.
struct Shape {
  bool has_metadata, has_annotations;
  std::vector<ContainerShape> containers;
  std::size_t first_init, first_main;  // where each list begins among the pod's containers

  bool annotation(const PatchOp& op, Pointer at) {
    if (op.kind != PatchOp::Kind::add) return false;
    if (at.done()) {
      const bool whole = !has_metadata && op.value.starts_with(R"({"annotations":{)");
      has_metadata = has_annotations = true;
      return whole;
    }
    if (!at.take("annotations") || !has_metadata) return false;
    if (at.done()) {
      const bool whole = !has_annotations && op.value.starts_with('{');
      has_annotations = true;
      return whole;
    }
    return has_annotations && at.rest.find('/', 1) == std::string_view::npos && is_string(op.value);
  }
};

bool service_op_fits(const Service& service, const PatchOp& op, Pointer at) {
  if (op.kind != PatchOp::Kind::add || !at.take("spec")) return false;
  const std::string_view member = at.rest;
  if (member == "/clusterIP") return op.value == "\"None\"";
  if (member == "/clusterIPs") return service.has_cluster_ips && op.value == "[\"None\"]";
  return member == "/publishNotReadyAddresses" && op.value == "true";
}

/// Finds the text that a pointer tail (`args/0`, `lifecycle/preStop/exec/command/2`) names, from
/// `next` on, and moves that behind it: linear over all replacements of a container.
bool has_text(const Pod& pod, const Container& container, std::uint32_t& next,
              std::string_view tail) {
  while (next < container.texts_end) {
    const Text& text = pod.texts[next++];
    Pointer at{tail};
    std::size_t index = 0;
    switch (text.field) {
      case Field::command:
        if (!at.take("command")) continue;
        break;
      case Field::args:
        if (!at.take("args")) continue;
        break;
      case Field::env_value:
        if (!at.take("env")) continue;
        break;
      case Field::probe:
      case Field::hook: {
        const std::string path = "/" + std::string(kExecPaths[text.exec]);
        if (!tail.starts_with(path)) continue;
        at.rest = tail.substr(path.size());
        break;
      }
    }
    if (!at.take_index(index) || index != text.index) continue;
    if (text.field == Field::env_value ? at.rest == "/value" : at.done()) return true;
  }
  return false;
}

bool container_op_fits(const Pod& pod, const PatchOp& op, Pointer at, bool init, Shape& shape) {
  std::size_t index = 0;
  if (!at.take_index(index)) return false;
  const std::size_t at_list = (init ? shape.first_init : shape.first_main) + index;
  if (at_list >= pod.containers.size()) return false;
  const Container& container = pod.containers[at_list];
  if (container.init != init || container.index != index) return false;
  auto& [has_env, entries, next_text] = shape.containers[at_list];
  if (op.kind == PatchOp::Kind::replace)
    // Replacements come first: the indices are those of the object as it came.
    return is_string(op.value) && entries == container.env_end - container.env_begin &&
           has_text(pod, container, next_text, at.rest);
  if (!at.take("env")) return false;
  if (at.done()) {
    const bool whole = !has_env && op.value.starts_with('[');
    has_env = true;
    return whole;
  }
  std::size_t position = 0;
  if (!at.take_index(position) || !at.done() || !has_env || position > entries) return false;
  ++entries;
  return op.value.starts_with('{');
}

bool pod_op_fits(const Pod& pod, const PatchOp& op, Pointer at, Shape& shape) {
  if (!at.take("spec")) return false;
  if (at.take("containers")) return container_op_fits(pod, op, at, false, shape);
  if (at.take("initContainers")) return container_op_fits(pod, op, at, true, shape);
  return op.kind == PatchOp::Kind::add && at.rest == "/dnsPolicy" && is_string(op.value);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  std::size_t plain = 0;  // what has not been appended yet
  for (std::size_t i = 0; i < text.size(); ++i) {
    while (text.size() - i >= 8 && !needs_escape(text.data() + i)) i += 8;
    if (i == text.size()) break;
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[static_cast<unsigned char>(c) >> 4];
        out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  out.append(text, plain, text.size() - plain);
  out += '"';
}

void append_pointer_token(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
}

std::string decision_mark(Reason reason) {
  std::string out(word(reason));
  return out.append("@").append(kVersion);
}

void annotate(Decision& decision, bool has_metadata, bool has_annotations,
              std::initializer_list<AnnotationValue> annotations) {
  if (has_metadata && has_annotations) {
    for (const auto& [key, value] : annotations) {
      PatchOp op{PatchOp::Kind::add, "/metadata/annotations/", {}};
      append_pointer_token(op.path, key);
      append_json_string(op.value, value);
      decision.patch.push_back(std::move(op));
    }
    return;
  }
  std::string map = "{";
  for (const auto& [key, value] : annotations) {
    if (map.size() > 1) map += ',';
    append_json_string(map, key);
    map += ':';
    append_json_string(map, value);
  }
  map += '}';
  if (has_metadata)
    decision.patch.push_back({PatchOp::Kind::add, "/metadata/annotations", std::move(map)});
  else
    decision.patch.push_back({PatchOp::Kind::add, "/metadata", "{\"annotations\":" + map + "}"});
}

void warn(Decision& decision, std::string text) {
  // The API server drops a warning with a control character whole (apimachinery
  // pkg/util/net/http.go), and cuts long ones.
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  if (text.size() > kMaxWarning) text.resize(kMaxWarning);
  if (std::ranges::find(decision.warnings, text) == decision.warnings.end())
    decision.warnings.push_back(std::move(text));
}

std::string shortened(std::string_view name, std::size_t limit) {
  if (name.size() <= limit) return std::string(name);
  const std::size_t tail = (limit - 2) / 2;
  const std::size_t head = limit - 2 - tail;
  return std::string(name.substr(0, head)) + ".." + std::string(name.substr(name.size() - tail));
}

bool patch_fits(const Review& review, const Decision& decision) {
  const bool pod = review.kind == ObjectKind::pod;
  Shape shape{pod ? review.pod.has_metadata : review.service.has_metadata,
              pod ? review.pod.has_annotations : review.service.has_annotations,
              {},
              0,
              0};
  if (pod) {
    const auto& all = review.pod.containers;
    for (const Container& container : all)
      shape.containers.push_back(
          {container.has_env, container.env_end - container.env_begin, container.texts_begin});
    const auto first = [&](bool init) {
      return static_cast<std::size_t>(std::ranges::find(all, init, &Container::init) - all.begin());
    };
    shape.first_init = first(true);
    shape.first_main = first(false);
  }
  return std::ranges::all_of(decision.patch, [&](const PatchOp& op) {
    Pointer at{op.path};
    if (at.take("metadata")) return shape.annotation(op, at);
    return pod ? pod_op_fits(review.pod, op, at, shape) : service_op_fits(review.service, op, at);
  });
}

}  // namespace rayhook
