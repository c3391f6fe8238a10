// Operators whose results have as many elements as the values of their inputs say: computed while
// the model is read, from what it states.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers::onnx {
namespace {

using graph::Tensor;
using graph::Value;

std::optional<Tensor> Stated(OnnxCall& call, size_t input) {
  auto known = call.Known(input);
  if (!known && call.g.ok())
    call.Unsupported("the number of results depends on computed values",
                     "input " + std::to_string(input) + " has to be a constant");
  return known;
}

struct Box {
  double top = 0, left = 0, bottom = 0, right = 0;

  double area() const { return (bottom - top) * (right - left); }
};

/// Two opposite corners in any order, or centre and size.
Box BoxOf(const double* numbers, bool centred) {
  const double a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];
  if (centred) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

/// The area of both over that of either.
double Overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

struct Limits {
  int64_t most = 0;
  double overlap = 0;
  std::optional<double> score;
};

/// The boxes that stay, best first: those that overlap with a better one too much go.
Integers Suppressed(const std::vector<Box>& boxes, const double* scores, const Limits& limits) {
  Integers order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  Integers kept;
  for (const int64_t candidate : order) {
    if (std::ssize(kept) >= limits.most) break;
    if (limits.score && scores[candidate] <= *limits.score) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool covered = std::ranges::any_of(kept, [&](int64_t other) {
      return Overlap(box, boxes[static_cast<size_t>(other)]) > limits.overlap;
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

/// Slices along the axis, each as its elements in row-major order.
std::vector<std::vector<double>> SlicesOf(const Tensor& x, size_t axis) {
  const std::vector<double> values = x.Reals();
  const auto from = x.shape.begin() + static_cast<ptrdiff_t>(axis);
  const auto inner = static_cast<size_t>(
      std::accumulate(from + 1, x.shape.end(), int64_t{1}, std::multiplies<>()));
  std::vector<std::vector<double>> slices(static_cast<size_t>(*from));
  for (size_t i = 0; i < values.size(); ++i) slices[i / inner % slices.size()].push_back(values[i]);
  return slices;
}

/// Equal slices: the places where they stand.
using Group = Integers;

/// In the order of the slices' elements, or in that of their first places.
std::vector<Group> GroupsOf(const std::vector<std::vector<double>>& slices, bool sorted) {
  std::map<std::vector<double>, Group> groups;
  for (size_t i = 0; i < slices.size(); ++i) groups[slices[i]].push_back(static_cast<int64_t>(i));
  std::vector<Group> all;
  for (auto& [slice, group] : groups) all.push_back(std::move(group));
  if (!sorted) std::ranges::sort(all, {}, [](const Group& group) { return group[0]; });
  return all;
}

}  // namespace

/// Rows of image, class and box.
std::vector<Value> NonMaxSuppression(OnnxCall& call, std::string_view) {
  const auto boxes = Stated(call, 0), scores = Stated(call, 1);
  if (!boxes || !scores) return {};
  Limits limits{call.Has(2) ? static_cast<int64_t>(call.Number(2)) : 0,
                call.Has(3) ? call.Number(3) : 0, std::nullopt};
  if (call.Has(4)) limits.score = call.Number(4);
  if (!call.g.ok() ||
      !call.Check(boxes->shape.size() == 3 && scores->shape.size() == 3 && boxes->shape[2] == 4 &&
                      boxes->shape[0] == scores->shape[0] && boxes->shape[1] == scores->shape[2],
                  "boxes and scores do not fit"))
    return {};
  const std::vector<double> corners = boxes->Reals(), values = scores->Reals();
  const auto count = static_cast<size_t>(boxes->shape[1]);
  const bool centred = call.Whole("center_point_box", 0) != 0;
  Integers rows;
  for (int64_t image = 0; image < boxes->shape[0]; ++image) {
    std::vector<Box> own;
    for (size_t i = 0; i < count; ++i)
      own.push_back(BoxOf(&corners[(static_cast<size_t>(image) * count + i) * 4], centred));
    for (int64_t kind = 0; kind < scores->shape[1]; ++kind) {
      const double* of_kind = &values[static_cast<size_t>(image * scores->shape[1] + kind) * count];
      for (const int64_t box : Suppressed(own, of_kind, limits))
        rows.insert(rows.end(), {image, kind, box});
    }
  }
  if (rows.empty()) return call.NoElements(DType::kInt64);
  return {call.Constant(DType::kInt64, {std::ssize(rows) / 3, 3}, rows)};
}

/// The indices of elements that are not 0, a row for each axis.
std::vector<Value> NonZero(OnnxCall& call, std::string_view) {
  const auto x = Stated(call, 0);
  if (!x) return {};
  const std::vector<double> values = x->Reals();
  std::vector<Integers> rows(std::max<size_t>(x->shape.size(), 1));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = rows.size(); axis-- > 0;) {
      const int64_t extent = x->shape.empty() ? 1 : x->shape[axis];
      rows[axis].push_back(rest % extent);
      rest /= extent;
    }
  }
  if (rows[0].empty()) return call.NoElements(DType::kInt64);
  Integers all;
  for (const Integers& row : rows) all.insert(all.end(), row.begin(), row.end());
  return {call.Constant(DType::kInt64, {std::ssize(rows), std::ssize(rows[0])}, all)};
}

/// Distinct elements, or slices along `axis`; the first place of each, which of them every place
/// holds, and how often each stands there.
std::vector<Value> Unique(OnnxCall& call, std::string_view) {
  const auto x = Stated(call, 0);
  if (!x) return {};
  Value from = call.In(0);
  Tensor tensor = *x;
  int64_t axis = 0;
  if (call.HasAttribute("axis")) {
    axis = call.Axis(call.Whole("axis", 0), call.Rank(from));
  } else {
    tensor.shape = {std::ssize(tensor.cells)};
    from = call.Reshape(from, tensor.shape);
  }
  if (!call.g.ok() || !call.Check(!tensor.cells.empty(), "a tensor without elements")) return {};
  const auto slices = SlicesOf(tensor, static_cast<size_t>(axis));
  const auto groups = GroupsOf(slices, call.Whole("sorted", 1) != 0);
  Integers firsts, counts, inverse(slices.size());
  for (const Group& group : groups) {
    for (const int64_t place : group) inverse[static_cast<size_t>(place)] = std::ssize(firsts);
    firsts.push_back(group[0]);
    counts.push_back(std::ssize(group));
  }
  const auto list = [&](const Integers& numbers) {
    return call.Constant(DType::kInt64, {std::ssize(numbers)}, numbers);
  };
  return {call.g.Add(graph::Gather{axis, 0}, {from, list(firsts)}), list(firsts), list(inverse),
          list(counts)};
}

}  // namespace atunner::importers::onnx
