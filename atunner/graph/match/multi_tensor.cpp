#include "atunner/graph/match/multi_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace atunner::graph {
namespace {

class GroupFinder {
 public:
  explicit GroupFinder(const ValidGraph& graph) : graph_(graph) {}

  std::optional<MultiTensorGroups> Run() {
    const auto count = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = 0; id < count; ++id) {
      if (!IsSupported(id)) return std::nullopt;
      Join(id);
    }
    for (NodeId id = 0; id < count; ++id) {
      const auto& operands = NodeOf(id).operands;
      const bool after = std::ranges::any_of(
          operands, [this](NodeId operand) { return after_sums_[operand]; });
      after_sums_.push_back(after || IsSum(id));
      if (IsSum(id) && after) return std::nullopt;
      if (IsSum(id)) MemberOf(operands[0]).sums.push_back(id);
      if (!IsSingle(id)) NoteBroadcastScalars(operands);
    }
    for (const Output& output : graph_.outputs()) Note(output);
    for (NodeId first : order_) AddToGroup(std::move(members_.at(first)));
    const bool several = std::ranges::any_of(
        found_.groups, [](const TensorGroup& kind) { return kind.size() > 1; });
    return several ? std::optional(std::move(found_)) : std::nullopt;
  }

 private:
  void Note(const Output& output) {
    if (IsSingle(output.node)) return found_.scalar_outputs.push_back(output);
    GroupMember& member = MemberOf(output.node);
    (after_sums_[output.node] ? member.dependent_outputs : member.outputs).push_back(output);
  }
  const Node& NodeOf(NodeId id) const { return graph_.node(id); }
  /// True for nodes of one element, which all members share.
  bool IsSingle(NodeId id) const { return ElementCount(NodeOf(id).type.shape).one(); }
  bool IsSum(NodeId id) const {
    return NodeOf(id).As<Reduce>() != nullptr && !IsSingle(NodeOf(id).operands[0]);
  }

  bool IsSupported(NodeId id) const {
    const Node& node = NodeOf(id);
    if (!ElementCount(node.type.shape).constant()) return false;
    if (const auto* reduce = node.As<Reduce>())
      return IsSingle(id) && reduce->op != Combine::kArgMax && reduce->op != Combine::kArgMin;
    if (node.As<Input>()) return true;
    if (IsSingle(id)) return node.As<Constant>() || node.As<Map>() || node.As<Reshape>();
    const auto* map = node.As<Map>();
    if (map == nullptr || map->body.Uses(ScalarOp::kIndex) || map->body.Uses(ScalarOp::kExtent))
      return false;
    return std::ranges::all_of(node.operands, [&](NodeId operand) {
      return IsSingle(operand) || NodeOf(operand).type.shape == node.type.shape;
    });
  }

  /// The first node of the member that a node belongs to (union-find over shared operands).
  NodeId FirstOf(NodeId id) const { return first_[id] == id ? id : FirstOf(first_[id]); }
  void Join(NodeId id) {
    first_.push_back(id);
    if (IsSingle(id)) return;
    NodeId least = id;
    for (NodeId operand : NodeOf(id).operands) {
      if (!IsSingle(operand)) least = std::min(least, FirstOf(operand));
    }
    for (NodeId operand : NodeOf(id).operands) {
      if (!IsSingle(operand)) first_[FirstOf(operand)] = least;
    }
    first_[id] = least;
  }
  GroupMember& MemberOf(NodeId id) {
    const NodeId first = FirstOf(id);
    const auto [at, added] = members_.try_emplace(first);
    if (!added) return at->second;
    order_.push_back(first);
    at->second.elements = ElementCount(NodeOf(id).type.shape).factor();
    return at->second;
  }

  void NoteBroadcastScalars(const std::vector<NodeId>& operands) {
    for (NodeId operand : operands) {
      const bool broadcast = IsSingle(operand) && after_sums_[operand];
      if (broadcast &&
          std::ranges::find(found_.broadcast_scalars, operand) == found_.broadcast_scalars.end())
        found_.broadcast_scalars.push_back(operand);
    }
  }

  /// A text of the computation of a member, which is equal for members of one group. Fills
  /// member.inputs in the order of their first use.
  std::string Describe(GroupMember& member) {
    std::map<NodeId, size_t> known;
    std::string text;
    for (const Output& output : member.outputs) text += Describe(output.node, known, member) + "; ";
    for (NodeId sum : member.sums)
      text += fmt::format("{} {}; ", Name(NodeOf(sum).As<Reduce>()->op),
                          Describe(NodeOf(sum).operands[0], known, member));
    for (const Output& output : member.dependent_outputs)
      text += "then " + Describe(output.node, known, member) + "; ";
    return text;
  }
  std::string Describe(NodeId id, std::map<NodeId, size_t>& known, GroupMember& member) {
    const Node& node = NodeOf(id);
    if (IsSingle(id)) return fmt::format("single{}", id);
    const auto [at, added] = known.try_emplace(id, known.size());
    if (!added) return fmt::format("node{}", at->second);
    if (node.As<Input>()) {
      member.inputs.push_back(id);
      return fmt::format("input {}", Name(node.type.dtype));
    }
    const ScalarExpression& body = node.As<Map>()->body;
    const auto same = std::ranges::find_if(bodies_,
                                           [&](const auto* other) { return *other == body; });
    std::string text = fmt::format("map{}(", same - bodies_.begin());
    if (same == bodies_.end()) bodies_.push_back(&body);
    for (NodeId operand : node.operands) text += Describe(operand, known, member) + ",";
    return text + ")";
  }
  void AddToGroup(GroupMember member) {
    const auto [at, added] = group_of_.try_emplace(Describe(member), found_.groups.size());
    if (added) found_.groups.emplace_back();
    found_.groups[at->second].push_back(std::move(member));
  }

  const ValidGraph& graph_;
  std::vector<NodeId> first_;     ///< by node: an earlier node of its member, or itself
  std::vector<bool> after_sums_;  ///< by node: true if it depends on a reduction
  std::map<NodeId, GroupMember> members_;
  std::vector<NodeId> order_;
  std::vector<const ScalarExpression*> bodies_;
  std::map<std::string, size_t> group_of_;  ///< by the text of Describe
  MultiTensorGroups found_;
};

}  // namespace

std::optional<MultiTensorGroups> FindMultiTensorGroups(const ValidGraph& graph) {
  return GroupFinder(graph).Run();
}

}  // namespace atunner::graph
