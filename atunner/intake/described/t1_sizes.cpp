#include "atunner/intake/described/t1_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "atunner/intake/expression_text.h"

namespace atunner::t1 {
namespace {

constexpr int64_t kSmallest = 64;   ///< smaller numbers are shapes of filters, not sizes
constexpr int64_t kMostTimes = 64;  ///< elements of an argument per element of the problem
constexpr int64_t kLong = 1 << 16;  ///< elements of an argument that must follow the problem

/// Sizes by value, e.g. 4096 → problem_size_x.
using Names = std::map<int64_t, std::string>;

Names NamesFor(const UserKernel& kernel, const std::vector<std::string>& problem) {
  Names names;
  for (size_t i = 0; i < problem.size(); ++i) {
    const auto value = LiteralOf(problem[i]);
    const std::string name = std::string("problem_size_") + "xyz"[i];
    if (value && *value >= kSmallest && kernel.space.Find(name) < 0) names.emplace(*value, name);
  }
  return names;
}

std::optional<int64_t> NumberOf(const Expr& expr) {
  const auto value = expr.EvaluateInt({});
  return value ? std::optional(*value) : std::nullopt;
}

/// Every product of sizes and its text, e.g. 1048576 → "problem_size_x * problem_size_y".
std::map<int64_t, std::string> ProductsOf(const Names& names) {
  std::map<int64_t, std::string> products;
  std::vector<std::pair<int64_t, std::string>> so_far = {{1, ""}};
  for (const auto& [value, name] : names) {
    const size_t count = so_far.size();
    for (size_t i = 0; i < count; ++i) {
      so_far.emplace_back(so_far[i].first * value,
                          so_far[i].second.empty() ? name : so_far[i].second + " * " + name);
    }
  }
  // A square problem states its extent once for both axes.
  if (names.size() == 1) {
    const auto& [value, name] = *names.begin();
    so_far.emplace_back(value * value, name + " * " + name);
  }
  for (const auto& [value, text] : so_far) {
    if (!text.empty()) products.emplace(value, text);
  }
  return products;
}

/// `value` as a small multiple of the largest product that divides it; nullopt if there is none.
std::optional<Expr> Following(int64_t value, const std::map<int64_t, std::string>& products) {
  for (auto product = products.rbegin(); product != products.rend(); ++product) {
    if (value % product->first != 0 || value / product->first > kMostTimes) continue;
    const int64_t times = value / product->first;
    const auto expr = Expr::Parse(times == 1 ? product->second
                                             : fmt::format("{} * {}", product->second, times));
    return expr ? std::optional(*expr) : std::nullopt;
  }
  return std::nullopt;
}

bool IsScalarOf(const ArgSpec& arg, int64_t value) {
  return arg.role == Role::kScalar && !IsFloat(arg.dtype) && arg.value &&
         NumberOf(*arg.value) == value;
}

/// Makes lengths and scalars follow; false if a long argument has an unrelated length.
bool Follow(std::vector<ArgSpec>& args, const std::map<int64_t, std::string>& products) {
  for (ArgSpec& arg : args) {
    const bool scalar = arg.role == Role::kScalar;
    if (scalar && IsFloat(arg.dtype)) continue;
    const auto number = NumberOf(scalar ? *arg.value : arg.shape.front());
    if (!number) return scalar;
    if (scalar) {
      if (products.contains(*number)) arg.value = Following(*number, products);
      continue;
    }
    if (auto length = Following(*number, products))
      arg.shape.front() = *std::move(length);
    else if (*number >= kLong)
      return false;
  }
  return true;
}

/// Makes the grid and the scalars of a launch follow.
void FollowInLaunch(LaunchStep& step, const Names& names) {
  int count = 0;
  for (Expr& extent : step.grid) {
    std::string text = extent.text();
    for (const auto& [value, name] : names) text = ReplaceNumber(text, value, name, count);
    if (auto expr = Expr::Parse(text)) extent = *std::move(expr);
  }
  const auto products = ProductsOf(names);
  for (ArgBinding& arg : step.args) {
    if (arg.kind != ArgBinding::Kind::kScalar || IsFloat(arg.dtype)) continue;
    const auto number = NumberOf(arg.value);
    if (number && products.contains(*number)) arg.value = *Following(*number, products);
  }
}

}  // namespace

void NameProblemSizes(UserKernel& kernel, const std::vector<std::string>& problem) {
  Names names = NamesFor(kernel, problem);
  std::erase_if(names, [&](const auto& size) {
    return std::ranges::none_of(kernel.spec.args,
                                [&](const ArgSpec& arg) { return IsScalarOf(arg, size.first); });
  });
  std::vector<ArgSpec> args = kernel.spec.args;
  if (names.empty() || !Follow(args, ProductsOf(names))) return;
  kernel.spec.args = std::move(args);
  for (const auto& [value, name] : names) kernel.spec.dims[name] = value;
  for (LaunchStep& step : kernel.plan.steps) FollowInLaunch(step, names);
}

}  // namespace atunner::t1
