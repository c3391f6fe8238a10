#include "atunner/intake/parameter_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/model/space/permutation.h"

namespace atunner {
namespace {

constexpr int64_t kMostValues = 65535;

/// Twelve significant digits, so that 0.1 + 2 · 0.1 is 0.3 and not 0.30000000000000004.
double Rounded(double value) { return std::stod(fmt::format("{:.12g}", value)); }

bool IsWhole(const Value& value) { return std::holds_alternative<int64_t>(value); }

std::vector<Value> AsValues(const std::vector<double>& numbers, bool may_be_whole) {
  const bool whole = may_be_whole &&
                     std::ranges::all_of(numbers, [](double v) { return v == std::nearbyint(v); });
  std::vector<Value> values;
  for (double v : numbers) values.push_back(whole ? Value(static_cast<int64_t>(v)) : Value(v));
  return values;
}

Result<std::vector<Value>> Stepped(const Value& from, const Value& to, const Value& step) {
  const double first = ToDouble(from);
  const double last = ToDouble(to);
  const double width = ToDouble(step);
  if (!std::isfinite(first) || !std::isfinite(last) || !(width > 0) || !(last > first))
    return Invalid("a range needs numbers with from < to and step > 0");
  // 1e-9 for rounding: 0.1 to 0.3 in steps of 0.1 are three values.
  const double steps = std::floor((last - first) / width + 1e-9);
  if (steps >= static_cast<double>(kMostValues))
    return Invalid("a range of more than 65535 values");
  std::vector<double> numbers;
  for (int64_t i = 0; i <= static_cast<int64_t>(steps); ++i)
    numbers.push_back(Rounded(first + static_cast<double>(i) * width));
  return AsValues(numbers, IsWhole(from) && IsWhole(step));
}

Result<std::vector<Value>> RangeOf(const ParameterForm& form) {
  if (!form.from || !form.to) return Invalid("a range needs 'from' and 'to'");
  if (form.spacing != "linear" && form.spacing != "log")
    return Invalid("'spacing' is '" + form.spacing + "'", "", "there are linear and log");
  if (form.step.has_value() == form.count.has_value())
    return Invalid("a range needs either 'step' or 'count'");
  if (form.step) {
    if (form.spacing == "log") return Invalid("'spacing = \"log\"' goes with 'count'");
    return Stepped(*form.from, *form.to, *form.step);
  }
  return SpacedValues(*form.from, *form.to, *form.count, form.spacing == "log");
}

/// Allows the inactive value only where the condition does not hold.
Status AddInactiveConstraint(const ParameterForm& form, const Parameter& parameter,
                             ParameterSpace& space) {
  const auto* text = std::get_if<std::string>(&*form.otherwise);
  const std::string literal = text ? "'" + *text + "'" : ToString(*form.otherwise);
  auto kept = Expr::Parse(
      fmt::format("{} != {} or not ({})", parameter.name, literal, *form.only_if));
  if (!kept) return Invalid("'otherwise' cannot be written in an expression: " + literal);
  space.constraints.push_back(
      {*std::move(kept), "for where '" + parameter.name + "' means nothing"});
  return {};
}

/// Sets the condition. An inactive value that the values do not list is added in front of them,
/// with a constraint that allows it only where the condition does not hold.
Status AddCondition(const ParameterForm& form, Parameter& parameter, ParameterSpace& space) {
  if (!form.only_if) {
    if (form.otherwise) return Invalid("'otherwise' without 'if'");
    return {};
  }
  auto condition = Expr::Parse(*form.only_if);
  if (!condition) return Invalid("'if': " + condition.error().what);
  parameter.only_if = *std::move(condition);
  parameter.otherwise = form.otherwise;
  if (!form.otherwise ||
      std::ranges::find(parameter.values, *form.otherwise) != parameter.values.end())
    return {};
  if (!parameter.items.empty()) return Invalid("'otherwise' is not one of the orders");
  parameter.values.insert(parameter.values.begin(), *form.otherwise);
  return AddInactiveConstraint(form, parameter, space);
}

/// kInvalidInput if some values are texts and others numbers: a "128" among numbers is a slip.
Status CheckOneKind(const std::vector<Value>& values) {
  const auto is_text = [](const Value& value) {
    return std::holds_alternative<std::string>(value);
  };
  const auto text = std::ranges::find_if(values, is_text);
  const auto other = std::ranges::find_if_not(values, is_text);
  if (text == values.end() || other == values.end()) return {};
  return Invalid(
      "the text \"" + ToString(*text) + "\" stands among numbers such as " + ToString(*other), "",
      "write all values as numbers, or all as texts");
}

}  // namespace

Result<std::vector<Value>> SpacedValues(const Value& from, const Value& to, int64_t count,
                                        bool logarithmic) {
  const double first = ToDouble(from);
  const double last = ToDouble(to);
  if (!std::isfinite(first) || !std::isfinite(last) || first == last)
    return Invalid("a range needs two different ends");
  if (count < 2 || count > kMostValues) return Invalid("a range has 2 to 65535 values");
  if (logarithmic && !(first > 0 && last > 0))
    return Invalid("a logarithmic range is of positive numbers");
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(count - 1);
    numbers.push_back(
        Rounded(logarithmic ? first * std::pow(last / first, t) : first + (last - first) * t));
  }
  return AsValues(numbers, IsWhole(from) && IsWhole(to));
}

Status AddParameter(const std::string& name, const ParameterForm& form, ParameterSpace& space) {
  const bool range = form.from || form.to || form.step || form.count;
  if ((form.values.empty() ? 0 : 1) + (form.items.empty() ? 0 : 1) + (range ? 1 : 0) != 1)
    return Invalid("state 'values', a range ('from', 'to', 'step' or 'count') or a 'permutation'");
  Parameter parameter;
  if (!form.items.empty()) {
    ATUNNER_TRY(parameter, MakePermutation(name, form.items));
  } else if (range) {
    ATUNNER_TRY(parameter.values, RangeOf(form));
  } else {
    parameter.values = form.values;
  }
  ATUNNER_RETURN_IF_ERROR(CheckOneKind(parameter.values));
  parameter.name = name;
  parameter.meaning = form.meaning;
  ATUNNER_RETURN_IF_ERROR(AddCondition(form, parameter, space));
  space.parameters.push_back(std::move(parameter));
  return {};
}

}  // namespace atunner
