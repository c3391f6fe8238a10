#include "atunner/jobs/plans/in_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "atunner/graph/compose.h"
#include "atunner/graph/graph.h"
#include "atunner/operators/task.h"

namespace atunner::jobs {
namespace {

bool Reads(const PlanStep& step, size_t buffer) {
  return std::ranges::count(step.reads, buffer, &PlanTensor::buffer) > 0;
}

bool Writes(const PlanStep& step, size_t buffer) {
  return std::ranges::count(step.writes, buffer, &PlanTensor::buffer) > 0;
}

const std::string& ArgumentOf(const std::vector<PlanTensor>& tensors, size_t buffer) {
  return std::ranges::find(tensors, buffer, &PlanTensor::buffer)->argument;
}

/// True for a reduction that keeps the last axis.
bool SumsColumns(const graph::ValidGraph& graph, const graph::Node& node) {
  const auto* reduce = node.As<graph::Reduce>();
  if (reduce == nullptr) return false;
  const auto rank = static_cast<int64_t>(graph.node(node.operands[0]).type.shape.size());
  return std::ranges::count(reduce->axes, rank - 1) == 0;
}

/// True if `output` depends on `input`, and all that does is computed element by element at the
/// same place. What else the output needs may be a product, which is complete before its epilogue
/// reads anything, scalars that are cut from a list, an embedding's gradient, whose rows one thread
/// sums and finishes, and sums over all but the last axis, which one thread of each column
/// finishes. The rest of the graph does not matter.
bool StaysInPlace(const graph::ValidGraph& graph, graph::NodeId input, const std::string& output) {
  const auto result = std::ranges::find(graph.outputs(), output, &graph::Output::name);
  if (result == graph.outputs().end()) return false;
  const graph::Extent count = graph::ElementCount(graph.node(input).type.shape);
  const std::vector<bool> needed = graph::NeededFor(graph, {result->node});
  if (!needed[static_cast<size_t>(input)]) return false;
  std::vector<bool> depends(graph.nodes().size(), false);
  depends[static_cast<size_t>(input)] = true;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const graph::Node& node = graph.nodes()[id];
    const bool same = node.As<graph::Map>() || node.As<graph::Reshape>();
    const bool before = same || node.As<graph::Input>() || node.As<graph::Constant>() ||
                        node.As<graph::Contract>() || node.As<graph::Slice>() ||
                        node.As<graph::Scatter>() || SumsColumns(graph, node);
    if (needed[id] && !before) return false;
    if (std::ranges::none_of(
            node.operands, [&](graph::NodeId from) { return depends[static_cast<size_t>(from)]; }))
      continue;
    if (!same || !(graph::ElementCount(node.type.shape) == count)) return false;
    depends[id] = true;
  }
  return true;
}

/// False if the kernel's PTX does not use the parameter. Launches of one family often get all of
/// the task's tensors.
bool UsesParameter(std::string_view ptx, const std::string& entry, size_t number) {
  const std::string name = fmt::format("{}_param_{}", entry, number);
  int found = 0;
  for (size_t at = ptx.find(name); at != std::string_view::npos; at = ptx.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == ptx.size() || ptx[end] < '0' || ptx[end] > '9') ++found;
  }
  return found != 1;  // once is the declaration alone
}

bool Mentions(const LaunchStep& step, const std::string& tensor, std::string_view ptx) {
  for (size_t i = 0; i < step.args.size(); ++i) {
    const ArgBinding& arg = step.args[i];
    if (arg.kind == ArgBinding::Kind::kBytes) {
      if (std::ranges::count(arg.raw.pointers, tensor, &ParameterBytes::Pointer::name) > 0)
        return true;
    } else if (!InWorkspace(arg.kind) && arg.name == tensor && UsesParameter(ptx, step.entry, i)) {
      return true;
    }
  }
  return false;
}

/// True if one launch writes `written`, and none behind it reads `read`.
bool ReadsBeforeItWrites(const LaunchPlan& plan, const std::string& read,
                         const std::string& written, std::string_view ptx) {
  if (std::ranges::count(plan.symbols, read, &SymbolCopy::tensor) > 0) return false;
  std::optional<size_t> writer;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const bool writes = Mentions(plan.steps[i], written, ptx);
    if (writer && (writes || Mentions(plan.steps[i], read, ptx))) return false;
    if (writes) writer = i;
  }
  return writer.has_value();
}

class Updates {
 public:
  Updates(ExecutionPlan& plan, const std::vector<PlannedKernel>& kernels)
      : plan_(plan), kernels_(kernels) {}

  void Run() {
    for (size_t i = 0; i < plan_.steps.size();) {
      if (Removes(i))
        plan_.steps.erase(plan_.steps.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
  }

 private:
  /// True if the step is a copy that is not needed any more.
  bool Removes(size_t copy) {
    if (plan_.steps[copy].kind != PlanStep::Kind::kCopy) return false;
    const size_t made = plan_.steps[copy].reads[0].buffer;
    const size_t changed = plan_.steps[copy].writes[0].buffer;
    const PlanBuffer::Kind kind = plan_.buffers[changed].kind;
    if (plan_.buffers[made].kind != PlanBuffer::Kind::kIntermediate ||
        kind == PlanBuffer::Kind::kOutput || kind == PlanBuffer::Kind::kIntermediate ||
        plan_.buffers[made].dtype != plan_.buffers[changed].dtype)
      return false;
    const auto writer = WriterOf(made);
    if (!writer || *writer >= copy || !MayWrite(plan_.steps[*writer], made, changed)) return false;
    if (!ReadBefore(changed, *writer, copy)) return false;
    Replace(made, changed);
    return true;
  }

  /// The only step that writes a buffer.
  std::optional<size_t> WriterOf(size_t buffer) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (!Writes(plan_.steps[i], buffer)) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  bool MayWrite(const PlanStep& step, size_t made, size_t changed) {
    if (step.kind != PlanStep::Kind::kLaunch || Writes(step, changed)) return false;
    const auto uses = std::ranges::count(step.reads, changed, &PlanTensor::buffer);
    if (uses != 1) return uses == 0;
    const auto key = std::tuple(step.kernel, ArgumentOf(step.reads, changed),
                                ArgumentOf(step.writes, made));
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
    const auto& [kernel, read, written] = key;
    return answers_[key] = WritesInPlace(kernels_[kernel], read, written);
  }

  /// Moves steps between `writer` and `copy` that read the old value to the front of the writer.
  /// False if one cannot be moved; what was moved before is right at its new place, too.
  bool ReadBefore(size_t changed, size_t writer, size_t copy) {
    for (size_t i = writer + 1; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      if (i == copy) continue;
      if (Writes(step, changed)) return false;
      if (!Reads(step, changed)) continue;
      if (i > copy || !Independent(writer, i)) return false;
      const auto begin = plan_.steps.begin() + static_cast<std::ptrdiff_t>(writer);
      const auto moved = plan_.steps.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(begin, moved, moved + 1);
      ++writer;
    }
    return true;
  }

  /// True if step `last` may run in front of the steps from `first` on.
  bool Independent(size_t first, size_t last) const {
    const PlanStep& moved = plan_.steps[last];
    for (size_t i = first; i < last; ++i) {
      for (const PlanTensor& tensor : plan_.steps[i].writes) {
        if (Reads(moved, tensor.buffer) || Writes(moved, tensor.buffer)) return false;
      }
      for (const PlanTensor& tensor : plan_.steps[i].reads) {
        if (Writes(moved, tensor.buffer)) return false;
      }
    }
    return true;
  }

  void Replace(size_t made, size_t changed) {
    for (PlanStep& step : plan_.steps) {
      for (auto* tensors : {&step.reads, &step.writes}) {
        for (PlanTensor& tensor : *tensors) {
          if (tensor.buffer == made) tensor.buffer = changed;
        }
      }
    }
  }

  ExecutionPlan& plan_;
  const std::vector<PlannedKernel>& kernels_;
  std::map<std::tuple<size_t, std::string, std::string>, bool> answers_;
};

}  // namespace

bool WritesInPlace(const PlannedKernel& kernel, const std::string& read,
                   const std::string& written) {
  if (!ReadsBeforeItWrites(kernel.artifact.plan, read, written, kernel.ptx)) return false;
  const auto task = Task::Make(kernel.artifact.spec);
  if (!task || task->graph() == nullptr) return false;
  const graph::ValidGraph& graph = *task->graph();
  for (const graph::NodeId input : graph.inputs()) {
    if (graph.node(input).name == read) return StaysInPlace(graph, input, written);
  }
  return false;
}

void UpdateInPlace(ExecutionPlan& plan, const std::vector<PlannedKernel>& kernels) {
  Updates(plan, kernels).Run();
}

}  // namespace atunner::jobs
