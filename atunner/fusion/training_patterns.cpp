#include "atunner/fusion/training_patterns.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "atunner/graph/compose.h"
#include "atunner/graph/operation.h"

namespace atunner::fusion {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;

/// What a pattern looks at: one group's nodes by kind and phase, and the results that it writes.
struct GroupFacts {
  size_t launches = 0;
  size_t products = 0, maps = 0, sums = 0;
  size_t gradients = 0, updates = 0;  ///< results of the step that the group writes
  size_t tensors = 0;                 ///< parameters whose next values the group writes
  bool forward = false, backward = false, optimizer = false;
  bool product_of_backward = false;  ///< a product that only gradients need
  bool rows_and_columns = false;     ///< sums along different axes
  bool exponentials = false;
  bool gates = false;          ///< a map of the backward pass with a comparison: ReLU, a mask
  bool saved_operand = false;  ///< a map of the backward pass reads a value of the forward pass
};

struct Pattern {
  const char* name;
  bool (*matches)(const GroupFacts&);
  const char* reason;
};

/// A group may have several.
constexpr Pattern kPatterns[] = {
    {"activation backward in a product's epilogue",
     [](const GroupFacts& f) {
       return f.product_of_backward && f.backward && f.maps > 0 && f.saved_operand;
     },
     "the gradient of the activation is applied where the product is stored, so that the product "
     "itself is not written"},
    {"bias gradient with its operand",
     [](const GroupFacts& f) {
       return f.backward && !f.forward && f.gradients > 0 && f.sums > 0 && f.maps > 0 &&
              f.products == 0 && !f.rows_and_columns;
     },
     "the sum over rows takes what the group computes, which is not written for it"},
    {"rows and columns in one pass",
     [](const GroupFacts& f) { return f.backward && f.rows_and_columns && f.launches == 1; },
     "sums along rows and along columns, as norms' gradients have them, read the data once"},
    {"loss with its gradient",
     [](const GroupFacts& f) { return f.forward && f.backward && f.exponentials; },
     "the loss and the gradient of the logits are made of the same values"},
    {"forward and backward in one kernel",
     [](const GroupFacts& f) { return f.forward && f.backward && !f.exponentials; },
     "the backward pass needs what the forward pass has at hand"},
    {"gradient with its update",
     [](const GroupFacts& f) { return f.backward && f.optimizer && f.updates > 0; },
     "the optimizer is in the group that makes the gradient"},
    {"optimizer over several tensors",
     [](const GroupFacts& f) { return f.optimizer && !f.backward && f.tensors > 1; },
     "updates of several tensors are one group"},
    {"optimizer of one tensor",
     [](const GroupFacts& f) { return f.optimizer && !f.backward && f.tensors == 1; },
     "moments, decay and update are one group"},
    {"ReLU backward with what follows",
     [](const GroupFacts& f) { return f.backward && f.gates && f.products == 0 && f.sums > 0; },
     "the masked gradient is not written before it is summed"},
};

bool Compares(const Node& node) {
  const auto* map = node.As<graph::Map>();
  return map &&
         (map->body.Uses(graph::ScalarOp::kSelect) || map->body.Uses(graph::ScalarOp::kLess) ||
          map->body.Uses(graph::ScalarOp::kLessEqual) || map->body.Uses(graph::ScalarOp::kGreater));
}

class FactFinder {
 public:
  FactFinder(const FusionPlan& plan, const std::vector<StepOutput>& outputs,
             const std::vector<Phases>& phases)
      : plan_(plan), phases_(phases) {
    for (const StepOutput& output : outputs) {
      if (output.role == StepRole::kGradient) gradients_.insert(output.name);
      if (output.role != StepRole::kUpdate) continue;
      updates_.insert(output.name);
      if (!output.of.starts_with("optimizer.")) parameters_.insert(output.name);
    }
  }

  GroupFacts Of(const FusedGroup& group) {
    GroupFacts facts{.launches = group.launches};
    std::set<std::vector<int64_t>> axes;
    for (const NodeId id : group.nodes) Take(id, facts, axes);
    facts.rows_and_columns = axes.size() > 1;
    for (const std::string& output : group.outputs) {
      facts.gradients += gradients_.count(output);
      facts.updates += updates_.count(output);
      facts.tensors += parameters_.count(output);
    }
    return facts;
  }

 private:
  void Take(NodeId id, GroupFacts& facts, std::set<std::vector<int64_t>>& axes) {
    const Node& node = plan_.graph.node(id);
    const Phases& phases = phases_[static_cast<size_t>(id)];
    const bool backward = phases.backward && !phases.forward;
    if (!IsView(node)) {
      facts.forward |= phases.forward;
      facts.backward |= backward;
      facts.optimizer |= phases.optimizer;
    }
    if (node.As<graph::Contract>()) {
      ++facts.products;
      facts.product_of_backward |= backward;
    }
    if (const auto* reduce = node.As<graph::Reduce>()) {
      facts.sums += reduce->op == graph::Combine::kSum || reduce->op == graph::Combine::kMean;
      if (backward) axes.insert(reduce->axes);
    }
    if (const auto* map = node.As<graph::Map>()) {
      ++facts.maps;
      facts.exponentials |= map->body.Uses(graph::ScalarOp::kExp);
      facts.gates |= backward && Compares(node);
      facts.saved_operand |= backward && ReadsForward(node);
    }
  }

  bool ReadsForward(const Node& node) const {
    return std::ranges::any_of(node.operands, [&](NodeId operand) {
      const NodeId stored = StoredNode(plan_.graph, operand);
      return phases_[static_cast<size_t>(stored)].forward ||
             plan_.graph.node(stored).As<graph::Input>();
    });
  }

  const FusionPlan& plan_;
  const std::vector<Phases>& phases_;
  std::set<std::string> gradients_, updates_, parameters_;  ///< names of outputs
};

}  // namespace

std::vector<Phases> PhasesOfNodes(const ValidGraph& graph, const std::vector<StepOutput>& outputs) {
  std::vector<NodeId> losses, gradients, updates;
  for (size_t i = 0; i < std::min(outputs.size(), graph.outputs().size()); ++i) {
    const NodeId node = graph.outputs()[i].node;
    switch (outputs[i].role) {
      case StepRole::kUpdate:
        updates.push_back(node);
        break;
      case StepRole::kGradient:
        gradients.push_back(node);
        break;
      default:
        losses.push_back(node);
    }
  }
  const std::vector<bool> forward = graph::NeededFor(graph, losses),
                          backward = graph::NeededFor(graph, gradients),
                          optimizer = graph::NeededFor(graph, updates);
  std::vector<Phases> phases(graph.nodes().size());
  for (size_t id = 0; id < phases.size(); ++id)
    phases[id] = {.forward = forward[id],
                  .backward = backward[id] && !forward[id],
                  .optimizer = optimizer[id] && !backward[id] && !forward[id]};
  return phases;
}

std::vector<NamedFusion> TrainingFusions(const FusionPlan& plan,
                                         const std::vector<StepOutput>& outputs,
                                         const std::vector<Phases>& phases) {
  std::vector<NamedFusion> found;
  FactFinder finder(plan, outputs, phases);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupFacts facts = finder.Of(plan.groups[i]);
    for (const Pattern& pattern : kPatterns) {
      if (pattern.matches(facts)) found.push_back({pattern.name, i, pattern.reason});
    }
  }
  return found;
}

}  // namespace atunner::fusion
