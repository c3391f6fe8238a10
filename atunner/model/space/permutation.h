// Orders of items as a parameter's values: loop orders, traversals.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "atunner/model/space/parameter_space.h"

namespace atunner {

/// 7! = 5040 values; more would make a list of values the wrong representation.
inline constexpr size_t kMostItems = 7;

/// Every order of the items as a text, "m,n,k", in the lexicographic order of item numbers: the
/// items as listed come first. kInvalidInput for fewer than two or more than kMostItems items,
/// equal ones, or a comma or quote in one.
Result<std::vector<Value>> OrdersOf(std::span<const Value> items);
Result<Parameter> MakePermutation(std::string name, std::vector<Value> items);

/// The items' numbers in the order that stands at `rank` in the list, and back.
std::vector<size_t> OrderAt(size_t rank, size_t items);
size_t RankOf(std::span<const size_t> order);

/// The items of "m,n,k", in turn.
std::vector<std::string> ItemsOf(const std::string& order);

}  // namespace atunner
