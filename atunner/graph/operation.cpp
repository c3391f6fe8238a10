#include "atunner/graph/operation.h"

#include <algorithm>
#include <array>

namespace atunner::graph {
namespace {

constexpr std::string_view kCombineNames[] = {"sum",    "mean",   "prod", "max", "min",
                                              "argmax", "argmin", "any",  "all", "set"};

struct Family {
  std::string_view name;
  Operation made;
};

/// The names of operations. Reductions, scans and scatters have a name for each Combine they allow.
const std::vector<Family>& Table() {
  static const std::vector<Family> table = [] {
    std::vector<Family> rows;
    static std::vector<std::string> names;
    names.reserve(64);
    const auto add = [&](std::string name, Operation made) {
      names.push_back(std::move(name));
      rows.push_back({names.back(), std::move(made)});
    };
    for (int c = 0; c <= static_cast<int>(Combine::kAll); ++c)
      add("reduce_" + std::string(kCombineNames[c]),
          Reduce{.op = static_cast<Combine>(c), .axes = {}});
    for (Combine c : {Combine::kSum, Combine::kProd, Combine::kMax, Combine::kMin})
      add("scan_" + std::string(Name(c)), Scan{.op = c});
    for (Combine c : {Combine::kSet, Combine::kSum, Combine::kMax, Combine::kMin})
      add("scatter_" + std::string(Name(c)), Scatter{.op = c});
    add("contract", Contract{});
    add("window", Window{});
    add("fold", Fold{});
    add("reshape", Reshape{});
    add("transpose", Transpose{});
    add("slice", Slice{});
    add("pad", Pad{});
    add("concat", Concat{});
    add("reverse", Reverse{});
    add("gather", Gather{});
    add("sort", Sort{});
    return rows;
  }();
  return table;
}

std::optional<Combine> CombineOf(const Operation& operation) {
  if (const auto* reduce = std::get_if<Reduce>(&operation)) return reduce->op;
  if (const auto* scan = std::get_if<Scan>(&operation)) return scan->op;
  if (const auto* scatter = std::get_if<Scatter>(&operation)) return scatter->op;
  return std::nullopt;
}

}  // namespace

std::string_view Name(Combine combine) { return kCombineNames[static_cast<size_t>(combine)]; }

std::string CallName(const Operation& operation) {
  for (const Family& row : Table()) {
    if (row.made.index() == operation.index() && CombineOf(row.made) == CombineOf(operation))
      return std::string(row.name);
  }
  return "";
}

std::optional<Operation> FromCallName(std::string_view name) {
  for (const Family& row : Table()) {
    if (row.name == name) return row.made;
  }
  return std::nullopt;
}

Equation ParsedEquation(const std::string& checked) {
  const size_t comma = checked.find(',');
  const size_t arrow = checked.find("->");
  return {checked.substr(0, comma), checked.substr(comma + 1, arrow - comma - 1),
          checked.substr(arrow + 2)};
}

}  // namespace atunner::graph
