// A parameter's value or an expression's result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace atunner {

using Value = std::variant<bool, int64_t, double, std::string>;

/// "4", "0.5", "true", "abc" (no quotes): what reports print and what -D defines receive.
std::string ToString(const Value& value);
/// Numbers as they are, booleans as 0/1; strings are NaN.
double ToDouble(const Value& value);
bool Truthy(const Value& value);
/// 1 == 1.0 == true, as in Python; strings equal only strings.
bool LooselyEqual(const Value& a, const Value& b);

/// Position of an item in "m,n,k" (an order, see permutation.h), from 0; -1 when it is not there.
int64_t PositionIn(std::string_view order, std::string_view item);

/// Operator attributes and other small named settings, ordered by name.
using Attributes = std::map<std::string, Value, std::less<>>;
/// Named problem sizes.
using Dims = std::map<std::string, int64_t, std::less<>>;
/// "cols=1000 rows=3"
std::string ToString(const Dims& dims);

}  // namespace atunner
