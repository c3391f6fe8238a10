// Scalar expressions: what a map computes for one element of its result from elements of its
// operands. The language has arithmetic, comparisons, select, casts, indices, extents and
// counter-based random numbers.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/graph/tensor_type.h"

namespace atunner::graph {

enum class ScalarOp : uint8_t {
#define ATUNNER_SCALAR(id, name, arity, rule, on_reals, on_wholes, cuda, da, db) id,
#include "atunner/graph/scalar_op.def"
#undef ATUNNER_SCALAR
  // The operators below are not in scalar_op.def, because they need more than values.
  kParameter,  ///< element of operand `number`
  kLiteral,    ///< `literal`
  /// Int64: the index along axis `number` of the map's result, where -1 is the last axis
  kIndex,
  kExtent,  ///< int64: extent of that axis
  kSelect,  ///< a ? b : c
  /// A as `dtype`. Between floats it states an accuracy and need not round (docs/graph.md)
  kCast,
  /// A rounded to the nearest value of another float type; its own type stays. Unlike a cast it
  /// always
  /// rounds, as quantisation needs
  kRoundTo,
  /// Float32 in [0, 1): word 0 of Philox4x32-10 with key a and counter b, its upper 24 bits
  kUniform,
};

enum class ScalarRule : uint8_t {
  kNumber,   ///< floats or integers of one type → that type
  kReal,     ///< floats of one type → that type
  kCompare,  ///< two of one type → bool
  kTest,     ///< a float → bool
  kBits,     ///< integers or bool of one type → that type
  kShift,    ///< integers of one type → that type
};

struct ScalarOpInfo {
  std::string_view name;
  int arity;
  ScalarRule rule;
  std::string_view cuda;
  std::array<std::string_view, 2> derivatives;
};
/// For the operators of scalar_op.def.
const ScalarOpInfo& InfoOf(ScalarOp op);
inline bool IsTableOp(ScalarOp op) { return op < ScalarOp::kParameter; }
int ArityOf(ScalarOp op);
/// The named function of the text form ("tanh", "select" excluded), if there is one.
std::optional<ScalarOp> FindScalarFunction(std::string_view name);

struct ScalarNode {
  ScalarOp op = ScalarOp::kLiteral;
  DType dtype = DType::kFloat32;
  std::array<int, 3> args{-1, -1, -1};  ///< earlier nodes
  /// kParameter: operand; kIndex, kExtent: axis; kRoundTo: the DType
  int number = 0;
  Cell literal{};

  std::tuple<ScalarOp, DType, std::array<int, 3>, int, int64_t> Key() const {
    return {op, dtype, args, number, literal.whole};
  }
};

/// The largest Depth of an expression that is read from text or made by FuseMaps: expressions are
/// translated recursively, and a thread's stack is limited.
inline constexpr int kDeepestExpression = 1000;

/// For each node the number of operations on the longest path from an operand to it.
std::vector<int> Depths(std::span<const ScalarNode> nodes);

/// An immutable expression: nodes come after their operands, no two are equal, and the last one is
/// the result.
class ScalarExpression {
 public:
  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& root() const { return nodes_.back(); }
  DType dtype() const { return root().dtype; }
  /// The types of the operands.
  const std::vector<DType>& parameters() const { return parameters_; }
  bool Uses(ScalarOp op) const;
  /// True if the result is operand 0 unchanged.
  bool IsIdentity() const { return nodes_.size() == 1 && root().op == ScalarOp::kParameter; }
  /// The number of operations on the longest path from an operand to the result.
  int Depth() const;
  bool operator==(const ScalarExpression& other) const;

 private:
  friend class ScalarBuilder;
  std::vector<ScalarNode> nodes_;
  std::vector<DType> parameters_;
};

/// Builds expressions: equal nodes become one, and operations on literals are computed. Errors are
/// kInvalidInput with a hint.
class ScalarBuilder {
 public:
  explicit ScalarBuilder(std::vector<DType> parameters) : parameters_(std::move(parameters)) {}

  int Parameter(int number);
  /// A number that takes the type of the other operand.
  int Number(double value);
  int Literal(DType dtype, Cell value);
  int Index(int axis) { return AxisNode(ScalarOp::kIndex, axis); }
  int Extent(int axis) { return AxisNode(ScalarOp::kExtent, axis); }
  Result<int> Apply(ScalarOp op, std::vector<int> args);
  Result<int> Select(int condition, int yes, int no);
  /// Numbers beyond the range of the float type `dtype` become what it has for them: infinity, or
  /// NaN in float8_e4m3.
  Result<int> Cast(int value, DType dtype);
  Result<int> Round(int value, DType dtype);
  /// `value` within the finite range of a float type, for conversions that saturate.
  Result<int> Saturate(int value, DType dtype);
  Result<int> Uniform(int seed, int counter);

  /// Puts another expression into this one and returns its root: parameter i becomes node
  /// `arguments[i]`, and index(…) and extent(…) become the node that `place` returns for them.
  using IndexMapping = std::function<int(const ScalarNode&)>;
  Result<int> Import(const ScalarExpression& other, std::span<const int> arguments,
                     const IndexMapping& place);
  Result<int> Import(const ScalarExpression& other, std::span<const int> arguments);
  /// Like Import, but returns this builder's node for each node of `other`.
  Result<std::vector<int>> ImportAll(const ScalarExpression& other, std::span<const int> arguments,
                                     const IndexMapping& place);
  Result<std::vector<int>> ImportAll(const ScalarExpression& other, std::span<const int> arguments);
  /// `known` maps nodes of `other` to existing nodes of this builder.
  Result<std::vector<int>> ImportAll(const ScalarExpression& other, std::span<const int> arguments,
                                     const std::map<int, int>& known);

  const ScalarNode& node(int index) const { return nodes_[index]; }
  std::span<const ScalarNode> nodes() const { return nodes_; }
  /// The expression with the result `root`. kInvalidInput if `root` is a number without a type.
  Result<ScalarExpression> Finish(int root) const;

 private:
  int Intern(ScalarNode node);
  int AxisNode(ScalarOp op, int axis);
  Result<std::vector<int>> ImportNodes(const ScalarExpression& other,
                                       std::span<const int> arguments, const IndexMapping& place,
                                       const std::map<int, int>& known);
  bool Flexible(int index) const {
    return nodes_[index].op == ScalarOp::kLiteral && nodes_[index].number == 1;
  }
  bool IsLiteral(int index, double value) const;
  Result<int> As(int index, DType dtype);
  Status Unify(std::vector<int>& args, size_t first);
  std::optional<int> Simplified(ScalarOp op, const std::vector<int>& args);
  std::optional<int> Folded(ScalarOp op, const std::vector<int>& args, DType dtype);

  std::vector<DType> parameters_;
  std::vector<ScalarNode> nodes_;
  std::map<decltype(ScalarNode{}.Key()), int> known_;
};

/// The result of one operator of scalar_op.def; used for literals and in the evaluator's inner
/// loops.
Cell Compute(ScalarOp op, bool real, Cell a, Cell b);

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, SC 2011): counter (low, high
/// word of `counter`, 0, 0), key of two words; the first word of the result.
uint32_t PhiloxWord(uint64_t key, uint64_t counter);

}  // namespace atunner::graph
