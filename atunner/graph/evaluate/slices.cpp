#include "atunner/graph/evaluate/slices.h"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

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

/// Inputs that every slice has whole, one bit each in the order of ValidGraph::inputs.
using SharedInputs = uint32_t;
/// Graphs with more inputs are tried without shared ones only.
constexpr size_t kMostInputs = 6;

class Slicer {
 public:
  Slicer(const ValidGraph& graph, int64_t count, SharedInputs shared)
      : graph_(graph), count_(count), shared_(shared), builder_(graph.name()) {}

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
    const bool agrees = std::visit(
        [&](const auto& operation) { return Agrees(operation, node, *cut); }, node.operation);
    return agrees ? Done(builder_.Add(node.operation, operands), *cut) : std::nullopt;
  }
  std::optional<Made> MakeInput(const Node& node) {
    if (shared_ >> inputs_++ & 1) return Made{builder_.Input(node.name, node.type), {}};
    const std::optional<Cut> cut = CutOf(node.type.shape, count_);
    if (!cut) return std::nullopt;
    return Made{builder_.Input(node.name, {node.type.dtype, Divided(node.type.shape, *cut)}), cut};
  }
  static std::optional<Made> Done(Value value, const Cut& cut) { return Made{value, cut}; }

  /// Operations that have no rule yet: whether their slices depend on each other is not known.
  template <typename Any>
  bool Agrees(const Any&, const Node&, const Cut&) const {
    return false;
  }
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

  bool Agrees(const Window& window, const Node& node, const Cut& cut) const {
    Cut from = *made_[node.operands[0]].cut;
    const auto axis = static_cast<size_t>(window.axis);
    if (from[axis] > 1) return false;
    from.insert(from.begin() + window.axis + 1, 1);
    return from == cut;
  }
  bool Agrees(const Fold& fold, const Node& node, const Cut& cut) const {
    Cut from = *made_[node.operands[0]].cut;
    const auto axis = static_cast<size_t>(fold.axis);
    if (from[axis] > 1 || from[axis + 1] > 1) return false;
    from.erase(from.begin() + fold.axis + 1);
    return from == cut;
  }
  bool Agrees(const Pad& pad, const Node& node, const Cut& cut) const {
    return KeepsCut(pad.axis, node, cut);
  }
  bool Agrees(const graph::Slice& slice, const Node& node, const Cut& cut) const {
    return KeepsCut(slice.axis, node, cut);
  }
  bool Agrees(const Reverse& reverse, const Node& node, const Cut& cut) const {
    return KeepsCut(reverse.axis, node, cut);
  }
  bool Agrees(const Scan& scan, const Node& node, const Cut& cut) const {
    return KeepsCut(scan.axis, node, cut);
  }
  bool Agrees(const Concat& concat, const Node& node, const Cut& cut) const {
    return KeepsCut(concat.axis, node, cut);
  }
  /// For operations along one axis of operands of the result's rank: true if that axis is whole and
  /// all operands are cut as the result is.
  bool KeepsCut(int64_t axis, const Node& node, const Cut& cut) const {
    return cut[static_cast<size_t>(axis)] == 1 &&
           std::ranges::all_of(node.operands, [&](NodeId operand) {
             return made_[operand].cut && *made_[operand].cut == cut;
           });
  }

  const ValidGraph& graph_;
  int64_t count_;
  SharedInputs shared_;
  size_t inputs_ = 0;  ///< that were made
  GraphBuilder builder_;
  std::vector<Made> made_;
};

}  // namespace

std::optional<ValidGraph> SliceOf(const ValidGraph& graph, int64_t count) {
  const size_t inputs = graph.inputs().size();
  const SharedInputs all = inputs <= kMostInputs ? (SharedInputs{1} << inputs) - 1 : 1;
  for (SharedInputs shared = 0; shared < all; ++shared) {
    if (auto slice = Slicer(graph, count, shared).Run()) return slice;
  }
  return std::nullopt;
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
