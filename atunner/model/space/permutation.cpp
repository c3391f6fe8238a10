#include "atunner/model/space/permutation.h"

#include <algorithm>
#include <numeric>

namespace atunner {
namespace {

size_t Factorial(size_t n) { return n < 2 ? 1 : n * Factorial(n - 1); }

std::string Joined(std::span<const Value> items, std::span<const size_t> order) {
  std::string text;
  for (size_t i : order) text += (text.empty() ? "" : ",") + ToString(items[i]);
  return text;
}

}  // namespace

Result<std::vector<Value>> OrdersOf(std::span<const Value> items) {
  if (items.size() < 2 || items.size() > kMostItems)
    return Invalid("a permutation has 2 to " + std::to_string(kMostItems) + " items");
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string text = ToString(items[i]);
    if (text.empty() || text.find_first_of(",'\"") != std::string::npos)
      return Invalid("the item '" + text + "' of a permutation is empty or holds a comma or quote");
    for (size_t j = 0; j < i; ++j) {
      if (ToString(items[j]) == text) return Invalid("a permutation lists '" + text + "' twice");
    }
  }
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<Value> values;
  do {
    values.emplace_back(Joined(items, order));
  } while (std::ranges::next_permutation(order).found);
  return values;
}

Result<Parameter> MakePermutation(std::string name, std::vector<Value> items) {
  Parameter parameter;
  parameter.name = std::move(name);
  ATUNNER_TRY(parameter.values, OrdersOf(items));
  parameter.items = std::move(items);
  return parameter;
}

std::vector<size_t> OrderAt(size_t rank, size_t items) {
  std::vector<size_t> left(items);
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> order;
  for (size_t n = items; n > 0; --n) {
    const size_t block = Factorial(n - 1);
    const auto at = left.begin() + static_cast<std::ptrdiff_t>(rank / block);
    order.push_back(*at);
    left.erase(at);
    rank %= block;
  }
  return order;
}

size_t RankOf(std::span<const size_t> order) {
  size_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto smaller = std::ranges::count_if(order.subspan(i + 1),
                                               [&](size_t item) { return item < order[i]; });
    rank += static_cast<size_t>(smaller) * Factorial(order.size() - 1 - i);
  }
  return rank;
}

std::vector<std::string> ItemsOf(const std::string& order) {
  std::vector<std::string> items;
  size_t from = 0;
  while (from <= order.size()) {
    const size_t comma = std::min(order.find(',', from), order.size());
    items.push_back(order.substr(from, comma - from));
    from = comma + 1;
  }
  return items;
}

}  // namespace atunner
