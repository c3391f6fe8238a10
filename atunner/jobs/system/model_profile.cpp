#include "atunner/jobs/system/model_profile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/fusion/traffic.h"
#include "atunner/fusion/training_patterns.h"
#include "atunner/graph/operation.h"
#include "atunner/jobs/requests/step_outputs.h"

namespace atunner::jobs {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValidGraph;
using importers::ImportedModel;
using importers::InputKind;
using planning::LayerProfile;

constexpr int kNoLayer = -1;

/// "transformer.h.0.attn.weight" -> "transformer.h.0"; "head.bias" -> "head"; "weight" -> "weight".
std::string LayerName(const std::string& weight) {
  size_t at = 0;
  while (at < weight.size()) {
    const size_t end = std::min(weight.find('.', at), weight.size());
    const std::string_view part = std::string_view(weight).substr(at, end - at);
    const bool number = !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (number) return weight.substr(0, end);
    at = end + 1;
  }
  const size_t dot = weight.rfind('.');
  return dot == std::string::npos ? weight : weight.substr(0, dot);
}

double Elements(const Node& node) {
  return static_cast<double>(graph::ElementCount(node.type.shape).factor());
}

double Bytes(const Node& node) {
  return Elements(node) * static_cast<double>(SizeOf(node.type.dtype));
}

/// Twice the number of multiplications of an einsum.
double ProductFlops(const ValidGraph& graph, const Node& node) {
  const graph::Equation equation = graph::ParsedEquation(node.As<graph::Contract>()->equation);
  std::map<char, double> extents;
  const auto read = [&](const std::string& letters, NodeId id) {
    for (size_t i = 0; i < letters.size(); ++i)
      extents[letters[i]] = static_cast<double>(graph.node(id).type.shape[i].factor());
  };
  read(equation.left, node.operands[0]);
  read(equation.right, node.operands[1]);
  double flops = 2;
  for (const auto& [letter, extent] : extents) flops *= extent;
  return flops;
}

class Profiler {
 public:
  Profiler(const ImportedModel& model, Kernels kernels)
      : model_(model), graph_(model.graph), kernels_(kernels) {}

  Result<planning::ModelProfile> Profile() {
    ATUNNER_RETURN_IF_ERROR(ReadInputs());
    FindForward();
    FindStored();
    for (size_t id = 0; id < graph_.nodes().size(); ++id)
      if (forward_[id]) Visit(static_cast<NodeId>(id));
    if (profile_.layers.empty())
      return Invalid("no weight of the model is used", model_.graph.name(),
                     "export a model with parameters");
    AddParameters();
    AddSaved();
    AddOutputs();
    Finish();
    return std::move(profile_);
  }

 private:
  struct Fact {
    int layer = kNoLayer;
    bool weight = false;  ///< a weight, or a view of one
    bool split = false;   ///< tensor parallelism divides it
    std::string name;     ///< weights: the qualified name
  };

  Status ReadInputs() {
    facts_.resize(graph_.nodes().size());
    if (!graph_.symbols().empty())
      return Invalid("its sizes are open", graph_.name(), "give the model with fixed sizes");
    bool batch = false;
    const size_t inputs = std::min(model_.inputs.size(), graph_.inputs().size());
    for (size_t i = 0; i < inputs; ++i) {
      const NodeId id = graph_.inputs()[i];
      const Node& node = graph_.node(id);
      if (model_.inputs[i].kind == InputKind::kParameter) {
        facts_[id].weight = true;
        facts_[id].name = model_.inputs[i].qualified_name;
        widths_[SizeOf(node.type.dtype)] += Elements(node);
      } else if (model_.inputs[i].kind == InputKind::kUser && !batch && !node.type.shape.empty()) {
        batch = true;
        profile_.batch = std::max<int64_t>(1, node.type.shape[0].factor());
      }
    }
    return {};
  }

  void FindForward() {
    const size_t count = graph_.nodes().size();
    forward_.assign(count, true);
    backward_.assign(count, false);
    profile_.training_step = model_.trains();
    if (!profile_.training_step) return;
    const auto phases = fusion::PhasesOfNodes(graph_, StepOutputsOf(model_));
    for (size_t id = 0; id < count; ++id) {
      forward_[id] = phases[id].forward;
      backward_[id] = phases[id].backward;
    }
  }

  void FindStored() {
    const std::vector<int> uses = graph_.UseCounts();
    std::vector<bool> inside(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      if (!node.As<graph::Map>() && !node.As<graph::Reduce>()) continue;
      for (const NodeId operand : node.operands) inside[operand] = true;
    }
    stored_.assign(graph_.nodes().size(), false);
    for (size_t id = 0; id < stored_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const bool fused = kernels_ == Kernels::kFused && node.As<graph::Map>() && uses[id] == 1 &&
                         inside[id];
      stored_[id] = !fusion::IsView(node) && !fused;
    }
  }

  int LayerOf(const std::string& weight) {
    const std::string name = LayerName(weight);
    const auto [at, added] = numbers_.try_emplace(name, static_cast<int>(profile_.layers.size()));
    if (added) profile_.layers.push_back({.name = name});
    return at->second;
  }

  void Visit(NodeId id) {
    const Node& node = graph_.node(id);
    Fact& fact = facts_[id];
    if (node.operands.empty()) return;
    if (fusion::IsView(node) && facts_[node.operands[0]].weight) {
      fact = facts_[node.operands[0]];
      return;
    }
    std::string split_by;
    for (const NodeId operand : node.operands) {
      const Fact& from = facts_[operand];
      fact.layer = std::max(fact.layer, from.weight ? LayerOf(from.name) : from.layer);
      if (!from.weight) fact.split |= from.split;
      if (from.weight && node.As<graph::Contract>()) split_by = from.name;
    }
    fact.layer = std::max(fact.layer, 0);
    if (!split_by.empty()) Split(node, fact, split_by);
    if (!fusion::IsView(node)) Count(id, !split_by.empty());
  }

  /// A product with a weight: by columns first, by rows then.
  void Split(const Node& node, Fact& fact, const std::string& weight) {
    split_.insert(weight);
    if (fact.split) Layer(fact).reduced_bytes += Bytes(node);
    fact.split = !fact.split;
  }

  LayerProfile& Layer(const Fact& fact) {
    if (profile_.layers.empty()) profile_.layers.push_back({.name = "input"});
    return profile_.layers[static_cast<size_t>(fact.layer)];
  }

  void Count(NodeId id, bool weighted) {
    const Node& node = graph_.node(id);
    planning::KernelWork work;
    work.product = node.As<graph::Contract>() != nullptr;
    work.flops = work.product ? ProductFlops(graph_, node) : Elements(node);
    work.split = weighted || facts_[id].split;
    std::set<NodeId> read;
    for (const NodeId operand : node.operands) Reads(operand, read);
    for (const NodeId each : read)
      (facts_[each].weight ? work.weight_bytes : work.bytes) += Bytes(graph_.node(each));
    if (!stored_[id]) return;
    work.bytes += Bytes(node);
    Layer(facts_[id]).kernels.push_back(work);
  }

  /// Stored values behind views and fused maps.
  void Reads(NodeId id, std::set<NodeId>& read) const {
    const Node& node = graph_.node(id);
    if (stored_[id] || node.operands.empty()) {
      if (!node.As<graph::Constant>()) read.insert(id);
      return;
    }
    for (const NodeId operand : node.operands) Reads(operand, read);
  }

  void AddParameters() {
    for (size_t i = 0; i < std::min(model_.inputs.size(), graph_.inputs().size()); ++i) {
      const NodeId id = graph_.inputs()[i];
      if (!facts_[id].weight) continue;
      const auto found = numbers_.find(LayerName(facts_[id].name));
      if (found == numbers_.end()) continue;  // no node of the forward pass reads it
      LayerProfile& layer = profile_.layers[static_cast<size_t>(found->second)];
      layer.parameters += Elements(graph_.node(id));
      if (split_.contains(facts_[id].name)) layer.split_parameters += Elements(graph_.node(id));
    }
  }

  void AddSaved() {
    std::set<NodeId> saved;
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      if (!profile_.training_step && stored_[id]) saved.insert(static_cast<NodeId>(id));
      if (!backward_[id]) continue;
      for (const NodeId operand : graph_.nodes()[id].operands) {
        const NodeId from = fusion::StoredNode(graph_, operand);
        if (forward_[from]) saved.insert(from);
      }
    }
    for (const NodeId id : saved) {
      const Fact& fact = facts_[id];
      if (fact.weight || fact.layer == kNoLayer) continue;
      Layer(fact).saved_bytes += Bytes(graph_.node(id));
      if (fact.split) Layer(fact).split_saved_bytes += Bytes(graph_.node(id));
    }
  }

  /// What a cut behind a layer must send: values of it or earlier ones that later ones read.
  void AddOutputs() {
    std::vector<int> last(graph_.nodes().size(), kNoLayer);
    for (size_t id = 0; id < last.size(); ++id) {
      if (!forward_[id] || facts_[id].layer == kNoLayer) continue;
      for (const NodeId operand : graph_.nodes()[id].operands) {
        const NodeId from = fusion::StoredNode(graph_, operand);
        last[from] = std::max(last[from], facts_[id].layer);
      }
    }
    for (size_t id = 0; id < last.size(); ++id) {
      const Fact& fact = facts_[id];
      if (fact.weight || fact.layer == kNoLayer) continue;
      for (int layer = fact.layer; layer < last[id]; ++layer)
        profile_.layers[static_cast<size_t>(layer)].output_bytes += Bytes(graph_.nodes()[id]);
    }
  }

  /// Per sample, and notes.
  void Finish() {
    profile_.name = graph_.name();
    const auto samples = static_cast<double>(profile_.batch);
    for (LayerProfile& layer : profile_.layers) {
      for (planning::KernelWork& kernel : layer.kernels) {
        kernel.flops /= samples;
        kernel.bytes /= samples;
      }
      layer.saved_bytes /= samples;
      layer.split_saved_bytes /= samples;
      layer.output_bytes /= samples;
      layer.reduced_bytes /= samples;
    }
    profile_.parameter_bytes = widths_[2] > widths_[4] + widths_[8] ? 2 : 4;
    profile_.notes.push_back("a batch of " + std::to_string(profile_.batch) +
                             " in the program: the first axis of its first input");
    profile_.notes.emplace_back(profile_.training_step
                                    ? "saved values are those that the backward pass reads"
                                    : "no backward pass: all stored values count as saved, and it "
                                      "takes twice the forward pass");
  }

  const ImportedModel& model_;
  const ValidGraph& graph_;
  Kernels kernels_;
  planning::ModelProfile profile_;
  std::vector<Fact> facts_;
  std::vector<bool> forward_, backward_, stored_;
  std::map<std::string, int> numbers_;  ///< of layers, by name
  std::set<std::string> split_;         ///< weights of products
  std::map<size_t, double> widths_;     ///< parameters by bytes of their type
};

}  // namespace

Result<planning::ModelProfile> ProfileOfModel(const ImportedModel& model, Kernels kernels) {
  return Profiler(model, kernels).Profile();
}

}  // namespace atunner::jobs
