// A space of configurations: tunable parameters with their values, and constraints that exclude
// combinations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/digest.h"
#include "atunner/base/result.h"
#include "atunner/model/expr/expr.h"
#include "atunner/model/value/value.h"

namespace atunner {

struct Parameter {
  std::string name;
  std::vector<Value> values;  ///< in the author's order; neighbours are adjacent
  std::string meaning;        ///< one line for people: "threads that share one row"
  /// When not empty, the values are the orders of these items, as MakePermutation lists them, and
  /// neighbours differ in a swap of two items.
  std::vector<Value> items = {};
  /// Where this is false the parameter has no influence. Only its inactive value is valid there, so
  /// that no two configurations are equivalent.
  std::optional<Expr> only_if = std::nullopt;
  std::optional<Value> otherwise = std::nullopt;  ///< the inactive value; the first unless stated

  const Value& Inactive() const { return otherwise ? *otherwise : values.front(); }
};

/// A combination is valid when every constraint is true for it.
struct Constraint {
  Expr condition;
  std::string reason;  ///< why combinations that break it are excluded; may be empty
};

/// One value per parameter, in the order of ParameterSpace::parameters.
struct Configuration {
  std::vector<Value> values;
  bool operator==(const Configuration&) const = default;
};

struct ParameterSpace {
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;

  std::vector<std::string> Names() const;
  /// Index of the parameter, or -1.
  int Find(std::string_view name) const;
  /// Product of the value counts, before constraints (saturates at 2^63).
  int64_t CartesianSize() const;
  /// The constraints and those that follow from `only_if`. No error after Validate.
  Result<std::vector<Constraint>> AllConstraints() const;
  /// kInvalidInput naming what is wrong: no values, duplicate names or values, a constraint with an
  /// unknown name, an inactive value that is not listed, a condition on the parameter itself.
  Status Validate(const Dims& dims) const;
  /// True when all constraints hold. Names in constraints are parameters or problem dimensions.
  Result<bool> Allows(const Configuration& configuration, const Dims& dims) const;
  /// "block_size_x=128, unroll=4".
  std::string Describe(const Configuration& configuration) const;
  Digest DigestOfConfiguration(const Configuration& configuration) const;
};

/// The value of a named parameter; the name must exist.
const Value& Get(const ParameterSpace& space, const Configuration& configuration,
                 std::string_view name);
int64_t GetInt(const ParameterSpace& space, const Configuration& configuration,
               std::string_view name);

}  // namespace atunner
