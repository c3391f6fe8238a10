// The kinds of nodes. Everything that enumerates them (text form, inference, evaluation, gradients)
// goes through `Operation`, so that a kind that one of them forgets does not compile.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "atunner/graph/scalar.h"
#include "atunner/graph/tensor_type.h"

namespace atunner::graph {

/// How several elements become one.
enum class Combine : uint8_t { kSum, kMean, kProd, kMax, kMin, kArgMax, kArgMin, kAny, kAll, kSet };
std::string_view Name(Combine combine);

/// A tensor that the caller gives.
struct Input {
  bool operator==(const Input&) const = default;
};
/// Known elements: all of them in row-major order, or one that stands everywhere.
struct Constant {
  std::vector<Cell> values;
  /// Bit by bit: NaN equals itself, -0 is not 0.
  bool operator==(const Constant& other) const {
    return std::ranges::equal(values, other.values, {}, &Cell::whole, &Cell::whole);
  }
};
/// One expression over the elements of operands that are broadcast to the result's shape.
struct Map {
  ScalarExpression body;
  Shape shape;  ///< of the result
  bool operator==(const Map&) const = default;
};
/// Elements along `axes` combined. Sums and products of integers and bools are int64; argmax and
/// argmin give int64 places along one axis (the first of equals; NaN beats all); any and all give
/// bool. `keep`: reduced axes stay with extent 1.
struct Reduce {
  Combine op = Combine::kSum;
  std::vector<int64_t> axes;
  bool keep = false;
  bool operator==(const Reduce&) const = default;
};
/// Running sum, prod, max or min along `axis`; `exclusive`: of the elements before, starting with
/// the neutral one.
struct Scan {
  Combine op = Combine::kSum;
  int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  bool operator==(const Scan&) const = default;
};
/// einsum of two operands: "bmk,bkn->bmn". A letter that the result lacks is summed over; no letter
/// repeats within one operand. The result's type is the operands', or `as`. `sparse`: products in
/// which one factor is exactly zero are left out, so that what is masked stays out whatever it
/// would meet, NaN too.
struct Contract {
  std::string equation;
  std::optional<DType> as;
  bool sparse = false;
  bool operator==(const Contract&) const = default;
};
/// Sliding windows: `axis` becomes two, the window's place and the place inside it:
/// y[…, p, r, …] = x[…, p·stride + r·dilation, …].
struct Window {
  int64_t axis = 0;
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool operator==(const Window&) const = default;
};
/// The other way: axes `axis` and `axis` + 1 become one of `extent`, overlapping elements are added
/// up.
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
/// Elements start, start + step, … below stop.
struct Slice {
  int64_t axis = 0;
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  bool operator==(const Slice&) const = default;
};
/// `value` before, behind and `inner` times between the elements along an axis.
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
/// gather(x, i): slices of x along `axis` at places i. The first `batch` axes of both go together;
/// the rest of i's shape takes the axis' place. Places beyond the ends are clamped.
struct Gather {
  int64_t axis = 0;
  int64_t batch = 0;
  bool operator==(const Gather&) const = default;
};
/// scatter(x, i, u): x with slices u (of the shape that gather(x, i) has) combined in at places i,
/// in order. Places beyond the ends write nothing. Combines: set, sum, max, min.
struct Scatter {
  Combine op = Combine::kSum;
  int64_t axis = 0;
  int64_t batch = 0;
  bool operator==(const Scatter&) const = default;
};
/// int64 places that would sort x along `axis` (stable; NaN is larger than all); only the first
/// `count`, if not 0.
struct Sort {
  int64_t axis = 0;
  bool descending = false;
  int64_t count = 0;
  bool operator==(const Sort&) const = default;
};

using Operation = std::variant<Input, Constant, Map, Reduce, Scan, Contract, Window, Fold, Reshape,
                               Transpose, Slice, Pad, Concat, Reverse, Gather, Scatter, Sort>;

/// "reduce_sum", "window": what the text form calls the operation. Empty for inputs, constants and
/// maps, which have a syntax of their own.
std::string CallName(const Operation& operation);
/// An operation of that name with its fields at their defaults.
std::optional<Operation> FromCallName(std::string_view name);

/// The fields that the text form writes and reads, in order: `visit(name, field)` for required
/// ones, `visit(name, field, default)` for others. `Self` is the operation, const or not.
template <class Self, class Visit>
void VisitFields(Self& self, Visit&& visit) {
  using T = std::remove_const_t<Self>;
  if constexpr (std::is_same_v<T, Reduce>) {
    visit("axes", self.axes);
    visit("keep", self.keep, false);
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

/// Shape inference and every rule of validity: the result's type for operands of these types. Axes
/// are counted from the end when negative, and come back normalised in `operation`. kInvalidInput
/// says what is wrong, with a hint.
Result<TensorType> Infer(Operation& operation, const std::vector<TensorType>& operands);

/// The letters of a checked einsum equation.
struct Equation {
  std::string left, right, result;
};
Equation ParsedEquation(const std::string& checked);

}  // namespace atunner::graph
