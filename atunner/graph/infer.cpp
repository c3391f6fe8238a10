// Shape inference: one overload for each operation.
#include <algorithm>
#include <set>

#include "atunner/graph/operation.h"

namespace atunner::graph {
namespace {

using Types = std::vector<TensorType>;

constexpr int64_t kMostExtent = int64_t{1} << 40;

Status Arity(const Types& operands, size_t wanted) {
  if (operands.size() == wanted) return {};
  return Invalid("takes " + std::to_string(wanted) + " operand" + (wanted == 1 ? "" : "s") + ", " +
                 std::to_string(operands.size()) + " given");
}

/// Makes a negative axis, which counts from the end, non-negative.
Status Normalise(int64_t& axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count)
    return Invalid(
        "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank), {},
        rank == 0 ? "a scalar has no axes"
                  : "axes go from 0 to " + std::to_string(rank - 1) + ", or from -1 backwards");
  if (axis < 0) axis += count;
  return {};
}

/// An extent that must be a constant.
Result<int64_t> Number(const Extent& extent, const char* what) {
  if (extent.constant()) return extent.factor();
  return Invalid(std::string(what) + " an axis whose extent is the symbol " + extent.ToString(), {},
                 "only an axis of known extent can be");
}

Status Between(const char* name, int64_t value, int64_t low) {
  if (value >= low && value < kMostExtent) return {};
  return Invalid(std::string(name) + " is " + std::to_string(value), {},
                 "it must be at least " + std::to_string(low));
}

Result<TensorType> Of(Input&, const Types&) {
  return Invalid("an input's type is stated, not inferred");
}
Result<TensorType> Of(Constant&, const Types&) {
  return Invalid("a constant's type is stated, not inferred");
}

Result<TensorType> Of(Map& map, const Types& operands) {
  const auto& wanted = map.body.parameters();
  ATUNNER_RETURN_IF_ERROR(Arity(operands, wanted.size()));
  Shape shape;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].dtype != wanted[i])
      return Invalid("operand " + std::to_string(i + 1) + " is " +
                     std::string(Name(operands[i].dtype)) + ", the expression was made for " +
                     std::string(Name(wanted[i])));
    const auto both = Broadcast(shape, operands[i].shape);
    if (!both)
      return Invalid(
          "shapes " + ToString(shape) + " and " + ToString(operands[i].shape) + " do not broadcast",
          {}, "aligned at the last axis, extents must be equal or 1");
    shape = *both;
  }
  if (map.shape.empty()) map.shape = shape;
  if (!BroadcastsTo(shape, map.shape))
    return Invalid("operands of shape " + ToString(shape) + " do not broadcast to " +
                   ToString(map.shape));
  const auto rank = static_cast<int>(map.shape.size());
  for (const ScalarNode& node : map.body.nodes()) {
    const bool place = node.op == ScalarOp::kIndex || node.op == ScalarOp::kExtent;
    if (place && (node.number >= 0 || node.number < -rank))
      return Invalid(
          "index(" + std::to_string(node.number) + ") in a map of rank " + std::to_string(rank), {},
          "axes count from the end: index(-1) is the last; 'name: type[shape] = …' gives an "
          "expression its shape");
  }
  return TensorType{map.body.dtype(), map.shape};
}

DType ReducedType(Combine op, DType dtype) {
  switch (op) {
    case Combine::kSum:
    case Combine::kProd:
      return IsFloat(dtype) ? dtype : DType::kInt64;
    case Combine::kArgMax:
    case Combine::kArgMin:
      return DType::kInt64;
    case Combine::kAny:
    case Combine::kAll:
      return DType::kBool;
    default:
      return dtype;
  }
}

Result<TensorType> Of(Reduce& reduce, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  const TensorType& x = operands[0];
  if (reduce.axes.empty()) return Invalid("no axes to reduce", {}, "name some: axes=[-1]");
  for (int64_t& axis : reduce.axes) ATUNNER_RETURN_IF_ERROR(Normalise(axis, x.rank()));
  std::ranges::sort(reduce.axes);
  if (std::ranges::adjacent_find(reduce.axes) != reduce.axes.end())
    return Invalid("an axis is reduced twice");
  const bool is_bool = x.dtype == DType::kBool;
  const bool logical = reduce.op == Combine::kAny || reduce.op == Combine::kAll;
  if (logical && !is_bool) return Invalid("any and all take bool", {}, "compare first: x != 0");
  if (is_bool && !logical && reduce.op != Combine::kSum)
    return Invalid(std::string(Name(reduce.op)) + " of bool", {}, "cast(x, int32) makes numbers");
  if (reduce.op == Combine::kMean && !IsFloat(x.dtype))
    return Invalid("mean of " + std::string(Name(x.dtype)), {}, "cast(x, float32) first");
  if ((reduce.op == Combine::kArgMax || reduce.op == Combine::kArgMin) && reduce.axes.size() != 1)
    return Invalid("argmax and argmin reduce one axis", {}, "reshape to merge axes");
  TensorType result{ReducedType(reduce.op, x.dtype), {}};
  for (size_t i = 0; i < x.rank(); ++i) {
    const bool reduced = std::ranges::find(reduce.axes, static_cast<int64_t>(i)) !=
                         reduce.axes.end();
    if (!reduced) result.shape.push_back(x.shape[i]);
    if (reduced && reduce.keep) result.shape.emplace_back(1);
  }
  return result;
}

Result<TensorType> Of(Scan& scan, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(scan.axis, operands[0].rank()));
  if (operands[0].dtype == DType::kBool)
    return Invalid("scan of bool", {}, "cast(x, int64) makes numbers");
  return TensorType{ReducedType(scan.op, operands[0].dtype), operands[0].shape};
}

Status CheckLetters(const std::string& letters, const TensorType& operand,
                    std::map<char, Extent>& extents) {
  if (letters.size() != operand.rank())
    return Invalid("'" + letters + "' for an operand of shape " + ToString(operand.shape), {},
                   "one letter per axis");
  for (size_t i = 0; i < letters.size(); ++i) {
    const auto [at, fresh] = extents.try_emplace(letters[i], operand.shape[i]);
    if (!fresh && !(at->second == operand.shape[i]))
      return Invalid(std::string("axis '") + letters[i] + "' is " + at->second.ToString() +
                     " and " + operand.shape[i].ToString());
  }
  return {};
}

Result<TensorType> Of(Contract& contract, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 2));
  std::erase(contract.equation, ' ');
  const std::string& text = contract.equation;
  const size_t comma = text.find(',');
  const size_t arrow = text.find("->");
  const bool sound = comma != std::string::npos && arrow != std::string::npos && comma < arrow;
  if (!sound) return Invalid("'" + text + "' is no equation", {}, "write it like \"bmk,bkn->bmn\"");
  const Equation e = ParsedEquation(text);
  for (const std::string& letters : {e.left, e.right, e.result}) {
    if (!std::ranges::all_of(letters, [](char c) { return c >= 'a' && c <= 'z'; }))
      return Invalid("'" + letters + "' in the equation", {}, "axes are letters a to z");
    if (std::set<char>(letters.begin(), letters.end()).size() != letters.size())
      return Invalid("a letter of '" + letters + "' repeats", {}, "a diagonal is a gather");
  }
  const auto float8 = [](DType type) { return IsFloat(type) && SizeOf(type) == 1; };
  const bool mixed = contract.as && float8(operands[0].dtype) && float8(operands[1].dtype);
  if (operands[0].dtype != operands[1].dtype && !mixed)
    return Invalid("operands of types " + std::string(Name(operands[0].dtype)) + " and " +
                   std::string(Name(operands[1].dtype)));
  if (operands[0].dtype == DType::kBool)
    return Invalid("contract of bool", {}, "cast(x, int32) makes numbers");
  std::map<char, Extent> extents;
  ATUNNER_RETURN_IF_ERROR(CheckLetters(e.left, operands[0], extents));
  ATUNNER_RETURN_IF_ERROR(CheckLetters(e.right, operands[1], extents));
  TensorType result{contract.as.value_or(operands[0].dtype), {}};
  if (IsFloat(result.dtype) != IsFloat(operands[0].dtype) || result.dtype == DType::kBool)
    return Invalid("a contraction of " + std::string(Name(operands[0].dtype)) + " as " +
                   std::string(Name(result.dtype)));
  for (char letter : e.result) {
    const auto at = extents.find(letter);
    if (at == extents.end())
      return Invalid(std::string("no operand has the axis '") + letter + "'");
    result.shape.push_back(at->second);
  }
  return result;
}

Result<TensorType> Of(Window& window, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(window.axis, operands[0].rank()));
  ATUNNER_RETURN_IF_ERROR(Between("size", window.size, 1));
  ATUNNER_RETURN_IF_ERROR(Between("stride", window.stride, 1));
  ATUNNER_RETURN_IF_ERROR(Between("dilation", window.dilation, 1));
  TensorType result = operands[0];
  ATUNNER_TRY(const int64_t extent, Number(result.shape[window.axis], "windows along"));
  int64_t reach = 0;
  if (__builtin_mul_overflow(window.size - 1, window.dilation, &reach) || reach >= extent)
    return Invalid("the window is longer than the axis of " + std::to_string(extent), {},
                   "pad the axis first");
  result.shape[window.axis] = Extent((extent - reach - 1) / window.stride + 1);
  result.shape.insert(result.shape.begin() + window.axis + 1, Extent(window.size));
  return result;
}

Result<TensorType> Of(Fold& fold, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(fold.axis, operands[0].rank()));
  ATUNNER_RETURN_IF_ERROR(Between("stride", fold.stride, 1));
  ATUNNER_RETURN_IF_ERROR(Between("dilation", fold.dilation, 1));
  ATUNNER_RETURN_IF_ERROR(Between("extent", fold.extent, 1));
  TensorType result = operands[0];
  if (fold.axis + 1 >= static_cast<int64_t>(result.rank()))
    return Invalid("fold takes an axis and the one behind it");
  if (result.dtype == DType::kBool)
    return Invalid("fold of bool", {}, "cast(x, int32) makes numbers");
  ATUNNER_TRY(const int64_t count, Number(result.shape[fold.axis], "fold"));
  ATUNNER_TRY(const int64_t size, Number(result.shape[fold.axis + 1], "fold"));
  int64_t last = 0;
  int64_t reach = 0;
  if (__builtin_mul_overflow(count - 1, fold.stride, &last) ||
      __builtin_mul_overflow(size - 1, fold.dilation, &reach) ||
      __builtin_add_overflow(last, reach, &last) || last >= fold.extent)
    return Invalid("windows reach beyond an axis of " + std::to_string(fold.extent));
  result.shape[fold.axis] = Extent(fold.extent);
  result.shape.erase(result.shape.begin() + fold.axis + 1);
  return result;
}

Result<TensorType> Of(Reshape& reshape, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  const Extent from = ElementCount(operands[0].shape);
  const Extent to = ElementCount(reshape.shape);
  if (!(from == to))
    return Invalid(ToString(operands[0].shape) + " has " + from.ToString() + " elements, " +
                   ToString(reshape.shape) + " has " + to.ToString());
  return TensorType{operands[0].dtype, reshape.shape};
}

Result<TensorType> Of(Transpose& transpose, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  const TensorType& x = operands[0];
  for (int64_t& axis : transpose.order) ATUNNER_RETURN_IF_ERROR(Normalise(axis, x.rank()));
  std::vector<int64_t> sorted = transpose.order;
  std::ranges::sort(sorted);
  const bool each_once = std::ranges::adjacent_find(sorted) == sorted.end() &&
                         sorted.size() == x.rank();
  if (!each_once)
    return Invalid("the order must name each of " + std::to_string(x.rank()) + " axes once");
  TensorType result{x.dtype, {}};
  for (int64_t axis : transpose.order) result.shape.push_back(x.shape[axis]);
  return result;
}

Result<TensorType> Of(Slice& slice, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(slice.axis, operands[0].rank()));
  TensorType result = operands[0];
  ATUNNER_TRY(const int64_t extent, Number(result.shape[slice.axis], "slicing"));
  const bool inside = slice.start >= 0 && slice.start < slice.stop && slice.stop <= extent;
  if (!inside)
    return Invalid("elements " + std::to_string(slice.start) + " to " + std::to_string(slice.stop) +
                       " of " + std::to_string(extent),
                   {}, "0 <= start < stop <= extent");
  ATUNNER_RETURN_IF_ERROR(Between("step", slice.step, 1));
  result.shape[slice.axis] = Extent((slice.stop - slice.start - 1) / slice.step + 1);
  return result;
}

Result<TensorType> Of(Pad& pad, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(pad.axis, operands[0].rank()));
  TensorType result = operands[0];
  ATUNNER_TRY(const int64_t extent, Number(result.shape[pad.axis], "padding"));
  for (const auto& [name, value] :
       {std::pair("low", pad.low), std::pair("high", pad.high), std::pair("inner", pad.inner)})
    ATUNNER_RETURN_IF_ERROR(Between(name, value, 0));
  int64_t inner = 0;
  if (__builtin_mul_overflow(extent - 1, pad.inner, &inner) || inner >= kMostExtent)
    return Invalid("the padded axis is too long");
  result.shape[pad.axis] = Extent(extent + pad.low + pad.high + inner);
  return result;
}

Result<TensorType> Of(Concat& concat, const Types& operands) {
  if (operands.empty()) return Invalid("nothing to concatenate");
  ATUNNER_RETURN_IF_ERROR(Normalise(concat.axis, operands[0].rank()));
  TensorType result = operands[0];
  int64_t total = 0;
  for (const TensorType& each : operands) {
    TensorType other = each;
    if (other.rank() != result.rank() || other.dtype != result.dtype)
      return Invalid("cannot concatenate " + operands[0].ToString() + " and " + each.ToString());
    ATUNNER_TRY(const int64_t extent, Number(other.shape[concat.axis], "concatenating along"));
    total += extent;
    other.shape[concat.axis] = result.shape[concat.axis];
    if (!(other == result))
      return Invalid("cannot concatenate " + operands[0].ToString() + " and " + each.ToString());
  }
  result.shape[concat.axis] = Extent(total);
  return result;
}

Result<TensorType> Of(Reverse& reverse, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(reverse.axis, operands[0].rank()));
  return operands[0];
}

Result<TensorType> Gathered(int64_t& axis, int64_t batch, const TensorType& x,
                            const TensorType& places) {
  ATUNNER_RETURN_IF_ERROR(Normalise(axis, x.rank()));
  if (places.dtype != DType::kInt64 && places.dtype != DType::kInt32)
    return Invalid("indices of type " + std::string(Name(places.dtype)), {}, "int32 or int64");
  const auto shared = static_cast<size_t>(batch);
  if (batch < 0 || batch > axis || shared > places.rank())
    return Invalid("batch=" + std::to_string(batch), {},
                   "at most the axis, and the rank of the indices");
  if (!std::equal(x.shape.begin(), x.shape.begin() + batch, places.shape.begin()))
    return Invalid("the first " + std::to_string(batch) + " axes of " + ToString(x.shape) +
                   " and " + ToString(places.shape) + " differ");
  TensorType result{x.dtype, {x.shape.begin(), x.shape.begin() + axis}};
  result.shape.insert(result.shape.end(), places.shape.begin() + batch, places.shape.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return result;
}

Result<TensorType> Of(Gather& gather, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 2));
  return Gathered(gather.axis, gather.batch, operands[0], operands[1]);
}

Result<TensorType> Of(Scatter& scatter, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 3));
  ATUNNER_TRY(const TensorType slices,
              Gathered(scatter.axis, scatter.batch, operands[0], operands[1]));
  if (!(slices == operands[2]))
    return Invalid("updates are " + operands[2].ToString() + ", " + slices.ToString() +
                   " is needed");
  if (operands[0].dtype == DType::kBool && scatter.op != Combine::kSet)
    return Invalid("scatter_" + std::string(Name(scatter.op)) + " of bool", {},
                   "cast(x, int32) makes numbers");
  return operands[0];
}

Result<TensorType> Of(Sort& sort, const Types& operands) {
  ATUNNER_RETURN_IF_ERROR(Arity(operands, 1));
  ATUNNER_RETURN_IF_ERROR(Normalise(sort.axis, operands[0].rank()));
  TensorType result{DType::kInt64, operands[0].shape};
  if (sort.count == 0) return result;
  ATUNNER_TRY(const int64_t extent, Number(result.shape[sort.axis], "the first elements of"));
  if (sort.count < 1 || sort.count > extent)
    return Invalid("count is " + std::to_string(sort.count) + " of " + std::to_string(extent) +
                   " elements");
  result.shape[sort.axis] = Extent(sort.count);
  return result;
}

}  // namespace

Result<TensorType> Infer(Operation& operation, const std::vector<TensorType>& operands) {
  return std::visit([&](auto& one) { return Of(one, operands); }, operation);
}

}  // namespace atunner::graph
