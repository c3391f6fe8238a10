#include "atunner/model/value/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace atunner {

std::string ToString(const Value& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const int64_t* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const std::string* s = std::get_if<std::string>(&value)) return *s;
  const double d = std::get<double>(value);
  // the shortest text that reads back as the same number
  for (int digits = 6; digits <= 17; ++digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, d);
    if (std::strtod(text, nullptr) == d || digits == 17) {
      std::string result = text;
      if (std::isfinite(d) && result.find_first_of(".e") == std::string::npos) result += ".0";
      return result;
    }
  }
  return "";
}

double ToDouble(const Value& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
  if (const int64_t* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const double* d = std::get_if<double>(&value)) return *d;
  return std::numeric_limits<double>::quiet_NaN();
}

bool Truthy(const Value& value) {
  if (const std::string* s = std::get_if<std::string>(&value)) return !s->empty();
  return ToDouble(value) != 0.0;
}

bool LooselyEqual(const Value& a, const Value& b) {
  const auto* left = std::get_if<std::string>(&a);
  const auto* right = std::get_if<std::string>(&b);
  if (left || right) return left && right && *left == *right;
  return ToDouble(a) == ToDouble(b);
}

int64_t PositionIn(std::string_view order, std::string_view item) {
  int64_t at = 0;
  size_t from = 0;
  while (from <= order.size()) {
    const size_t comma = std::min(order.find(',', from), order.size());
    if (order.substr(from, comma - from) == item) return at;
    from = comma + 1;
    ++at;
  }
  return -1;
}

std::string ToString(const Dims& dims) {
  std::string text;
  for (const auto& [name, extent] : dims)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(extent);
  return text;
}

}  // namespace atunner
