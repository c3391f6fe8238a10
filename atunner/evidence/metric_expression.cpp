#include "atunner/evidence/metric_expression.h"

#include <algorithm>

namespace atunner::evidence {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<double> Sum(std::string_view sum, const Metrics& metrics) {
  double total = 0;
  for (const std::string_view name : Split(sum, '+')) {
    const auto found = metrics.find(name);
    if (found == metrics.end()) return std::nullopt;
    total += found->second;
  }
  return total;
}

}  // namespace

std::vector<std::string> MetricsIn(std::string_view expression) {
  std::vector<std::string> names;
  if (expression.empty()) return names;
  for (const std::string_view sum : Split(Split(expression, '|').front(), '/')) {
    for (const std::string_view name : Split(sum, '+')) names.emplace_back(name);
  }
  return names;
}

std::optional<double> Evaluate(std::string_view expression, const Metrics& metrics) {
  for (const std::string_view alternative : Split(expression, '|')) {
    const std::vector<std::string_view> sums = Split(alternative, '/');
    const auto value = Sum(sums.front(), metrics);
    if (!value) continue;
    if (sums.size() == 1) return value;
    const auto divisor = Sum(sums[1], metrics);
    if (divisor && *divisor != 0) return *value / *divisor;
  }
  return std::nullopt;
}

}  // namespace atunner::evidence
