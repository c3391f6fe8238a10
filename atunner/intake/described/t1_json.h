// Pieces that the readers of a T1 file share (t1.cpp, t1_argument.cpp).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner::t1 {

using nlohmann::json;

/// The member, or null for one that is missing or of what is no object.
const json& At(const json& object, const char* key);
/// Text of a number, a boolean or a string: T1 writes expressions as any of them.
std::optional<std::string> TextOf(const json& value);
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

/// What the expressions of one file may name.
struct Scope {
  std::string where;  ///< the file
  ParameterSpace space;
  std::vector<std::string> problem;  ///< texts of ProblemSize, expressions over the parameters

  std::unexpected<Error> Bad(const std::string& key, const std::string& what,
                             const std::string& hint = "") const {
    return Invalid(what, where + ": " + key, hint);
  }
  /// The text with ProblemSize[i], max(parameter) and min(parameter) replaced: parameters stand for
  /// lists there, as in Kernel Tuner.
  std::string Substituted(std::string text) const;
  Result<Expr> Parse(const json& stated, const std::string& key) const;
  /// A size of at least 1, the same for every configuration: where it names a parameter, its
  /// largest value counts.
  Result<int64_t> Size(const json& stated, const std::string& key) const;
};

}  // namespace atunner::t1
