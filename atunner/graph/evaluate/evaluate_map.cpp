#include "atunner/graph/evaluate/evaluate_map.h"

#include <algorithm>
#include <cmath>

#include "atunner/graph/scalar_math.h"

namespace atunner::graph {
namespace {

/// Elements that are computed at a time: their intermediate values fit into the first-level cache.
constexpr int64_t kBlock = 256;

/// An interpreter of expressions in which each instruction computes a block of elements, so that
/// the cost of decoding it is small.
class Machine {
 public:
  Machine(const ScalarExpression& body, const Extents& shape, Precision precision)
      : nodes_(body.nodes()),
        shape_(shape),
        strides_(DenseStrides(shape)),
        precision_(precision),
        registers_(nodes_.size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      registers_[i].resize(kBlock);
      const ScalarNode& node = nodes_[i];
      Cell value = node.literal;
      if (node.op == ScalarOp::kExtent) value = Whole(shape_[Axis(node)]);
      if (node.op == ScalarOp::kLiteral || node.op == ScalarOp::kExtent)
        std::ranges::fill(registers_[i], value);
    }
  }

  Cell* Register(size_t node) { return registers_[node].data(); }

  /// Computes `count` elements from row-major index `first` on; the parameters are in their
  /// registers.
  void Run(int64_t first, int64_t count) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ScalarNode& node = nodes_[i];
      if (IsTableOp(node.op))
        Apply(i, count);
      else
        Special(i, first, count);
      if (node.op != ScalarOp::kLiteral && node.op != ScalarOp::kParameter) Round(i, count);
    }
  }

 private:
  size_t Axis(const ScalarNode& node) const {
    return static_cast<size_t>(static_cast<int64_t>(shape_.size()) + node.number);
  }
  const Cell* Argument(const ScalarNode& node, int i) const {
    return registers_[node.args[i]].data();
  }

  void Apply(size_t index, int64_t count) {
    const ScalarNode& node = nodes_[index];
    Cell* r = registers_[index].data();
    const Cell* x = Argument(node, 0);
    const Cell* y = node.args[1] >= 0 ? Argument(node, 1) : x;
    if (!IsFloat(nodes_[node.args[0]].dtype)) {
      for (int64_t i = 0; i < count; ++i) r[i] = Compute(node.op, false, x[i], y[i]);
      return;
    }
    switch (node.op) {
#define ATUNNER_SCALAR(id, name, arity, rule, on_reals, on_wholes, cuda, da, db)             \
  case ScalarOp::id:                                                                         \
    for (int64_t i = 0; i < count; ++i) {                                                    \
      [[maybe_unused]] const double a = x[i].real;                                           \
      [[maybe_unused]] const double b = y[i].real;                                           \
      if (ScalarRule::rule == ScalarRule::kCompare || ScalarRule::rule == ScalarRule::kTest) \
        r[i].whole = static_cast<int64_t>(on_reals);                                         \
      else                                                                                   \
        r[i].real = static_cast<double>(on_reals);                                           \
    }                                                                                        \
    break;
#include "atunner/graph/scalar_op.def"
#undef ATUNNER_SCALAR
      default:
        break;
    }
  }

  void Special(size_t index, int64_t first, int64_t count) {
    const ScalarNode& node = nodes_[index];
    Cell* r = registers_[index].data();
    switch (node.op) {
      case ScalarOp::kIndex: {
        const size_t axis = Axis(node);
        for (int64_t i = 0; i < count; ++i)
          r[i].whole = (first + i) / strides_[axis] % shape_[axis];
        break;
      }
      case ScalarOp::kSelect: {
        const Cell* c = Argument(node, 0);
        const Cell* yes = Argument(node, 1);
        const Cell* no = Argument(node, 2);
        for (int64_t i = 0; i < count; ++i) r[i] = c[i].whole ? yes[i] : no[i];
        break;
      }
      case ScalarOp::kCast: {
        const DType from = nodes_[node.args[0]].dtype;
        const Cell* x = Argument(node, 0);
        const bool moves = IsFloat(from) && IsFloat(node.dtype);
        for (int64_t i = 0; i < count; ++i) r[i] = moves ? x[i] : Converted(from, node.dtype, x[i]);
        if (moves && precision_ == Precision::kDeclared && SizeOf(node.dtype) < 4) {
          for (int64_t i = 0; i < count; ++i) r[i] = Rounded(node.dtype, r[i]);
        }
        break;
      }
      case ScalarOp::kRoundTo: {
        const Cell* x = Argument(node, 0);
        for (int64_t i = 0; i < count; ++i) r[i] = Rounded(static_cast<DType>(node.number), x[i]);
        break;
      }
      case ScalarOp::kUniform: {
        const Cell* seed = Argument(node, 0);
        const Cell* counter = Argument(node, 1);
        for (int64_t i = 0; i < count; ++i) {
          const uint32_t word = PhiloxWord(static_cast<uint64_t>(seed[i].whole),
                                           static_cast<uint64_t>(counter[i].whole));
          r[i].real = static_cast<double>(word >> 8) * 0x1p-24;
        }
        break;
      }
      default:
        break;
    }
  }

  static Cell Converted(DType from, DType to, Cell x) {
    if (IsFloat(to)) return Real(ToReal(from, x));
    if (IsFloat(from)) return CellOf(to, x.real);
    return Rounded(to, x);
  }

  /// Wraps integers, and rounds floats to the type of arithmetic if the precision is kDeclared.
  void Round(size_t index, int64_t count) {
    const DType dtype = nodes_[index].dtype;
    Cell* r = registers_[index].data();
    const bool narrow = !IsFloat(dtype) && (SizeOf(dtype) < 8);
    if (dtype == DType::kBool) {
      for (int64_t i = 0; i < count; ++i) r[i].whole &= 1;  // "~" flips one bit
    } else if (narrow) {
      for (int64_t i = 0; i < count; ++i) r[i] = Rounded(dtype, r[i]);
    } else if (IsFloat(dtype) && dtype != DType::kFloat64 && precision_ == Precision::kDeclared) {
      for (int64_t i = 0; i < count; ++i) r[i].real = static_cast<float>(r[i].real);
    }
  }

  const std::vector<ScalarNode>& nodes_;
  const Extents& shape_;
  Extents strides_;
  Precision precision_;
  std::vector<std::vector<Cell>> registers_;
};

}  // namespace

std::vector<Cell> EvaluateMap(const ScalarExpression& body, const std::vector<View>& operands,
                              const Extents& shape, Precision precision) {
  std::vector<Cell> result(static_cast<size_t>(Product(shape)));
  Machine machine(body, shape, precision);
  std::vector<std::pair<size_t, size_t>> loads;  // (register, operand)
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    if (body.nodes()[i].op == ScalarOp::kParameter) loads.emplace_back(i, body.nodes()[i].number);
  }
  // The result is the first operand, so that runs are contiguous in the result too.
  std::vector<Extents> strides = {DenseStrides(shape)};
  for (const View& operand : operands) strides.push_back(operand.StridesIn(shape));
  const Walk walk(shape, std::move(strides));
  const Cell* root = machine.Register(body.nodes().size() - 1);
  walk.Run([&](int64_t first, int64_t length, std::span<const int64_t> at) {
    for (int64_t done = 0; done < length; done += kBlock) {
      const int64_t count = std::min(kBlock, length - done);
      for (const auto& [node, operand] : loads) {
        const int64_t step = walk.steps()[operand + 1];
        const Cell* from = operands[operand].base() + at[operand + 1] + done * step;
        Cell* to = machine.Register(node);
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
      }
      machine.Run(first + done, count);
      std::copy(root, root + count, result.begin() + first + done);
    }
  });
  return result;
}

}  // namespace atunner::graph
