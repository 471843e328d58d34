// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "error.hpp"

namespace rayhook {

namespace ondemand = simdjson::ondemand;

/// Reads JSON on demand and remembers the first fault. Each reader returns false once something
/// is wrong; `fault` then says whether the text is no JSON at all (nothing can be answered) or
/// only has a value of the wrong type (the object is passed on unchanged). JSON null counts as
/// absent everywhere, as it does for Kubernetes.
class JsonWalk {
 public:
  enum class Fault { none, type, json };

  Fault fault = Fault::none;
  std::string what;

  /// Calls `on_field(key, value)` for each member; it returns false to stop.
  template <class F>
  bool object(ondemand::value value, std::string_view field, F&& on_field) {
    ondemand::json_type type;
    if (value.type().get(type)) return broken(field);
    if (type == ondemand::json_type::null) return true;
    if (type != ondemand::json_type::object) return wrong_type(field, "an object");
    ondemand::object object;
    if (auto error = value.get_object().get(object)) return broken(field, error);
    return members(object, field, on_field);
  }

  /// The same for an object that is held already (a document's root).
  template <class F>
  bool members(ondemand::object& object, std::string_view field, F&& on_field) {
    for (auto member : object) {
      std::string_view key;
      if (auto error = member.unescaped_key().get(key)) return broken(field, error);
      ondemand::value value;
      if (auto error = member.value().get(value)) return broken(field, error);
      if (!on_field(key, value)) return false;
    }
    return true;
  }

  /// Calls `on_element(value)` for each element; it returns false to stop. `is_array`, if given,
  /// tells an empty array from null.
  template <class F>
  bool array(ondemand::value value, std::string_view field, F&& on_element,
             bool* is_array = nullptr) {
    ondemand::json_type type;
    if (value.type().get(type)) return broken(field);
    if (type == ondemand::json_type::null) return true;
    if (type != ondemand::json_type::array) return wrong_type(field, "an array");
    if (is_array) *is_array = true;
    ondemand::array array;
    if (auto error = value.get_array().get(array)) return broken(field, error);
    for (auto element : array) {
      ondemand::value item;
      if (auto error = element.get(item)) return broken(field, error);
      if (!on_element(item)) return false;
    }
    return true;
  }

  /// A string into `out` (std::string or std::string_view); null leaves it as it is.
  template <class S>
  bool string(ondemand::value value, std::string_view field, S& out) {
    std::string_view text;
    auto error = value.get_string().get(text);
    if (!error) {
      out = text;
      return true;
    }
    if (error != simdjson::INCORRECT_TYPE) return broken(field, error);
    return null_or_wrong(value, field, "a string (a number or a word like yes: put it in quotes)");
  }

  /// An element that must be a string: null is a fault too (a list of arguments has no gaps).
  bool required_string(ondemand::value value, std::string_view field, std::string_view& out) {
    auto error = value.get_string().get(out);
    if (!error) return true;
    if (error != simdjson::INCORRECT_TYPE) return broken(field, error);
    return wrong_type(field, "a string");
  }

  bool boolean(ondemand::value value, std::string_view field, bool& out) {
    bool flag;
    auto error = value.get_bool().get(flag);
    if (!error) {
      out = flag;
      return true;
    }
    if (error != simdjson::INCORRECT_TYPE) return broken(field, error);
    return null_or_wrong(value, field, "true or false");
  }

  /// A port number 0…65535.
  bool port(ondemand::value value, std::string_view field, std::uint16_t& out) {
    ondemand::json_type type;
    if (value.type().get(type)) return broken(field);
    if (type == ondemand::json_type::null) return true;
    std::uint64_t number;
    if (type != ondemand::json_type::number || value.get_uint64().get(number) || number > 65535)
      return wrong_type(field, "a port number");
    out = static_cast<std::uint16_t>(number);
    return true;
  }

  /// Notes a member that was seen before: Kubernetes never sends one, and readers differ on which
  /// of the two counts.
  bool once(std::uint32_t& seen, unsigned bit, std::string_view field) {
    if (seen & (1U << bit)) {
      fault = Fault::type;
      what = "field " + std::string(field) + " stands there twice";
      return false;
    }
    seen |= 1U << bit;
    return true;
  }

  bool wrong_type(std::string_view field, std::string_view expected) {
    fault = Fault::type;
    what = "field " + std::string(field) + ": expected " + std::string(expected);
    return false;
  }

  bool broken(std::string_view field, simdjson::error_code error = simdjson::TAPE_ERROR) {
    fault = Fault::json;
    what =
        "not valid JSON (near field " + std::string(field) + "): " + simdjson::error_message(error);
    return false;
  }

 private:
  bool null_or_wrong(ondemand::value value, std::string_view field, std::string_view expected) {
    ondemand::json_type type;
    if (value.type().get(type)) return broken(field);
    return type == ondemand::json_type::null || wrong_type(field, expected);
  }
};

}  // namespace rayhook
