// Functions that t1.cpp and t1_argument.cpp share.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/space/parameter_space.h"

namespace atunner::t1 {

using nlohmann::json;

/// The member, or a JSON null if it is missing or `object` is not an object.
const json& At(const json& object, const char* key);
/// Text of a number, boolean or string, as which T1 writes expressions; nullopt for others.
std::optional<std::string> TextOf(const json& value);
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

/// The names that expressions of one file may use.
struct Scope {
  std::string where;  ///< the file
  ParameterSpace space;
  std::vector<std::string> problem;  ///< texts of ProblemSize, expressions over the parameters

  std::unexpected<Error> Bad(const std::string& key, const std::string& what,
                             const std::string& hint = "") const {
    return Invalid(what, where + ": " + key, hint);
  }
  /// The text with ProblemSize[i], max(parameter) and min(parameter) replaced by their values. In
  /// these, as in Kernel Tuner, a parameter means the list of its values.
  std::string Substituted(std::string text) const;
  Result<Expr> Parse(const json& stated, const std::string& key) const;
  /// A size of at least 1 that serves every configuration: parameters have their largest values.
  Result<int64_t> Size(const json& stated, const std::string& key) const;
};

}  // namespace atunner::t1
