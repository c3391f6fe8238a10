// The operations of nodes. The text form, inference, evaluation and gradients visit the variant
// `Operation`, so that an operation that one of them forgets is a compile error.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "atunner/graph/scalar.h"
#include "atunner/graph/tensor_type.h"

namespace atunner::graph {

/// How reductions, scans and scatters combine elements.
enum class Combine : uint8_t { kSum, kMean, kProd, kMax, kMin, kArgMax, kArgMin, kAny, kAll, kSet };
std::string_view Name(Combine combine);

/// A tensor that the caller passes.
struct Input {
  bool operator==(const Input&) const = default;
};
/// A tensor of literals: all elements in row-major order, or one value for all of them.
struct Constant {
  std::vector<Cell> values;
  /// Compares bits: NaN equals NaN, and -0 differs from 0.
  bool operator==(const Constant& other) const {
    return std::ranges::equal(values, other.values, {}, &Cell::whole, &Cell::whole);
  }
};
/// An element-wise operation: one expression over the elements of the operands, which are broadcast
/// to the result's shape.
struct Map {
  ScalarExpression body;
  Shape shape;  ///< of the result
  bool operator==(const Map&) const = default;
};
/// Combines the elements along `axes`. Sums and products of integers and bools are int64. argmax
/// and argmin give the int64 index along one axis; the first of equal elements wins, and NaN is the
/// extreme of both. any and all give bool. `keep`: reduced axes stay with extent 1. `first`: the
/// gradient of max or min goes to the first of equal extremes, as pooling has it; else they share
/// it.
struct Reduce {
  Combine op = Combine::kSum;
  std::vector<int64_t> axes;
  bool keep = false;
  bool first = false;
  bool operator==(const Reduce&) const = default;
};
/// Running sum, product, maximum or minimum along `axis`. `exclusive`: element i combines the
/// elements before i, and the first is the neutral element. `reverse`: runs from the end.
struct Scan {
  Combine op = Combine::kSum;
  int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  bool operator==(const Scan&) const = default;
};
/// einsum of two operands: "bmk,bkn->bmn". Letters that the result lacks are summed over; no letter
/// repeats within one operand. The result has the operands' type, or `as`. `sparse`: products in
/// which one factor is exactly zero are left out, so that 0 * NaN counts as 0. Masked attention
/// needs it.
struct Contract {
  std::string equation;
  std::optional<DType> as;
  bool sparse = false;
  bool operator==(const Contract&) const = default;
};
/// Sliding windows: `axis` becomes two axes, the window p and the element r inside of it:
/// y[…, p, r, …] = x[…, p·stride + r·dilation, …].
struct Window {
  int64_t axis = 0;
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool operator==(const Window&) const = default;
};
/// The adjoint of Window: axes `axis` and `axis` + 1 become one of `extent`, and overlapping
/// elements are added up.
struct Fold {
  int64_t axis = 0;
  int64_t extent = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool operator==(const Fold&) const = default;
};
/// The same elements in row-major order in another shape.
struct Reshape {
  Shape shape;
  bool operator==(const Reshape&) const = default;
};
/// Axis i of the result is axis order[i] of the operand.
struct Transpose {
  std::vector<int64_t> order;
  bool operator==(const Transpose&) const = default;
};
/// The elements start, start + step, … below stop along `axis`.
struct Slice {
  int64_t axis = 0;
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  bool operator==(const Slice&) const = default;
};
/// Adds `value` along `axis`: `low` times in front, `high` times behind, and `inner` times between
/// each two elements.
struct Pad {
  int64_t axis = 0;
  int64_t low = 0;
  int64_t high = 0;
  int64_t inner = 0;
  double value = 0;
  bool operator==(const Pad&) const = default;
};
struct Concat {
  int64_t axis = 0;
  bool operator==(const Concat&) const = default;
};
struct Reverse {
  int64_t axis = 0;
  bool operator==(const Reverse&) const = default;
};
/// gather(x, i): slices of x along `axis` at the indices i. The first `batch` axes of x and i are
/// common; the other axes of i replace `axis`. Indices out of range are clamped.
struct Gather {
  int64_t axis = 0;
  int64_t batch = 0;
  bool operator==(const Gather&) const = default;
};
/// scatter(x, i, u): x with the updates u (of the shape of gather(x, i)) combined into it at the
/// indices i, in order. Indices out of range write nothing. `op` is set, sum, max or min.
struct Scatter {
  Combine op = Combine::kSum;
  int64_t axis = 0;
  int64_t batch = 0;
  bool operator==(const Scatter&) const = default;
};
/// The int64 indices that sort x along `axis` (argsort). The order is stable, and NaN is the
/// largest value. Only the first `count` if that is not 0.
struct Sort {
  int64_t axis = 0;
  bool descending = false;
  int64_t count = 0;
  bool operator==(const Sort&) const = default;
};

using Operation = std::variant<Input, Constant, Map, Reduce, Scan, Contract, Window, Fold, Reshape,
                               Transpose, Slice, Pad, Concat, Reverse, Gather, Scatter, Sort>;

/// The name of the operation in the text form: "reduce_sum", "window". Empty for inputs, constants
/// and maps, which have their own syntax.
std::string CallName(const Operation& operation);
/// An operation of that name with its fields at their defaults.
std::optional<Operation> FromCallName(std::string_view name);

/// Visits the fields of the text form in order: `visit(name, field)` for required ones and
/// `visit(name, field, default)` for optional ones. `Self` is the operation, const or not.
template <class Self, class Visit>
void VisitFields(Self& self, Visit&& visit) {
  using T = std::remove_const_t<Self>;
  if constexpr (std::is_same_v<T, Reduce>) {
    visit("axes", self.axes);
    visit("keep", self.keep, false);
    visit("first", self.first, false);
  } else if constexpr (std::is_same_v<T, Scan>) {
    visit("axis", self.axis);
    visit("exclusive", self.exclusive, false);
    visit("reverse", self.reverse, false);
  } else if constexpr (std::is_same_v<T, Contract>) {
    visit("equation", self.equation);
    visit("as", self.as, std::nullopt);
    visit("sparse", self.sparse, false);
  } else if constexpr (std::is_same_v<T, Window>) {
    visit("axis", self.axis);
    visit("size", self.size);
    visit("stride", self.stride, 1);
    visit("dilation", self.dilation, 1);
  } else if constexpr (std::is_same_v<T, Fold>) {
    visit("axis", self.axis);
    visit("extent", self.extent);
    visit("stride", self.stride, 1);
    visit("dilation", self.dilation, 1);
  } else if constexpr (std::is_same_v<T, Reshape>) {
    visit("shape", self.shape);
  } else if constexpr (std::is_same_v<T, Transpose>) {
    visit("order", self.order);
  } else if constexpr (std::is_same_v<T, Slice>) {
    visit("axis", self.axis);
    visit("start", self.start, 0);
    visit("stop", self.stop);
    visit("step", self.step, 1);
  } else if constexpr (std::is_same_v<T, Pad>) {
    visit("axis", self.axis);
    visit("low", self.low, 0);
    visit("high", self.high, 0);
    visit("inner", self.inner, 0);
    visit("value", self.value, 0.0);
  } else if constexpr (std::is_same_v<T, Concat> || std::is_same_v<T, Reverse>) {
    visit("axis", self.axis);
  } else if constexpr (std::is_same_v<T, Gather> || std::is_same_v<T, Scatter>) {
    visit("axis", self.axis);
    visit("batch", self.batch, 0);
  } else if constexpr (std::is_same_v<T, Sort>) {
    visit("axis", self.axis);
    visit("descending", self.descending, false);
    visit("count", self.count, 0);
  }
}

/// The result's type for operands of these types, after all validity checks. Negative axes count
/// from the end and are normalised in `operation`. kInvalidInput with a hint for an invalid
/// operation.
Result<TensorType> Infer(Operation& operation, const std::vector<TensorType>& operands);

/// The letters of a checked einsum equation.
struct Equation {
  std::string left, right, result;
};
Equation ParsedEquation(const std::string& checked);

}  // namespace atunner::graph
