#include "atunner/cuda_text/rounding.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace atunner::graph {
namespace {

using Reading = StepRounding::Reading;

bool IsInfinite(const ScalarNode& node) {
  return node.op == ScalarOp::kLiteral && IsFloat(node.dtype) && std::isinf(node.literal.real);
}

/// True for operators that a tiny change of a float operand can change by more than a tiny amount.
bool Jumps(ScalarOp op) {
  switch (op) {
    case ScalarOp::kFloorDivide:
    case ScalarOp::kModulo:
    case ScalarOp::kFmod:
    case ScalarOp::kCopySign:
    case ScalarOp::kSign:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kTrunc:
    case ScalarOp::kRoundTo:
    case ScalarOp::kUniform:
      return true;
    default:
      return false;
  }
}

/// True for operators whose result is exact.
bool IsExact(ScalarOp op) {
  switch (op) {
    case ScalarOp::kParameter:
    case ScalarOp::kLiteral:
    case ScalarOp::kIndex:
    case ScalarOp::kExtent:
    case ScalarOp::kSelect:
    case ScalarOp::kCast:
    case ScalarOp::kRoundTo:
    case ScalarOp::kUniform:
    case ScalarOp::kNegate:
    case ScalarOp::kAbs:
    case ScalarOp::kMinimum:
    case ScalarOp::kMaximum:
    case ScalarOp::kDetach:
    case ScalarOp::kCopySign:
      return true;
    default:
      return Jumps(op);
  }
}

/// The parameters of a map's body that decide something.
std::set<int> DecidingParameters(const ScalarExpression& body) {
  std::set<int> deciding;
  std::vector<std::set<int>> floats;  // by node: the float parameters that it depends on
  for (const ScalarNode& node : body.nodes()) {
    std::set<int>& own = floats.emplace_back();
    const bool decides = Decides(body.nodes(), node);
    for (const int arg : node.args) {
      if (arg < 0) continue;
      if (decides) deciding.insert(floats[arg].begin(), floats[arg].end());
      own.insert(floats[arg].begin(), floats[arg].end());
    }
    if (node.op == ScalarOp::kParameter) own.insert(node.number);
    if (!IsFloat(node.dtype)) own.clear();
  }
  return deciding;
}

bool AddsOrMultiplies(Combine op) {
  return op == Combine::kSum || op == Combine::kMean || op == Combine::kProd;
}

/// True if the node combines several elements, in an order that a kernel may choose.
bool CombinesTerms(const Node& node) {
  const auto* reduce = node.As<Reduce>();
  const auto* scan = node.As<Scan>();
  const auto* scatter = node.As<Scatter>();
  return node.As<Contract>() || node.As<Fold>() || (reduce && AddsOrMultiplies(reduce->op)) ||
         (scan && AddsOrMultiplies(scan->op)) || (scatter && AddsOrMultiplies(scatter->op));
}

bool UsesIndices(const Node& node) {
  const auto* reduce = node.As<Reduce>();
  return node.As<Sort>() || (reduce && !IsFloat(node.type.dtype));
}

bool IsRounded(const Node& node) {
  if (const auto* map = node.As<Map>())
    return std::ranges::any_of(
        map->body.nodes(), [&](const ScalarNode& each) { return Rounds(map->body.nodes(), each); });
  return CombinesTerms(node);
}

}  // namespace

bool Decides(const std::vector<ScalarNode>& nodes, const ScalarNode& node) {
  if (Jumps(node.op)) return true;
  if (node.op == ScalarOp::kCast) return !IsFloat(node.dtype);
  if (!IsTableOp(node.op) || InfoOf(node.op).rule != ScalarRule::kCompare) return false;
  return !IsInfinite(nodes[node.args[0]]) && !IsInfinite(nodes[node.args[1]]);
}

bool Rounds(const std::vector<ScalarNode>& nodes, const ScalarNode& node) {
  if (node.op != ScalarOp::kCast) return !IsExact(node.op);
  const DType from = nodes[node.args[0]].dtype;
  return IsFloat(node.dtype) && IsFloat(from) && SizeOf(node.dtype) < SizeOf(from);
}

StepRounding RoundingOf(const ValidGraph& graph, const Node& node) {
  StepRounding rounding{.operands = {}, .stored = node.type.dtype, .rounds = false};
  const auto* map = node.As<Map>();
  const std::set<int> deciding = map ? DecidingParameters(map->body) : std::set<int>{};
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const DType dtype = graph.node(node.operands[i]).type.dtype;
    const bool decides = !IsFloat(dtype) || UsesIndices(node) ||
                         deciding.contains(static_cast<int>(i));
    rounding.operands.push_back({decides               ? Reading::kAsIs
                                 : CombinesTerms(node) ? Reading::kTerms
                                                       : Reading::kValue,
                                 dtype});
  }
  rounding.rounds = IsFloat(node.type.dtype) && IsRounded(node);
  return rounding;
}

}  // namespace atunner::graph
