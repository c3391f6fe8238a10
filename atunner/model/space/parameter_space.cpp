#include "atunner/model/space/parameter_space.h"

#include <algorithm>
#include <set>

#include "atunner/model/space/permutation.h"

namespace atunner {
namespace {

/// The value in the syntax of expressions. A text with quotes of both kinds has no such form.
std::string Literal(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr)
    return text->find('\'') == std::string::npos ? "'" + *text + "'" : '"' + *text + '"';
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  return ToString(value);
}

Status ValidateValues(const Parameter& parameter) {
  const std::string name = "parameter '" + parameter.name + "'";
  if (parameter.values.empty()) return Invalid(name + " has no values", "", "list at least one");
  std::vector<Value> sorted = parameter.values;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end())
    return Invalid(name + " lists the value " + ToString(*twice) + " twice");
  if (!parameter.items.empty()) {
    ATUNNER_TRY(const std::vector<Value> orders, OrdersOf(parameter.items));
    if (orders != parameter.values)
      return Invalid(name + ": its values are not the orders of its items");
  }
  if (std::ranges::find(parameter.values, parameter.Inactive()) == parameter.values.end())
    return Invalid(name + " does not list its inactive value " + ToString(parameter.Inactive()));
  if (!parameter.only_if) return {};
  const auto literal = Expr::Parse(Literal(parameter.Inactive()));
  const auto read_back = literal ? literal->Evaluate({})
                                 : Result<Value>(std::unexpected(literal.error()));
  if (!read_back || !LooselyEqual(*read_back, parameter.Inactive()))
    return Invalid(name + ": its inactive value cannot be written in an expression");
  return {};
}

}  // namespace

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
    if (__builtin_mul_overflow(size, static_cast<int64_t>(parameter.values.size()), &size))
      return INT64_MAX;
  }
  return size;
}

Result<std::vector<Constraint>> ParameterSpace::AllConstraints() const {
  std::vector<Constraint> all = constraints;
  for (const Parameter& parameter : parameters) {
    if (!parameter.only_if) continue;
    const std::string text = parameter.name + " == " + Literal(parameter.Inactive()) + " or (" +
                             parameter.only_if->text() + ")";
    ATUNNER_TRY(Expr condition, Expr::Parse(text));
    all.push_back({std::move(condition), "'" + parameter.name + "' means nothing otherwise"});
  }
  return all;
}

Status ParameterSpace::Validate(const Dims& dims) const {
  std::set<std::string> seen;
  for (const Parameter& parameter : parameters) {
    if (!seen.insert(parameter.name).second)
      return Invalid("parameter '" + parameter.name + "' is defined twice");
    ATUNNER_RETURN_IF_ERROR(ValidateValues(parameter));
  }
  const auto known = [&](const Expr& expr, const std::string& where) -> Status {
    for (const std::string& name : expr.Names()) {
      if (!seen.contains(name) && !dims.contains(name))
        return Invalid("unknown name '" + name + "'", where,
                       "constraints may use the parameters and the problem's dimensions");
    }
    return {};
  };
  for (const Constraint& constraint : constraints)
    ATUNNER_RETURN_IF_ERROR(
        known(constraint.condition, "constraint '" + constraint.condition.text() + "'"));
  for (const Parameter& parameter : parameters) {
    if (!parameter.only_if) continue;
    const std::string where = "condition of parameter '" + parameter.name + "'";
    ATUNNER_RETURN_IF_ERROR(known(*parameter.only_if, where));
    const std::vector<std::string> names = parameter.only_if->Names();
    if (std::ranges::find(names, parameter.name) != names.end())
      return Invalid("it names the parameter itself", where);
  }
  return {};
}

Result<bool> ParameterSpace::Allows(const Configuration& configuration, const Dims& dims) const {
  ATUNNER_CHECK(configuration.values.size() == parameters.size());
  const std::vector<std::string> names = Names();
  Bindings bindings;
  bindings.Add(names, configuration.values).Add(dims);
  ATUNNER_TRY(const std::vector<Constraint> all, AllConstraints());
  for (const Constraint& constraint : all) {
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

const Value& Get(const ParameterSpace& space, const Configuration& configuration,
                 std::string_view name) {
  const int index = space.Find(name);
  ATUNNER_CHECK(index >= 0);
  return configuration.values[static_cast<size_t>(index)];
}

int64_t GetInt(const ParameterSpace& space, const Configuration& configuration,
               std::string_view name) {
  return static_cast<int64_t>(ToDouble(Get(space, configuration, name)));
}

}  // namespace atunner
