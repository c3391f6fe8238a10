#include "atunner/jobs/plans/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "atunner/jobs/plans/in_place.h"
#include "atunner/jobs/plans/step_order.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner::jobs {
namespace {

using importers::DividedInput;
using importers::ExternCall;
using importers::ModelSegment;
using importers::ModelValue;
using Kind = PlanBuffer::Kind;

PlanBuffer BufferOf(const ModelValue& value, Kind kind) {
  PlanBuffer buffer{value.name, kind, value.type.dtype, {}};
  for (const graph::Extent& extent : value.type.shape) buffer.extents.push_back(extent.factor());
  return buffer;
}

/// The scratch memory of one launch, with each of its workspaces aligned as the loader does it.
Result<uint64_t> ScratchBytes(const Artifact& artifact) {
  ATUNNER_TRY(const ConcretePlan plan,
              Resolve(artifact.plan, artifact.spec.dims, artifact.spec.attributes));
  uint64_t bytes = 0;
  for (const ConcreteWorkspace& workspace : plan.workspaces) bytes += PlanAligned(workspace.bytes);
  return bytes;
}

/// True for the new value of something that the model changes.
bool IsUpdate(const importers::ProgramOutput& output) {
  return output.role == importers::OutputRole::kUpdate;
}

class Builder {
 public:
  Builder(const importers::DividedModel& model, const std::vector<PlannedSegment>& segments,
          const std::vector<PlannedKernel>& kernels)
      : model_(model), segments_(segments), kernels_(kernels) {}

  Result<ExecutionPlan> Build() {
    for (const PlannedKernel& kernel : kernels_) plan_.kernels.push_back(kernel.folder);
    AddInputs();
    ChooseOutputs();
    size_t segment = 0;
    for (const auto& step : model_.steps) {
      if (const auto* call = std::get_if<ExternCall>(&step)) {
        ATUNNER_RETURN_IF_ERROR(AddExtern(*call));
        continue;
      }
      const auto& graph = std::get<ModelSegment>(step);
      ATUNNER_RETURN_IF_ERROR(AddSegment(graph, segment, segments_[segment]));
      ++segment;
    }
    ATUNNER_RETURN_IF_ERROR(AddCopies());
    UpdateInPlace(plan_, kernels_);
    OrderForMemory(plan_);
    OrderOutputs();
    DropUnused();
    ATUNNER_RETURN_IF_ERROR(PlaceIntermediates(plan_));
    return std::move(plan_);
  }

 private:
  void AddInputs() {
    for (const DividedInput& input : model_.inputs) {
      const bool given = input.kind == importers::InputKind::kUser || !input.place;
      PlanBuffer buffer = BufferOf(input.value, given ? Kind::kInput : Kind::kWeight);
      buffer.qualified_name = input.qualified_name;
      inputs_.insert(input.value.name);
      if (!input.qualified_name.empty()) qualified_[input.qualified_name] = input.value.name;
      Add(std::move(buffer));
    }
  }

  size_t Add(PlanBuffer buffer) {
    by_name_[buffer.name] = plan_.buffers.size();
    plan_.buffers.push_back(std::move(buffer));
    return plan_.buffers.size() - 1;
  }

  /// The first result of each value is written where the caller wants it; others are copies.
  void ChooseOutputs() {
    for (const importers::ProgramOutput& output : model_.outputs) {
      if (!IsUpdate(output) && !inputs_.contains(output.name)) direct_.insert(output.name);
    }
  }

  /// The buffer of a value of the program, made at its first use as a result of a step.
  size_t AddValue(const ModelValue& value) {
    const Kind kind = direct_.contains(value.name) ? Kind::kOutput : Kind::kIntermediate;
    return Add(BufferOf(value, kind));
  }

  /// A value that nothing made before.
  static std::unexpected<Error> NotMade(const std::string& name) {
    return Fail(ErrorCode::kInternal, "the plan needs '" + name + "', which no step makes");
  }

  Status AddExtern(const ExternCall& call) {
    PlanStep step{PlanStep::Kind::kExtern, {}, {}};
    step.target = call.target;
    step.arguments = call.arguments;
    for (const std::string& name : call.reads) {
      ATUNNER_TRY(const size_t made, Made(name));
      step.reads.push_back({name, made});
    }
    for (const std::string& name : call.writes) {
      const auto value = std::ranges::find(model_.externs, name, &ModelValue::name);
      if (value == model_.externs.end()) return NotMade(name);
      step.writes.push_back({name, AddValue(*value)});
    }
    plan_.steps.push_back(std::move(step));
    return {};
  }

  /// Names of the segment's graph become buffers: its inputs are known values, its outputs new
  /// ones.
  Status AddSegment(const ModelSegment& segment, size_t number, const PlannedSegment& launches) {
    names_.clear();
    const auto& graph = segment.graph;
    for (size_t i = 0; i < segment.inputs.size(); ++i) {
      ATUNNER_TRY(const size_t made, Made(segment.inputs[i]));
      names_[graph.node(graph.inputs()[i]).name] = made;
    }
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      const graph::Output& output = graph.outputs()[i];
      names_[output.name] = AddValue({segment.outputs[i], graph.node(output.node).type});
    }
    for (const PlannedLaunch& launch : launches)
      ATUNNER_RETURN_IF_ERROR(AddLaunch(launch, fmt::format("s{}.", number)));
    return {};
  }

  Status AddLaunch(const PlannedLaunch& launch, const std::string& prefix) {
    const Artifact& artifact = kernels_[launch.kernel].artifact;
    PlanStep step{PlanStep::Kind::kLaunch, {}, {}, launch.kernel};
    for (const ArgSpec& arg : artifact.spec.args) {
      if (arg.role == Role::kScalar) continue;
      const auto named = launch.names.find(arg.name);
      const std::string& name = named == launch.names.end() ? arg.name : named->second;
      ATUNNER_TRY(const size_t buffer, BufferOfTensor(artifact, arg, name, prefix));
      if (arg.role != Role::kOutput) step.reads.push_back({arg.name, buffer});
      if (arg.role != Role::kInput) step.writes.push_back({arg.name, buffer});
    }
    ATUNNER_TRY(const uint64_t scratch, ScratchBytes(artifact));
    if (scratch > 0)
      step.scratch.push_back(Add({fmt::format("scratch.{}", plan_.steps.size()),
                                  Kind::kIntermediate,
                                  DType::kUInt8,
                                  {static_cast<int64_t>(scratch)}}));
    plan_.steps.push_back(std::move(step));
    return {};
  }

  Result<size_t> BufferOfTensor(const Artifact& artifact, const ArgSpec& arg,
                                const std::string& name, const std::string& prefix) {
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, artifact.spec, artifact.spec.dims));
    const auto known = names_.find(name);
    if (known == names_.end()) {
      if (arg.role == Role::kInput) return NotMade(name);
      names_[name] = Add({prefix + name, Kind::kIntermediate, arg.dtype, shape.extents});
      return names_[name];
    }
    const uint64_t bytes = plan_.buffers[known->second].Bytes();
    if (bytes != static_cast<uint64_t>(shape.bytes))
      return Fail(ErrorCode::kInternal,
                  fmt::format("'{}' has {} bytes in the model and {} in the kernel", name, bytes,
                              shape.bytes));
    return known->second;
  }

  /// Copies for results that are written already or that are inputs; then new values of what the
  /// model changes, which nothing may read before.
  Status AddCopies() {
    std::set<std::string> done;
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
      const importers::ProgramOutput& output = model_.outputs[i];
      if (IsUpdate(output)) continue;
      ATUNNER_TRY(const size_t made, Made(output.name));
      const bool direct = direct_.contains(output.name) && done.insert(output.name).second;
      results_.push_back(direct ? made : AddResult(made, i));
      if (!direct) AddCopy(made, results_.back());
    }
    for (const importers::ProgramOutput& output : model_.outputs) {
      if (!IsUpdate(output)) continue;
      ATUNNER_TRY(const size_t made, Made(output.name));
      ATUNNER_TRY(const size_t changed, ChangedBuffer(output.of));
      if (made != changed) AddCopy(made, changed);
    }
    return {};
  }

  Result<size_t> Made(const std::string& name) const {
    const auto made = by_name_.find(name);
    if (made == by_name_.end()) return NotMade(name);
    return made->second;
  }

  size_t AddResult(size_t of, size_t number) {
    PlanBuffer copy = plan_.buffers[of];
    copy.kind = Kind::kOutput;
    copy.name = fmt::format("result.{}", number);
    copy.qualified_name.clear();
    copy.offset = 0;
    return Add(std::move(copy));
  }

  void AddCopy(size_t from, size_t to) {
    plan_.steps.push_back({PlanStep::Kind::kCopy, {{"", from}}, {{"", to}}});
  }

  /// The buffer or input whose new value an output is, by its name in the program or its qualified
  /// name.
  Result<size_t> ChangedBuffer(const std::string& name) const {
    const auto qualified = qualified_.find(name);
    return Made(qualified == qualified_.end() ? name : qualified->second);
  }

  /// The buffers in another order: `order` lists old indices.
  void Reorder(const std::vector<size_t>& order) {
    std::vector<size_t> moved(plan_.buffers.size(), plan_.buffers.size());
    std::vector<PlanBuffer> buffers;
    for (const size_t old : order) {
      moved[old] = buffers.size();
      buffers.push_back(std::move(plan_.buffers[old]));
    }
    plan_.buffers = std::move(buffers);
    for (PlanStep& step : plan_.steps) {
      for (PlanTensor& tensor : step.reads) tensor.buffer = moved[tensor.buffer];
      for (PlanTensor& tensor : step.writes) tensor.buffer = moved[tensor.buffer];
      for (size_t& scratch : step.scratch) scratch = moved[scratch];
    }
  }

  void OrderOutputs() {
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].kind != Kind::kOutput) order.push_back(i);
    }
    order.insert(order.end(), results_.begin(), results_.end());
    Reorder(order);
  }

  /// Drops weights that nothing reads, and intermediates in whose place weights are written.
  void DropUnused() {
    std::vector<bool> used(plan_.buffers.size(), false);
    for (const PlanStep& step : plan_.steps) {
      for (const PlanTensor& tensor : step.reads) used[tensor.buffer] = true;
      for (const PlanTensor& tensor : step.writes) used[tensor.buffer] = true;
      for (const size_t scratch : step.scratch) used[scratch] = true;
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const PlanBuffer& buffer = plan_.buffers[i];
      const bool weight = buffer.kind == Kind::kWeight || !buffer.qualified_name.empty();
      if (used[i] || (!weight && buffer.kind != Kind::kIntermediate)) order.push_back(i);
    }
    Reorder(order);
  }

  const importers::DividedModel& model_;
  const std::vector<PlannedSegment>& segments_;
  const std::vector<PlannedKernel>& kernels_;
  ExecutionPlan plan_;
  std::map<std::string, size_t, std::less<>> by_name_;  ///< buffers
  std::map<std::string, size_t, std::less<>> names_;    ///< buffers by names in the segment's graph
  std::map<std::string, std::string, std::less<>> qualified_;  ///< the program's names of weights
  std::set<std::string> inputs_, direct_;
  std::vector<size_t> results_;
};

}  // namespace

Result<ExecutionPlan> BuildPlan(const importers::DividedModel& model,
                                const std::vector<PlannedSegment>& segments,
                                const std::vector<PlannedKernel>& kernels) {
  return Builder(model, segments, kernels).Build();
}

}  // namespace atunner::jobs
