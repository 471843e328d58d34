// SPDX-License-Identifier: Apache-2.0
#include "review.hpp"

#include "json_walk.hpp"
#include "pod_reader.hpp"
#include "service_reader.hpp"

namespace rayhook {

static_assert(kPadding >= simdjson::SIMDJSON_PADDING);

struct ReviewReader::State {
  ondemand::parser parser{kMaxReviewBytes + kPadding};
  Review review;

  void clear();
  bool read_root(JsonWalk& walk, ondemand::object& root, bool kind_is_known);
  bool read_request(JsonWalk& walk, ondemand::value value, bool kind_is_known);
  bool read_object(JsonWalk& walk, ondemand::value value);

  std::string_view kind, group, version;  // request.kind
  bool has_request = false, has_kind = false, has_object = false, object_before_kind = false;
};

ReviewReader::ReviewReader() : state_(std::make_unique<State>()) {}
ReviewReader::~ReviewReader() = default;
ReviewReader::ReviewReader(ReviewReader&&) noexcept = default;
ReviewReader& ReviewReader::operator=(ReviewReader&&) noexcept = default;

void ReviewReader::shrink() { state_ = std::make_unique<State>(); }

void ReviewReader::State::clear() {
  Pod pod = std::move(review.pod);
  pod.clear();
  review = Review{};
  review.pod = std::move(pod);
  kind = group = version = {};
  has_request = has_kind = has_object = object_before_kind = false;
}

namespace {

/// The text of an error for bytes that are no JSON: simdjson's words, without its internals.
std::unexpected<Error> not_json(simdjson::error_code error) {
  if (error == simdjson::DEPTH_ERROR || error == simdjson::CAPACITY)
    return fail(Errc::too_large, std::string("the review is too large or too deep: ") +
                                     simdjson::error_message(error));
  return fail(Errc::bad_json,
              std::string("the review is not valid JSON: ") + simdjson::error_message(error));
}

/// Whether a text has more than kMaxReviewStructure. Right for JSON; for other texts any answer is.
bool too_much_structure(std::string_view json) {
  if (json.size() <= kMaxReviewStructure) return false;
  std::size_t count = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string)
      count += c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' ? 1 : 0;
  }
  return count > kMaxReviewStructure;
}

ObjectKind object_kind(std::string_view group, std::string_view version, std::string_view kind) {
  if (!group.empty() || version != "v1") return ObjectKind::other;
  if (kind == "Pod") return ObjectKind::pod;
  if (kind == "Service") return ObjectKind::service;
  return ObjectKind::other;
}

}  // namespace

bool ReviewReader::State::read_object(JsonWalk& walk, ondemand::value value) {
  has_object = true;
  if (review.operation != "CREATE" || !review.subresource.empty()) return true;
  if (review.kind == ObjectKind::other) return true;
  // What is wrong in the object is not wrong with the review: the answer still goes out.
  JsonWalk inner;
  ondemand::json_type type;
  if (value.type().get(type)) return walk.broken("request.object");
  if (type != ondemand::json_type::object) {
    review.malformed = "the object is not a JSON object";
    return true;
  }
  ondemand::object object;
  if (auto error = value.get_object().get(object)) return walk.broken("request.object", error);
  const bool fine = review.kind == ObjectKind::pod ? read_pod(inner, object, review.pod)
                                                   : read_service(inner, object, review.service);
  if (!fine) {
    if (inner.fault == JsonWalk::Fault::json) {
      walk.fault = inner.fault;
      walk.what = inner.what;
      return false;
    }
    review.malformed = inner.what;
  }
  return true;
}

bool ReviewReader::State::read_request(JsonWalk& walk, ondemand::value value, bool kind_is_known) {
  std::uint32_t seen = 0;
  return walk.object(value, "request", [&](std::string_view key, ondemand::value item) {
    has_request = true;
    if (key == "uid")
      return walk.once(seen, 0, key) && walk.string(item, "request.uid", review.uid);
    if (key == "kind") {
      if (!walk.once(seen, 1, key)) return false;
      has_kind = true;
      if (!walk.object(item, "request.kind", [&](std::string_view part, ondemand::value text) {
            if (part == "group") return walk.string(text, "request.kind.group", group);
            if (part == "version") return walk.string(text, "request.kind.version", version);
            if (part == "kind") return walk.string(text, "request.kind.kind", kind);
            return true;
          }))
        return false;
      review.kind = object_kind(group, version, kind);
      review.kind_name = kind;
      return true;
    }
    if (key == "operation")
      return walk.once(seen, 2, key) && walk.string(item, "request.operation", review.operation);
    if (key == "subResource") return walk.string(item, "request.subResource", review.subresource);
    if (key == "name") return walk.string(item, "request.name", review.name);
    if (key == "namespace")
      return walk.once(seen, 3, key) && walk.string(item, "request.namespace", review.ns);
    if (key == "dryRun") return walk.boolean(item, "request.dryRun", review.dry_run);
    if (key == "userInfo")
      return walk.object(item, "request.userInfo",
                         [&](std::string_view part, ondemand::value text) {
                           return part != "username" ||
                                  walk.string(text, "request.userInfo.username", review.user);
                         });
    if (key == "object") {
      if (!walk.once(seen, 4, key)) return false;
      // The API server sends kind and operation first; others may not: then read a second time.
      if (!kind_is_known && (!has_kind || review.operation.empty())) {
        object_before_kind = true;
        return true;
      }
      return read_object(walk, item);
    }
    return true;
  });
}

bool ReviewReader::State::read_root(JsonWalk& walk, ondemand::object& root, bool kind_is_known) {
  std::uint32_t seen = 0;
  return walk.members(root, "the review", [&](std::string_view key, ondemand::value value) {
    if (key == "apiVersion")
      return walk.once(seen, 0, key) && walk.string(value, "apiVersion", review.api_version);
    if (key == "kind") {
      std::string_view word;
      if (!walk.once(seen, 1, key) || !walk.string(value, "kind", word)) return false;
      return word == "AdmissionReview" || walk.wrong_type("kind", "\"AdmissionReview\"");
    }
    if (key == "request")
      return walk.once(seen, 2, key) && read_request(walk, value, kind_is_known);
    return true;
  });
}

Result<const Review*> ReviewReader::parse(std::string_view json) {
  if (json.size() > kMaxReviewBytes)
    return fail(Errc::too_large,
                "the review is over " + std::to_string(kMaxReviewBytes) + " bytes");
  if (too_much_structure(json))
    return fail(Errc::too_large, "the review is too large: it has too many JSON values");
  State& state = *state_;
  bool kind_is_known = false;
  ondemand::document document;
  for (;;) {
    const ObjectKind kind = state.review.kind;
    const std::string operation(state.review.operation), subresource(state.review.subresource);
    state.clear();
    if (kind_is_known) {
      state.review.kind = kind;
      // Held by the Review until the fields come by again in this second reading.
      state.review.operation = operation == "CREATE" ? "CREATE" : "other";
      state.review.subresource = subresource.empty() ? "" : "other";
    }
    if (auto error =
            state.parser.iterate(json.data(), json.size(), json.size() + kPadding).get(document))
      return not_json(error);
    ondemand::object root;
    if (auto error = document.get_object().get(root)) {
      if (error == simdjson::INCORRECT_TYPE)
        return fail(Errc::bad_review, "not an AdmissionReview: expected a JSON object");
      return not_json(error);
    }
    JsonWalk walk;
    if (!state.read_root(walk, root, kind_is_known)) {
      const bool json_fault = walk.fault == JsonWalk::Fault::json;
      return fail(json_fault ? Errc::bad_json : Errc::bad_review,
                  (json_fault ? "the review is " : "not an AdmissionReview: ") + walk.what);
    }
    // On-demand reading has looked at everything when its place is behind the last bracket.
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      return fail(Errc::bad_json, "the review is not valid JSON: something follows its end");
    if (!state.object_before_kind || kind_is_known) break;
    kind_is_known = true;
  }
  Review& review = state.review;
  if (review.api_version != "admission.k8s.io/v1" &&
      review.api_version != "admission.k8s.io/v1beta1")
    return fail(Errc::bad_review,
                "apiVersion: expected admission.k8s.io/v1 or admission.k8s.io/v1beta1");
  if (!state.has_request) return fail(Errc::bad_review, "not an AdmissionReview: no request");
  if (review.uid.empty()) return fail(Errc::bad_review, "request.uid is missing");
  if (review.kind != ObjectKind::other && !state.has_object)
    review.malformed = "the review holds no object";
  if (review.kind == ObjectKind::pod) {
    if (review.name.empty()) review.name = review.pod.name;
    review.generate_name = review.pod.generate_name;
  } else if (review.kind == ObjectKind::service) {
    if (review.name.empty()) review.name = review.service.name;
    review.generate_name = review.service.generate_name;
  }
  return &review;
}

Result<const Review*> ReviewReader::parse_pod(std::string_view json) {
  State& state = *state_;
  state.clear();
  ondemand::document document;
  if (auto error =
          state.parser.iterate(json.data(), json.size(), json.size() + kPadding).get(document))
    return not_json(error);
  ondemand::object root;
  if (auto error = document.get_object().get(root)) return not_json(error);
  Review& review = state.review;
  review.kind = ObjectKind::pod;
  review.operation = "CREATE";
  JsonWalk walk;
  if (!read_pod(walk, root, review.pod)) {
    if (walk.fault == JsonWalk::Fault::json) return fail(Errc::bad_json, "the pod is " + walk.what);
    review.malformed = walk.what;
  }
  review.name = review.pod.name;
  review.generate_name = review.pod.generate_name;
  return &review;
}

}  // namespace rayhook
