#include "atunner/graph/library/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace atunner::graph {
namespace {

bool Check(GraphBuilder& g, bool condition, std::string what, std::string hint) {
  if (!condition) g.Fail({ErrorCode::kInvalidInput, std::move(what), {}, std::move(hint)});
  return condition;
}

/// n letters from `first` on.
std::string Letters(char first, size_t n) {
  std::string letters;
  for (size_t i = 0; i < n; ++i) letters += static_cast<char>(first + static_cast<char>(i));
  return letters;
}

bool SplitsIntoGroups(GraphBuilder& g, const Extent& a, const Extent& b, int64_t groups) {
  const bool divides = groups > 0 && a.factor() % groups == 0 && b.factor() % groups == 0;
  return Check(g, divides,
               fmt::format("groups={} of {} and {} channels", groups, a.ToString(), b.ToString()),
               "the groups must divide both");
}

std::vector<int64_t> SpatialOf(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (size_t i = 2; i < shape.size(); ++i) sizes.push_back(shape[i].factor());
  return sizes;
}

}  // namespace

Value Windows(GraphBuilder& g, Value x, int64_t first, const std::vector<int64_t>& sizes,
              const WindowAxes& axes, double value) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = first + static_cast<int64_t>(i);
    if (axes[i].low != 0 || axes[i].high != 0)
      x = g.Add(Pad{axis, axes[i].low, axes[i].high, 0, value}, {x});
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    x = g.Add(
        Window{first + 2 * static_cast<int64_t>(i), sizes[i], axes[i].stride, axes[i].dilation},
        {x});
  return x;
}

Value Convolve(GraphBuilder& g, Value x, Value w, int64_t groups, const WindowAxes& axes) {
  if (!g.ok()) return x;
  const Shape xs = g.TypeOf(x).shape;
  const Shape ws = g.TypeOf(w).shape;
  const size_t n = xs.size() - 2;
  const bool fits = xs[1] == ws[1] * Extent(groups);
  if (!SplitsIntoGroups(g, xs[1], ws[0], groups) ||
      !Check(g, fits, "weights " + ToString(ws) + " for an input " + ToString(xs),
             "weight is K, C / groups, …"))
    return x;
  Shape split = {xs[0], Extent(groups), ws[1]};
  split.insert(split.end(), xs.begin() + 2, xs.end());
  Shape weights = {Extent(groups), Extent(ws[0].factor() / groups)};
  weights.insert(weights.end(), ws.begin() + 1, ws.end());
  const Value windows = Windows(g, g.Reshape(x, split), 3, SpatialOf(ws), axes, 0);
  std::string left = "ngc";
  for (size_t i = 0; i < n; ++i)
    left += Letters(static_cast<char>('p' + i), 1) + Letters(static_cast<char>('u' + i), 1);
  const Value y = g.Contract(left + ",gkc" + Letters('u', n) + "->ngk" + Letters('p', n), windows,
                             g.Reshape(w, weights));
  Shape merged = {xs[0], ws[0]};
  const Shape computed = g.TypeOf(y).shape;
  if (!g.ok()) return y;
  merged.insert(merged.end(), computed.begin() + 3, computed.end());
  return g.Reshape(y, merged);
}

Value ConvolveTransposed(GraphBuilder& g, Value x, Value w, int64_t groups, const WindowAxes& axes,
                         const std::vector<int64_t>& added) {
  if (!g.ok()) return x;
  const Shape xs = g.TypeOf(x).shape;
  const Shape ws = g.TypeOf(w).shape;
  if (!Check(g, xs[1] == ws[0], "weights " + ToString(ws) + " for an input " + ToString(xs),
             "weight is C, K / groups, …") ||
      !SplitsIntoGroups(g, xs[1], ws[0], groups))
    return x;
  WindowAxes dense;
  for (size_t i = 2; i < xs.size(); ++i) {
    const WindowAxis& axis = axes[i - 2];
    if (!Check(g, added[i - 2] >= 0 && added[i - 2] < std::max(axis.stride, axis.dilation),
               fmt::format("output_padding={}", added[i - 2]),
               "at least 0, and less than the stride or the dilation"))
      return x;
    const int64_t covered = axis.dilation * (ws[i].factor() - 1);
    if (!Check(g, covered >= std::max(axis.low, axis.high) && axis.stride > 0,
               "more padding than filter", "padding is at most dilation · (filter - 1)"))
      return x;
    x = g.Add(Pad{static_cast<int64_t>(i), covered - axis.low, covered - axis.high + added[i - 2],
                  axis.stride - 1, 0},
              {x});
    w = g.Add(Reverse{static_cast<int64_t>(i)}, {w});
    dense.push_back({1, 0, 0, axis.dilation});
  }
  // [C, K/g, …] as [g, C/g, K/g, …], channels swapped, merged to [K, C/g, …].
  Shape split = {Extent(groups), Extent(ws[0].factor() / groups)};
  split.insert(split.end(), ws.begin() + 1, ws.end());
  std::vector<int64_t> order = {0, 2, 1};
  for (size_t i = 3; i < split.size(); ++i) order.push_back(static_cast<int64_t>(i));
  Shape merged = {ws[1] * Extent(groups), Extent(ws[0].factor() / groups)};
  merged.insert(merged.end(), ws.begin() + 2, ws.end());
  w = g.Reshape(g.Transpose(g.Reshape(w, split), order), merged);
  return Convolve(g, x, w, groups, dense);
}

}  // namespace atunner::graph
