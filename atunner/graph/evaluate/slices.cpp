#include "atunner/graph/evaluate/slices.h"

#include <algorithm>
#include <map>
#include <set>

namespace atunner::graph {
namespace {

/// The number of pieces that each axis is cut into for `count` slices. Leading axes are cut
/// completely before the next one is, so that a slice is contiguous.
using Cut = std::vector<int64_t>;

std::optional<Cut> CutOf(const Shape& shape, int64_t count) {
  Cut cut(shape.size(), 1);
  for (size_t axis = 0; axis < shape.size() && count > 1; ++axis) {
    const int64_t extent = shape[axis].factor();
    cut[axis] = count % extent == 0 ? extent : count;
    if (extent % cut[axis] != 0) return std::nullopt;
    count /= cut[axis];
  }
  return count == 1 ? std::optional(cut) : std::nullopt;
}

Shape Divided(const Shape& shape, const Cut& cut) {
  Shape divided;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    divided.emplace_back(shape[axis].factor() / cut[axis]);
  return divided;
}

class Slicer {
 public:
  Slicer(const ValidGraph& graph, int64_t count)
      : graph_(graph), count_(count), builder_(graph.name()) {}

  std::optional<ValidGraph> Run() {
    for (const Node& node : graph_.nodes()) {
      const std::optional<Made> made = Make(node);
      if (!made) return std::nullopt;
      made_.push_back(*made);
    }
    for (const auto& output : graph_.outputs()) {
      if (!made_[output.node].cut) return std::nullopt;
      builder_.Output(output.name, made_[output.node].value);
    }
    auto built = std::move(builder_).Finish();
    return built ? std::optional(*std::move(built)) : std::nullopt;
  }

 private:
  /// A value of the slice's graph. Without a cut it is the same for all slices.
  struct Made {
    Value value;
    std::optional<Cut> cut;
  };

  std::optional<Made> Make(const Node& node) {
    if (node.As<Input>()) return MakeInput(node);
    if (const auto* constant = node.As<Constant>())
      return Made{builder_.Constant(node.type, constant->values), {}};
    std::vector<Value> operands;
    bool any = false;
    for (NodeId operand : node.operands) {
      operands.push_back(made_[operand].value);
      any = any || made_[operand].cut;
    }
    const auto* map = node.As<Map>();
    if (!any)
      return Made{map ? builder_.Map(map->body, operands, map->shape)
                      : builder_.Add(node.operation, operands),
                  {}};
    // The result must be cut in this way for its slices to be contiguous, and the operands
    // accordingly.
    const std::optional<Cut> cut = CutOf(node.type.shape, count_);
    if (!cut) return std::nullopt;
    const Shape shape = Divided(node.type.shape, *cut);
    if (map)
      return Agrees(*map, node, *cut) ? Done(builder_.Map(map->body, operands, shape), *cut)
                                      : std::nullopt;
    if (node.As<Reshape>()) return Done(builder_.Reshape(operands[0], shape), *cut);
    const auto* reduce = node.As<Reduce>();
    const auto* contract = node.As<Contract>();
    const auto* transpose = node.As<Transpose>();
    const bool agrees = reduce      ? Agrees(*reduce, node, *cut)
                        : contract  ? Agrees(*contract, node, *cut)
                        : transpose ? Agrees(*transpose, node, *cut)
                                    : false;
    return agrees ? Done(builder_.Add(node.operation, operands), *cut) : std::nullopt;
  }
  std::optional<Made> MakeInput(const Node& node) {
    const std::optional<Cut> cut = CutOf(node.type.shape, count_);
    if (!cut) return std::nullopt;
    return Made{builder_.Input(node.name, {node.type.dtype, Divided(node.type.shape, *cut)}), cut};
  }
  static std::optional<Made> Done(Value value, const Cut& cut) { return Made{value, cut}; }

  bool Agrees(const Map& map, const Node& node, const Cut& cut) const {
    const size_t rank = cut.size();
    for (const ScalarNode& each : map.body.nodes()) {
      const bool place = each.op == ScalarOp::kIndex || each.op == ScalarOp::kExtent;
      if (place && cut[rank + each.number] > 1) return false;
    }
    for (NodeId operand : node.operands) {
      const Shape& from = graph_.node(operand).type.shape;
      const std::optional<Cut>& own = made_[operand].cut;
      for (size_t axis = 0; axis < rank; ++axis) {
        const bool there = axis + from.size() >= rank;
        const size_t at = there ? axis + from.size() - rank : 0;
        const bool same = own ? (there ? (*own)[at] : 1) == cut[axis]
                              : cut[axis] == 1 || !there || from[at].one();
        if (!same) return false;
      }
    }
    return true;
  }
  bool Agrees(const Reduce& reduce, const Node& node, const Cut& cut) const {
    const Cut& from = *made_[node.operands[0]].cut;
    Cut left;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const bool gone = std::ranges::find(reduce.axes, static_cast<int64_t>(axis)) !=
                        reduce.axes.end();
      if (gone && from[axis] > 1) return false;
      if (!gone || reduce.keep) left.push_back(from[axis]);
    }
    return left == cut;
  }
  bool Agrees(const Contract& contract, const Node& node, const Cut& cut) const {
    const Equation equation = ParsedEquation(contract.equation);
    std::map<char, int64_t> pieces;
    for (size_t i = 0; i < cut.size(); ++i) pieces[equation.result[i]] = cut[i];
    for (size_t side = 0; side < 2; ++side) {
      const std::string& letters = side == 0 ? equation.left : equation.right;
      const std::optional<Cut>& own = made_[node.operands[side]].cut;
      for (size_t i = 0; i < letters.size(); ++i) {
        const auto found = pieces.find(letters[i]);
        if ((own ? (*own)[i] : 1) != (found == pieces.end() ? 1 : found->second)) return false;
      }
      // An operand that is cut must have every cut letter: its slices would be parts of the same
      // rows.
      for (const auto& [letter, count] : pieces) {
        if (own && count > 1 && letters.find(letter) == std::string::npos) return false;
      }
    }
    return true;
  }
  bool Agrees(const Transpose& transpose, const Node& node, const Cut& cut) const {
    const Cut& from = *made_[node.operands[0]].cut;
    for (size_t axis = 0; axis < cut.size(); ++axis) {
      if (from[transpose.order[axis]] != cut[axis]) return false;
    }
    return true;
  }

  const ValidGraph& graph_;
  int64_t count_;
  GraphBuilder builder_;
  std::vector<Made> made_;
};

}  // namespace

std::optional<ValidGraph> SliceOf(const ValidGraph& graph, int64_t count) {
  return Slicer(graph, count).Run();
}

std::vector<int64_t> SliceCounts(const ValidGraph& graph) {
  std::set<int64_t> counts;
  for (NodeId id : graph.inputs()) {
    int64_t count = 1;
    const Shape& shape = graph.node(id).type.shape;
    for (size_t axis = 0; axis + 1 < shape.size(); ++axis)
      counts.insert(count *= shape[axis].factor());
  }
  counts.erase(1);
  return {counts.begin(), counts.end()};
}

}  // namespace atunner::graph
