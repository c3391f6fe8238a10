#include "atunner/model/parameter_space.h"

#include <algorithm>
#include <set>

namespace atunner {

std::vector<std::string> ParameterSpace::Names() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

int ParameterSpace::Find(std::string_view name) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t ParameterSpace::CartesianSize() const {
  int64_t size = 1;
  for (const Parameter& parameter : parameters) {
    if (__builtin_mul_overflow(size, static_cast<int64_t>(parameter.values.size()), &size)) return INT64_MAX;
  }
  return size;
}

Status ParameterSpace::Validate(const Dims& dims) const {
  std::set<std::string> seen;
  for (const Parameter& parameter : parameters) {
    if (!seen.insert(parameter.name).second) return Invalid("parameter '" + parameter.name + "' is defined twice");
    if (parameter.values.empty())
      return Invalid("parameter '" + parameter.name + "' has no values", "", "list at least one");
    for (size_t i = 0; i < parameter.values.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (parameter.values[i] == parameter.values[j]) {
          return Invalid("parameter '" + parameter.name + "' lists the value " + ToString(parameter.values[i]) +
                         " twice");
        }
      }
    }
  }
  for (const Constraint& constraint : constraints) {
    for (const std::string& name : constraint.condition.Names()) {
      if (!seen.contains(name) && !dims.contains(name)) {
        return Invalid("unknown name '" + name + "'", "constraint '" + constraint.condition.text() + "'",
                       "constraints may use the parameters and the problem's dimensions");
      }
    }
  }
  return {};
}

Result<bool> ParameterSpace::Allows(const Configuration& configuration, const Dims& dims) const {
  ATUNNER_CHECK(configuration.values.size() == parameters.size());
  const std::vector<std::string> names = Names();
  Bindings bindings;
  bindings.Add(names, configuration.values).Add(dims);
  for (const Constraint& constraint : constraints) {
    ATUNNER_TRY(const bool holds, constraint.condition.EvaluateBool(bindings));
    if (!holds) return false;
  }
  return true;
}

std::string ParameterSpace::Describe(const Configuration& configuration) const {
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i) {
    text += (i ? ", " : "") + parameters[i].name + "=" + ToString(configuration.values[i]);
  }
  return text;
}

Digest ParameterSpace::DigestOfConfiguration(const Configuration& configuration) const {
  // Ordered by name, so that reordering the parameters in a file does not forget what is known.
  std::vector<std::string> fields;
  for (size_t i = 0; i < parameters.size(); ++i) {
    fields.push_back(parameters[i].name + "=" + std::to_string(configuration.values[i].index()) +
                     ToString(configuration.values[i]));
  }
  std::ranges::sort(fields);
  return DigestOf(fields);
}

const Value& Get(const ParameterSpace& space, const Configuration& configuration, std::string_view name) {
  const int index = space.Find(name);
  ATUNNER_CHECK(index >= 0);
  return configuration.values[static_cast<size_t>(index)];
}

int64_t GetInt(const ParameterSpace& space, const Configuration& configuration, std::string_view name) {
  return static_cast<int64_t>(ToDouble(Get(space, configuration, name)));
}

}  // namespace atunner
