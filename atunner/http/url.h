// The target of a request: path and query, decoded and checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::http {

struct Url {
  /// Decoded segments: {"api", "v1", "runs"}. None is empty, "." or "..", or holds a slash, a
  /// backslash or a control character.
  std::vector<std::string> path;
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in their order

  /// The value of the first parameter of this name.
  std::optional<std::string> Find(std::string_view name) const;
};

/// kInvalidInput for a target that is no absolute path or would lead out of it.
Result<Url> ParseUrl(std::string_view target);

/// Percent-encodes all but letters, digits and -._~
std::string PercentEncode(std::string_view text);

/// nullopt for a broken escape.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

}  // namespace atunner::http
