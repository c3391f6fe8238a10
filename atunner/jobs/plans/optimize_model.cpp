#include "atunner/jobs/plans/optimize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "atunner/base/clock.h"
#include "atunner/codegen/stages.h"
#include "atunner/codegen/template/family.h"
#include "atunner/importers/divide_model.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/model_file.h"
#include "atunner/jobs/plans/part_tuning.h"
#include "atunner/jobs/plans/plan_builder.h"
#include "atunner/jobs/plans/weights_file.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/operators/part_task.h"

namespace atunner::jobs {
namespace {

constexpr const char* kKernels = "kernels";

/// Success when a plan can be written to the folder.
Status CheckPlanFolder(const Path& folder) {
  std::error_code error;
  if (!Exists(folder) || IsPlan(folder)) return {};
  if (!IsFolder(folder)) return Invalid("is no folder", "request.out " + folder.string());
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename() == kKernels) continue;  // of a run that was interrupted
    return Invalid("holds something else than a plan: " + entry.path().filename().string(),
                   "request.out " + folder.string(), "name a new folder");
  }
  return {};
}

/// The kernels of all segments. Equal parts are one.
struct PlanKernels {
  std::vector<std::unique_ptr<ScheduleTemplate>> wholes;  ///< they own the parts
  std::vector<PlanPart> parts;
  std::vector<PlannedSegment> segments;
};

/// The schedule family of a part, for its folder's name.
std::string FamilyName(const ScheduleTemplate& schedule) {
  const Family* family = FamilyOf(Task::Of(schedule.spec()), /*partitions=*/false);
  return family == nullptr ? "plain" : std::string(family->name);
}

class KernelFinder {
 public:
  KernelFinder(const OptimizeModelRequest& request, const DeviceProfile& profile)
      : request_(request), profile_(profile) {}

  Status Add(const importers::ModelSegment& segment) {
    if (segment.library && AddLibrary(segment)) return {};
    return Add(segment.graph);
  }

  PlanKernels Take() && { return std::move(found_); }

 private:
  Status Add(const graph::ValidGraph& graph) {
    ATUNNER_TRY(KernelSpec spec, SpecOfGraph(graph, {}));
    SetAccuracy(spec, request_.accuracy);
    ATUNNER_TRY(auto whole, MakeTemplate(TaskOf(std::move(spec)), profile_));
    PlannedSegment segment;
    if (const auto* divided = dynamic_cast<const PartitionedSchedule*>(whole.get())) {
      const std::vector<const ScheduleTemplate*> parts = divided->Parts();
      for (PartStage& stage : divided->Stages())
        segment.push_back({IndexOf(*parts[stage.part]), std::move(stage.names)});
    } else {
      segment.push_back({IndexOf(*whole), {}});
    }
    found_.segments.push_back(std::move(segment));
    found_.wholes.push_back(std::move(whole));
    return {};
  }

  /// One kernel for a segment that is an operator of the library; false if no family has one for
  /// this GPU.
  bool AddLibrary(const importers::ModelSegment& segment) {
    const importers::LibraryCall& call = *segment.library;
    const Operator* op = FindOperator(call.name);
    if (op == nullptr) return false;
    auto spec = op->Instantiate({call.shapes, call.dtype, call.attributes});
    if (!spec) return false;
    // A model's scores may be of any size, unlike those of the judge's inputs.
    spec->attributes[std::string(kScoresOfAnySize)] = true;
    SetAccuracy(*spec, request_.accuracy);
    const auto named = NamesOf(*spec, segment.graph);
    if (!named || FamilyOf(Task::Of(*spec), /*partitions=*/false) == nullptr) return false;
    auto whole = MakeTemplate(*spec, profile_);
    if (!whole || dynamic_cast<const PartitionedSchedule*>(whole->get()) != nullptr) return false;
    found_.segments.push_back({{IndexOf(**whole), *named}});
    found_.wholes.push_back(*std::move(whole));
    return true;
  }

  /// The graph's name of each tensor of a task that has the same ones in the same order.
  static std::optional<std::map<std::string, std::string>> NamesOf(const KernelSpec& spec,
                                                                   const graph::ValidGraph& graph) {
    std::map<std::string, std::string> names;
    size_t inputs = 0, outputs = 0;
    for (const ArgSpec& arg : spec.args) {
      if (arg.role == Role::kInput && inputs < graph.inputs().size())
        names[arg.name] = graph.node(graph.inputs()[inputs++]).name;
      else if (arg.role == Role::kOutput && outputs < graph.outputs().size())
        names[arg.name] = graph.outputs()[outputs++].name;
      else
        return std::nullopt;
    }
    return inputs == graph.inputs().size() && outputs == graph.outputs().size()
               ? std::optional(names)
               : std::nullopt;
  }

  /// A segment that is divided hands the precision of convolutions on to its parts.
  Task TaskOf(KernelSpec spec) const {
    Task task = Task::Of(spec);
    if (request_.conv_precision == ConvPrecision::kFloat32) return task;
    AdoptConvPrecision(request_.conv_precision, task);
    if (FamilyOf(task, /*partitions=*/false) != nullptr) return task;
    SetConvPrecision(spec, request_.conv_precision);
    return Task::Of(std::move(spec));
  }

  size_t IndexOf(const ScheduleTemplate& schedule) {
    const auto [known, added] = known_.emplace(schedule.spec().ContentDigest().ToHex(),
                                               found_.parts.size());
    if (added)
      found_.parts.push_back(
          {&schedule, fmt::format("{}/{}-{}", kKernels, known->second + 1, FamilyName(schedule))});
    return known->second;
  }

  const OptimizeModelRequest& request_;
  const DeviceProfile& profile_;
  std::map<std::string, size_t> known_;
  PlanKernels found_;
};

/// The artifacts of an earlier plan that this one does not have.
void RemoveOthers(const Path& folder, const std::vector<PlanPart>& parts) {
  std::set<std::string> kept;
  for (const PlanPart& part : parts) kept.insert(Path(part.folder).filename().string());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / kKernels, ignored)) {
    if (!kept.contains(entry.path().filename().string()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

class ModelOptimizer {
 public:
  ModelOptimizer(const OptimizeModelRequest& request, Services& services, const EventSink& events,
                 std::stop_token stop)
      : request_(request), services_(services), events_(events), stop_(std::move(stop)) {}

  Result<OptimizeModelResult> Optimize() {
    const std::string name = importers::GraphNameOf(request_.model);
    result_.out = request_.tuning.out.empty() ? services_.runs / ("plan-" + name)
                                              : request_.tuning.out;
    if (!request_.tuning.where.empty())
      return Invalid("conditions are on the parameters of one kernel, and a model has several",
                     "request.where");
    ATUNNER_RETURN_IF_ERROR(CheckPlanFolder(result_.out));
    ATUNNER_TRY(const importers::DividedModel model,
                importers::DivideModelFile(request_.model, {request_.sizes, {}}));
    ATUNNER_TRY(target_, services_.devices.Choose(request_.tuning.target));
    result_.notes = model.notes;
    for (const std::string& note : model.notes) events_(NoteEvent{note});
    KernelFinder finder(request_, target_.profile);
    for (const auto& step : model.steps) {
      if (const auto* segment = std::get_if<importers::ModelSegment>(&step))
        ATUNNER_RETURN_IF_ERROR(finder.Add(*segment));
    }
    const PlanKernels kernels = std::move(finder).Take();
    ATUNNER_RETURN_IF_ERROR(RemoveOldPlan());
    PartTuning tuning(target_, request_.tuning, services_, events_, stop_);
    ATUNNER_TRY(result_.kernels, tuning.Run(kernels.parts, result_.out));
    std::ranges::copy(tuning.notes(), std::back_inserter(result_.notes));
    return Write(model, kernels, name);
  }

 private:
  /// Until the new plan is complete there is none.
  Status RemoveOldPlan() const {
    ATUNNER_RETURN_IF_ERROR(MakeDirectories(result_.out / kKernels));
    std::error_code ignored;
    std::filesystem::remove(result_.out / kPlanFile, ignored);
    return {};
  }

  Result<OptimizeModelResult> Write(const importers::DividedModel& model,
                                    const PlanKernels& kernels, const std::string& name) {
    std::vector<PlannedKernel> planned;
    for (const PlanPart& part : kernels.parts) {
      ATUNNER_TRY(Artifact artifact, LoadArtifact(result_.out / part.folder));
      auto ptx = ReadFile(result_.out / part.folder / "kernel.ptx");
      planned.push_back({part.folder, std::move(artifact), ptx ? *std::move(ptx) : ""});
    }
    ATUNNER_TRY(ExecutionPlan plan, BuildPlan(model, kernels.segments, planned));
    plan.name = name;
    plan.device = planned.front().artifact.device;
    plan.created = UtcTimestamp();
    plan.atunner_version = ATUNNER_VERSION;
    ATUNNER_RETURN_IF_ERROR(WriteWeights(result_.out, request_.model, model.inputs, plan));
    ATUNNER_RETURN_IF_ERROR(CheckPlan(plan));
    for (const size_t i : plan.BuffersOf(PlanBuffer::Kind::kIntermediate))
      result_.unshared_bytes += PlanAligned(plan.buffers[i].Bytes());
    RemoveOthers(result_.out, kernels.parts);
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(result_.out / kPlanFile, PlanText(plan)));
    result_.plan = std::move(plan);
    return std::move(result_);
  }

  const OptimizeModelRequest& request_;
  Services& services_;
  const EventSink& events_;
  std::stop_token stop_;
  Target target_;
  OptimizeModelResult result_;
};

}  // namespace

double OptimizeModelResult::KernelNs() const {
  double ns = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kLaunch && kernels[step.kernel].report.best)
      ns += kernels[step.kernel].report.best->ObjectiveNs().value_or(0);
  }
  return ns;
}

Result<OptimizeModelResult> OptimizeModel(const OptimizeModelRequest& request, Services& services,
                                          const EventSink& events, std::stop_token stop) {
  return ModelOptimizer(request, services, events, std::move(stop)).Optimize();
}

Json ToJson(const OptimizeModelResult& result) {
  const ExecutionPlan& plan = result.plan;
  std::map<std::string, int> steps;
  Json externs = Json::array();
  for (const PlanStep& step : plan.steps) {
    ++steps[std::string(Name(step.kind))];
    if (step.kind == PlanStep::Kind::kExtern) externs.push_back(step.target);
  }
  Json kernels = Json::array();
  for (size_t i = 0; i < result.kernels.size(); ++i) {
    Json kernel = result.kernels[i].summary;
    kernel["folder"] = plan.kernels[i];
    kernels.push_back(std::move(kernel));
  }
  return {{"plan", result.out.string()},
          {"name", plan.name},
          {"device", plan.device},
          {"steps", steps},
          {"externs", externs},
          {"workspace_bytes", plan.workspace_bytes},
          {"unshared_bytes", result.unshared_bytes},
          {"weight_bytes", plan.weight_bytes},
          {"kernel_ns", result.KernelNs()},
          {"notes", result.notes},
          {"kernels", kernels}};
}

}  // namespace atunner::jobs
