// Reverse-mode differentiation, once over the nodes of a graph and once over the operators of an
// expression.
//
// Let L be a scalar that depends on the graph's outputs. The adjoint of a value v is ∂L/∂v, a
// tensor of v's shape. The adjoints of the outputs are inputs of the new graph (dy for the output
// y). The nodes are visited from the last to the first; each passes its adjoint g on to its
// operands by the rule of its operation, and an operand adds up what it gets from all its users:
//
//     operation                     its operand's share of g
//     y = f(a, b)                   g · ∂f/∂a, summed over the axes along which a was broadcast
//     y = reduce_sum(x, axes)       g, broadcast along the axes
//     y = contract(a, b, "mk,kn->mn")   da = contract(g, b, "mn,kn->mk"), db likewise
//     y = transpose, slice, pad, …  the inverse layout operation (slice ↔ pad, window ↔ fold, …)
//     y = gather(x, i)              scatter_sum(zeros, i, g)
//     y = scatter_sum(x, i, u)      dx = g, du = gather(g, i)
//
// Example: y = tanh(x · w) with x [M, K], w [K, N].
//
//     forward   p = contract(x, w, "mk,kn->mn")
//               y = tanh(p)
//     backward  gp = dy * (1 - y * y)                    rule of tanh in scalar_op.def: "1 - r * r"
//               dx = contract(gp, w, "mn,kn->mk")
//               dw = contract(gp, x, "mn,mk->kn")
//
// The new graph contains the forward nodes that the rules mention (here p and y); they are computed
// again. Simplify removes those that no rule used.
//
// A map's rule needs the derivative of its expression. Derivative does the same reverse pass inside
// of the expression, with the derivatives of scalar_op.def, which are written over the operands a
// and b and the result r. A value of an integer type or bool has no adjoint. Casts pass adjoints on
// in the operand's type, and round_to passes them on unchanged (the straight-through estimator).
#include "atunner/graph/gradient/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "atunner/graph/expression_text.h"

namespace atunner::graph {
namespace {

/// The derivative of one expression by one of its parameters.
class ScalarGradient {
 public:
  ScalarGradient(const ScalarExpression& body, int parameter)
      : body_(body), builder_(TypesWith(body)) {
    std::vector<int> arguments;
    for (size_t i = 0; i < body.parameters().size(); ++i)
      arguments.push_back(builder_.Parameter(static_cast<int>(i)));
    here_ = builder_.ImportAll(body, arguments).value();
    depends_.resize(body.nodes().size(), false);
    for (size_t i = 0; i < depends_.size(); ++i) {
      const ScalarNode& node = body.nodes()[i];
      bool depends = node.op == ScalarOp::kParameter && node.number == parameter;
      for (int a = 0; a < ArityOf(node.op); ++a) depends |= depends_[node.args[a]];
      depends_[i] = depends && IsFloat(node.dtype);
    }
  }

  Result<std::optional<ScalarExpression>> Run() {
    adjoints_.assign(body_.nodes().size(), -1);
    if (!depends_.back()) return std::nullopt;
    adjoints_.back() = builder_.Parameter(static_cast<int>(body_.parameters().size()));
    int result = -1;
    for (size_t i = body_.nodes().size(); i-- > 0;) {
      if (adjoints_[i] < 0 || !depends_[i]) continue;
      if (body_.nodes()[i].op == ScalarOp::kParameter) result = adjoints_[i];
      ATUNNER_RETURN_IF_ERROR(Spread(i));
    }
    if (result < 0) return std::nullopt;
    ATUNNER_TRY(ScalarExpression expression, builder_.Finish(result));
    return std::optional(std::move(expression));
  }

 private:
  static std::vector<DType> TypesWith(const ScalarExpression& body) {
    std::vector<DType> types = body.parameters();
    types.push_back(body.dtype());
    return types;
  }

  Status Give(int to, Result<int> share) {
    if (!share) return std::unexpected(share.error());
    if (!depends_[to]) return {};
    if (adjoints_[to] >= 0) share = builder_.Apply(ScalarOp::kAdd, {adjoints_[to], *share});
    if (!share) return std::unexpected(share.error());
    adjoints_[to] = *share;
    return {};
  }

  /// Passes the adjoint of node `i` on to its operands.
  Status Spread(size_t i) {
    const ScalarNode& node = body_.nodes()[i];
    const int g = adjoints_[i];
    if (IsTableOp(node.op)) {
      for (int a = 0; a < std::min(ArityOf(node.op), 2); ++a) {
        const std::string_view text = InfoOf(node.op).derivatives[a];
        if (text.empty() || !depends_[node.args[a]]) continue;
        if (text == "?")
          return Fail(ErrorCode::kUnsupported,
                      std::string(InfoOf(node.op).name) + " has no derivative here");
        ATUNNER_RETURN_IF_ERROR(Give(node.args[a], Times(g, text, i)));
      }
      return {};
    }
    switch (node.op) {
      case ScalarOp::kSelect: {
        const int condition = here_[node.args[0]];
        ATUNNER_RETURN_IF_ERROR(
            Give(node.args[1], builder_.Select(condition, g, builder_.Number(0))));
        return Give(node.args[2], builder_.Select(condition, builder_.Number(0), g));
      }
      case ScalarOp::kCast:
        if (!depends_[node.args[0]]) return {};
        return Give(node.args[0], builder_.Cast(g, body_.nodes()[node.args[0]].dtype));
      case ScalarOp::kRoundTo:  // the straight-through estimator of quantisation-aware training
        return Give(node.args[0], g);
      default:
        return {};
    }
  }

  Result<int> Times(int g, std::string_view text, size_t i) {
    const ScalarNode& node = body_.nodes()[i];
    Lexer lexer(text, "derivative");
    ATUNNER_TRY(const int factor,
                ReadExpression(lexer, builder_, [&](const std::string& name) -> Result<int> {
                  if (name == "a") return here_[node.args[0]];
                  if (name == "b") return here_[node.args[1]];
                  if (name == "r") return here_[i];
                  for (const auto& [number, value] :
                       {std::pair("zero", 0.0), std::pair("half", 0.5), std::pair("one", 1.0)})
                    if (name == number) return builder_.Literal(node.dtype, Real(value));
                  return Invalid("unknown name " + name);
                }));
    return Product(g, factor);
  }

  bool IsZero(int node) const {
    const ScalarNode& literal = builder_.node(node);
    return literal.op == ScalarOp::kLiteral && ToReal(literal.dtype, literal.literal) == 0;
  }

  /// g · factor, inside the branch of a selection that g belongs to: exp(a) may be infinite where
  /// select(a > 0, a, exp(a)) does not take it, and 0 · inf would be NaN.
  Result<int> Product(int g, int factor) {
    const ScalarNode node = builder_.node(g);
    if (node.op != ScalarOp::kSelect || IsZero(node.args[1]) == IsZero(node.args[2]))
      return builder_.Apply(ScalarOp::kMultiply, {g, factor});
    const int taken = IsZero(node.args[1]) ? 2 : 1;
    std::array<int, 3> args = {node.args[0], node.args[1], node.args[2]};
    ATUNNER_TRY(args[taken], Product(args[taken], factor));
    return builder_.Select(args[0], args[1], args[2]);
  }

  const ScalarExpression& body_;
  ScalarBuilder builder_;
  std::vector<int> here_;      ///< by node of the body: its node in builder_
  std::vector<bool> depends_;  ///< by node: true if it depends on the parameter through floats
  std::vector<int> adjoints_;  ///< nodes of builder_, or -1
};

class GraphGradient {
 public:
  explicit GraphGradient(const ValidGraph& graph)
      : graph_(graph), builder_(graph.name() + "_backward") {}

  Result<ValidGraph> Run() {
    for (const auto& [name, range] : graph_.symbols())
      ATUNNER_RETURN_IF_ERROR(builder_.Symbol(name, range));
    for (NodeId id : graph_.inputs())
      inputs_.emplace_back(id, builder_.Input(graph_.node(id).name, graph_.node(id).type));
    CopyForward();
    adjoints_.resize(graph_.nodes().size());
    for (const auto& output : graph_.outputs()) {
      const TensorType& type = graph_.node(output.node).type;
      if (IsFloat(type.dtype)) Give(output.node, builder_.Input("d" + output.name, type));
    }
    for (size_t id = graph_.nodes().size(); id-- > 0 && builder_.ok();) SpreadNode(id);
    for (const auto& [id, input] : inputs_) {
      const Node& node = graph_.node(id);
      if (!IsFloat(node.type.dtype)) continue;
      builder_.Output("d" + node.name, adjoints_[id].id >= 0 ? adjoints_[id] : Zeros(node.type));
    }
    return std::move(builder_).Finish();
  }

 private:
  void CopyForward() {
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      std::vector<Value> operands;
      bool reaches = node.As<Input>() != nullptr;
      for (NodeId operand : node.operands) {
        operands.push_back(forward_[operand]);
        reaches = reaches || reaches_[operand];
      }
      reaches_.push_back(reaches && IsFloat(node.type.dtype));
      if (const auto* constant = node.As<Constant>())
        forward_.push_back(builder_.Constant(node.type, constant->values));
      else if (!node.As<Input>())
        forward_.push_back(builder_.Add(node.operation, operands));
      else
        forward_.push_back(
            std::ranges::find(inputs_, static_cast<NodeId>(id), &std::pair<NodeId, Value>::first)
                ->second);
    }
  }

  /// Passes the adjoint of a node on to its operands.
  void SpreadNode(size_t id) {
    node_ = &graph_.nodes()[id];
    if (adjoints_[id].id < 0 || !reaches_[id] || node_->operands.empty()) return;
    result_ = forward_[id];
    std::visit([&](const auto& operation) { Spread(operation, adjoints_[id]); }, node_->operation);
  }

  Value Zeros(const TensorType& type) { return builder_.Constant(type, {CellOf(type.dtype, 0)}); }
  Value Operand(size_t i) const { return forward_[node_->operands[i]]; }
  const TensorType& OperandType(size_t i) const { return graph_.node(node_->operands[i]).type; }
  const Shape& shape() const { return node_->type.shape; }

  void Give(NodeId to, Value share) {
    Value& adjoint = adjoints_[to];
    if (reaches_[to]) adjoint = adjoint.id < 0 ? share : builder_.Map("a + b", {adjoint, share});
  }
  void GiveOperand(size_t i, Value share) { Give(node_->operands[i], share); }

  void NoRule(const std::string& what) {
    builder_.Fail(Error{ErrorCode::kUnsupported, what + " has no derivative here",
                        "gradient of " + graph_.name(), ""});
  }

  /// The adjoint of broadcasting: sums `value` over the broadcast axes, so that it gets the shape
  /// `to`.
  Value Unbroadcast(Value value, const Shape& to) {
    const Shape from = builder_.TypeOf(value).shape;
    std::vector<int64_t> axes;
    const size_t lead = from.size() - to.size();
    for (size_t i = 0; i < from.size(); ++i) {
      if (i < lead || (to[i - lead].one() && !from[i].one()))
        axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) value = builder_.Reduce(Combine::kSum, value, axes);
    return builder_.TypeOf(value).shape == to ? value : builder_.Reshape(value, to);
  }

  // --- one rule per operation ---

  void Spread(const Input&, Value) {}
  void Spread(const Constant&, Value) {}
  void Spread(const Sort&, Value) {}

  void Spread(const Map& map, Value g) {
    std::vector<Value> operands;
    for (size_t i = 0; i < node_->operands.size(); ++i) operands.push_back(Operand(i));
    operands.push_back(g);
    for (size_t i = 0; i < node_->operands.size(); ++i) {
      if (!reaches_[node_->operands[i]]) continue;
      auto derivative = Derivative(map.body, static_cast<int>(i));
      if (!derivative) {
        builder_.Fail(derivative.error());
        return;
      }
      if (!*derivative) continue;
      GiveOperand(i, Unbroadcast(builder_.Map(**std::move(derivative), operands, shape()),
                                 OperandType(i).shape));
    }
  }

  /// The number of elements that a reduction combines into one, as an expression of a map over its
  /// operand's shape.
  std::string CountText(const Reduce& reduce) const {
    const auto rank = static_cast<int64_t>(OperandType(0).rank());
    std::string count = "1";
    for (int64_t axis : reduce.axes)
      count += " * cast(extent(" + std::to_string(axis - rank) + "), " +
               std::string(Name(node_->type.dtype)) + ")";
    return count;
  }

  void Spread(const Reduce& reduce, Value g) {
    Shape kept = OperandType(0).shape;
    for (int64_t axis : reduce.axes) kept[axis] = Extent(1);
    const Shape& full = OperandType(0).shape;
    const Value wide = builder_.Reshape(g, kept);
    const Value y = builder_.Reshape(result_, kept);
    switch (reduce.op) {
      case Combine::kSum:
        return GiveOperand(0, builder_.Map("a", {wide}, full));
      case Combine::kMean:
        return GiveOperand(0, builder_.Map("a / (" + CountText(reduce) + ")", {wide}, full));
      case Combine::kProd:
        return GiveOperand(0, GradientOfProduct(wide, reduce.axes));
      case Combine::kMax:
      case Combine::kMin: {  // equal extremes share the adjoint, as in torch.amax
        if (reduce.first) return GiveOperand(0, ToFirst(reduce.axes, wide, y));
        const Value hit = builder_.Cast(builder_.Map("a == b", {Operand(0), y}), node_->type.dtype);
        const Value hits = builder_.Reduce(Combine::kSum, hit, reduce.axes, true);
        return GiveOperand(0, builder_.Map("a * b / c", {wide, hit, hits}));
      }
      default:
        return;  // indices and bools have no derivative
    }
  }

  /// The adjoint `g` at the first element that equals the extreme `y` along `axes`, else 0.
  /// Elements are ordered row by row over the axes. NaN is the extreme of the elements that it is
  /// among.
  Value ToFirst(const std::vector<int64_t>& axes, Value g, Value y) {
    const auto rank = static_cast<int64_t>(OperandType(0).rank());
    std::string place = "cast(0, int32)";
    std::string count = "cast(1, int32)";
    for (const int64_t axis : axes) {
      const std::string at = std::to_string(axis - rank);
      place = fmt::format("({} * cast(extent({}), int32) + cast(index({}), int32))", place, at, at);
      count += fmt::format(" * cast(extent({}), int32)", at);
    }
    const bool may_be_nan = IsFloat(OperandType(0).dtype);
    const std::string equal = may_be_nan ? "a == b | (isnan(a) & isnan(b))" : "a == b";
    const Value places = builder_.Map("select(" + equal + ", " + place + ", " + count + ")",
                                      {Operand(0), y});
    const Value first = builder_.Reduce(Combine::kMin, places, axes, true);
    return builder_.Map("select(" + place + " == b, a, 0)", {g, first}, OperandType(0).shape);
  }

  /// The derivative of a product by a factor is the product of the other factors: the whole product
  /// divided by the factor. In a row with one zero only that zero has a derivative, the product of
  /// the others.
  Value GradientOfProduct(Value g, const std::vector<int64_t>& axes) {
    const std::string type(Name(node_->type.dtype));
    const Value zeros = builder_.Reduce(
        Combine::kSum, builder_.Map("cast(a == 0, " + type + ")", {Operand(0)}), axes, true);
    const Value rest = builder_.Reduce(
        Combine::kProd, builder_.Map("select(a == 0, 1, a)", {Operand(0)}), axes, true);
    // Zeros are replaced by 1 before the division.
    return builder_.Map("a * (select(c == 0 | (c == 1 & d == 0), b, 0) / select(c == 0, d, 1))",
                        {g, rest, zeros, Operand(0)});
  }

  void Spread(const Scan& scan, Value g) {
    Scan back = scan;
    back.op = Combine::kSum;
    back.reverse = !scan.reverse;
    if (scan.op == Combine::kSum) return GiveOperand(0, builder_.Add(back, {g}));
    if (scan.op != Combine::kProd) return NoRule(CallName(scan));
    GiveOperand(0, GradientOfRunningProduct(scan, back, g));
  }
  Value GradientOfRunningProduct(const Scan& scan, const Scan& back, Value g) {
    // Factors before a row's first zero get the adjoints of the results up to it. The results
    // behind it depend on that zero alone, by the products without it.
    const Value x = Operand(0);
    const std::string axis = std::to_string(scan.axis - static_cast<int64_t>(shape().size()));
    const std::string place = "cast(index(" + axis + "), int32)";
    const std::string none = scan.reverse ? "-1" : "cast(extent(" + axis + "), int32)";
    const Value zeros = builder_.Map("select(a == 0, " + place + ", " + none + ")", {x});
    const Value first = builder_.Reduce(scan.reverse ? Combine::kMax : Combine::kMin, zeros,
                                        {scan.axis}, true);
    const Value without = builder_.Add(
        scan, {builder_.Map("select(" + place + " == b, 1, a)", {x, first})});
    const std::string later = std::string(scan.reverse ? "<" : ">") + (scan.exclusive ? "" : "=");
    const std::string zero_seen = place + " " + later + " c";
    const std::vector<Value> operands = {g, without, first};
    const Value sum = builder_.Add(back,
                                   {builder_.Map("select(" + zero_seen + ", 0, a * b)", operands)});
    const Value rest = builder_.Map("select(" + zero_seen + ", a * b, 0)", operands);
    const Value at_zero = builder_.Reduce(Combine::kSum, rest, {scan.axis}, true);
    const std::string moved = "select(b == 0, select(" + place +
                              " == c, d, 0), a) / select(b == 0, 1, b)";
    return builder_.Map(moved, {sum, x, first, at_zero});
  }

  void Spread(const Contract& contract, Value g) {
    const Equation e = ParsedEquation(contract.equation);
    for (size_t i = 0; i < 2; ++i) {
      if (!reaches_[node_->operands[i]]) continue;
      const std::string& mine = i == 0 ? e.left : e.right;
      const std::string& other = i == 0 ? e.right : e.left;
      const bool found = std::ranges::all_of(
          mine, [&](char c) { return (e.result + other).find(c) != std::string::npos; });
      if (!found) return NoRule("an axis that only one operand of '" + contract.equation + "' has");
      const Value from = builder_.Cast(g, OperandType(i).dtype);
      const Value sum = builder_.Contract(e.result + "," + other + "->" + mine, from,
                                          Operand(1 - i), contract.as, contract.sparse);
      GiveOperand(i, builder_.Cast(sum, OperandType(i).dtype));
    }
  }

  void Spread(const Window& window, Value g) {
    const Extent& extent = OperandType(0).shape[window.axis];
    GiveOperand(
        0, builder_.Add(Fold{window.axis, extent.factor(), window.stride, window.dilation}, {g}));
  }
  void Spread(const Fold& fold, Value g) {
    const int64_t size = OperandType(0).shape[fold.axis + 1].factor();
    const Value all = builder_.Add(Window{fold.axis, size, fold.stride, fold.dilation}, {g});
    // The axis may be long enough for more windows than the fold had.
    const int64_t count = OperandType(0).shape[fold.axis].factor();
    GiveOperand(0, builder_.Add(Slice{fold.axis, 0, count, 1}, {all}));
  }
  void Spread(const Reshape&, Value g) {
    GiveOperand(0, builder_.Reshape(g, OperandType(0).shape));
  }
  void Spread(const Transpose& transpose, Value g) {
    std::vector<int64_t> back(transpose.order.size());
    for (size_t i = 0; i < back.size(); ++i) back[transpose.order[i]] = static_cast<int64_t>(i);
    GiveOperand(0, builder_.Transpose(g, back));
  }
  void Spread(const Slice& slice, Value g) {
    const int64_t count = shape()[slice.axis].factor();
    const int64_t covered = slice.start + (count - 1) * slice.step + 1;
    const int64_t rest = OperandType(0).shape[slice.axis].factor() - covered;
    GiveOperand(0, builder_.Add(Pad{slice.axis, slice.start, rest, slice.step - 1, 0}, {g}));
  }
  void Spread(const Pad& pad, Value g) {
    const int64_t count = OperandType(0).shape[pad.axis].factor();
    const int64_t step = pad.inner + 1;
    GiveOperand(
        0, builder_.Add(Slice{pad.axis, pad.low, pad.low + (count - 1) * step + 1, step}, {g}));
  }
  void Spread(const Concat& concat, Value g) {
    int64_t done = 0;
    for (size_t i = 0; i < node_->operands.size(); ++i) {
      const int64_t count = OperandType(i).shape[concat.axis].factor();
      GiveOperand(i, builder_.Add(Slice{concat.axis, done, done + count, 1}, {g}));
      done += count;
    }
  }
  void Spread(const Reverse& reverse, Value g) { GiveOperand(0, builder_.Add(reverse, {g})); }
  void Spread(const Gather& gather, Value g) {
    const Scatter back{Combine::kSum, gather.axis, gather.batch};
    GiveOperand(0, builder_.Add(back, {Zeros(OperandType(0)), Operand(1), g}));
  }
  void Spread(const Scatter& scatter, Value g) {
    if (scatter.op != Combine::kSum) return NoRule(CallName(scatter));
    GiveOperand(0, g);
    GiveOperand(2, builder_.Add(Gather{scatter.axis, scatter.batch}, {g, Operand(1)}));
  }

  const ValidGraph& graph_;
  GraphBuilder builder_;
  std::vector<std::pair<NodeId, Value>> inputs_;
  std::vector<Value> forward_;  ///< by node of the graph: its copy in the new graph
  std::vector<Value> adjoints_;
  std::vector<bool> reaches_;  ///< by node: true for floats that depend on inputs
  const Node* node_ = nullptr;
  Value result_;  ///< the copy of node_ in the new graph
};

}  // namespace

Result<std::optional<ScalarExpression>> Derivative(const ScalarExpression& body, int parameter) {
  return ScalarGradient(body, parameter).Run();
}

Result<ValidGraph> Gradient(const ValidGraph& graph) { return GraphGradient(graph).Run(); }

}  // namespace atunner::graph
