// The ways to state what a parameter may be, whatever they were read from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// `count` values from `from` to `to`, both included: equal steps, or equal ratios when
/// `logarithmic`. Whole numbers where both ends and every value are whole, else twelve significant
/// digits. kInvalidInput for fewer than two values, ends that are equal or no numbers, or a
/// logarithm of what is not positive.
Result<std::vector<Value>> SpacedValues(const Value& from, const Value& to, int64_t count,
                                        bool logarithmic);

struct ParameterForm {
  std::vector<Value> values;  ///< one of values, items and a range
  std::vector<Value> items;
  std::optional<Value> from;
  std::optional<Value> to;
  std::optional<Value> step;  ///< step or count
  std::optional<int64_t> count;
  std::string spacing = "linear";  ///< with count: linear or log
  std::optional<std::string> only_if;
  std::optional<Value> otherwise;
  std::string meaning;
};

/// Adds the parameter to the space. An inactive value that is not among the values is listed first,
/// and a constraint keeps it for where the condition does not hold. kInvalidInput says what is
/// wrong, without the parameter's name.
Status AddParameter(const std::string& name, const ParameterForm& form, ParameterSpace& space);

}  // namespace atunner
