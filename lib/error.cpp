// SPDX-License-Identifier: Apache-2.0
#include "error.hpp"

namespace rayhook {

std::string_view word(Errc code) {
  switch (code) {
    case Errc::bad_json:
      return "bad_json";
    case Errc::bad_review:
      return "bad_review";
    case Errc::too_large:
      return "too_large";
    case Errc::bad_manifest:
      return "bad_manifest";
    case Errc::bad_usage:
      return "bad_usage";
    case Errc::bad_config:
      return "bad_config";
    case Errc::bad_certificate:
      return "bad_certificate";
    case Errc::io:
      return "io";
    case Errc::unreachable:
      return "unreachable";
    case Errc::internal:
      return "internal";
  }
  return "internal";
}

}  // namespace rayhook
