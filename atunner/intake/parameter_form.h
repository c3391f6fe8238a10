// The ways to state a parameter's values: a list, a range or a permutation, with a condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// `count` values from `from` to `to`, both included, with equal steps, or equal ratios if
/// `logarithmic`. They are integers if both ends and all values are, else rounded to twelve
/// significant digits. kInvalidInput for fewer than two values, ends that are equal or not numbers,
/// or a logarithmic range with an end ≤ 0.
Result<std::vector<Value>> SpacedValues(const Value& from, const Value& to, int64_t count,
                                        bool logarithmic);

struct ParameterForm {
  std::vector<Value> values;  ///< a list; exactly one of values, items and a range is stated
  std::vector<Value> items;   ///< the items of a permutation
  std::optional<Value> from;
  std::optional<Value> to;
  std::optional<Value> step;  ///< a range states either step or count
  std::optional<int64_t> count;
  std::string spacing = "linear";      ///< "linear" or "log", for a range with `count`
  std::optional<std::string> only_if;  ///< condition under which the parameter has a meaning
  std::optional<Value> otherwise;      ///< its value where the condition does not hold
  std::string meaning;
};

/// Adds the parameter to the space. If `otherwise` is not among the values it becomes the first
/// one, and a constraint allows it only where the condition does not hold. kInvalidInput says what
/// is wrong, without the parameter's name.
Status AddParameter(const std::string& name, const ParameterForm& form, ParameterSpace& space);

}  // namespace atunner
