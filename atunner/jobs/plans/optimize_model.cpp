#include "atunner/jobs/plans/optimize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "atunner/base/clock.h"
#include "atunner/codegen/stages.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/plain_schedule.h"
#include "atunner/importers/divide_model.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/model_file.h"
#include "atunner/jobs/plans/plan_builder.h"
#include "atunner/jobs/plans/weights_file.h"
#include "atunner/jobs/runs/tuning.h"
#include "atunner/judge/candidate_compiler.h"
#include "atunner/measure/harness.h"
#include "atunner/model/schedule/partitioned_schedule.h"
#include "atunner/operators/graph_operator.h"
#include "atunner/operators/operator.h"
#include "atunner/operators/part_task.h"
#include "atunner/tune/part_choices.h"

namespace atunner::jobs {
namespace {

constexpr const char* kKernels = "kernels";
/// Trials of a kernel without a search: the first is nearly always right.
constexpr int64_t kMostGuesses = 11;

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

/// A distinct kernel of the model.
struct Part {
  const ScheduleTemplate* schedule = nullptr;
  std::string folder;  ///< from the plan's own
};

/// The kernels of all segments. Equal parts are one.
struct PlanKernels {
  std::vector<std::unique_ptr<ScheduleTemplate>> wholes;  ///< they own the parts
  std::vector<Part> parts;
  std::vector<PlannedSegment> segments;
};

/// The schedule family of a part, for its folder's name.
std::string FamilyName(const ScheduleTemplate& schedule) {
  const Family* family = FamilyOf(Task::Of(schedule.spec()), /*partitions=*/false);
  return family == nullptr ? "plain" : std::string(family->name);
}

class KernelFinder {
 public:
  KernelFinder(Accuracy accuracy, const DeviceProfile& profile)
      : accuracy_(accuracy), profile_(profile) {}

  Status Add(const importers::ModelSegment& segment) {
    if (segment.library && AddLibrary(segment)) return {};
    return Add(segment.graph);
  }

  PlanKernels Take() && { return std::move(found_); }

 private:
  Status Add(const graph::ValidGraph& graph) {
    ATUNNER_TRY(KernelSpec spec, SpecOfGraph(graph, {}));
    spec.attributes[std::string(kProductsInOwnType)] = true;
    SetAccuracy(spec, accuracy_);
    ATUNNER_TRY(auto whole, MakeTemplate(spec, profile_));
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
    SetAccuracy(*spec, accuracy_);
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

  size_t IndexOf(const ScheduleTemplate& schedule) {
    const auto [known, added] = known_.emplace(schedule.spec().ContentDigest().ToHex(),
                                               found_.parts.size());
    if (added)
      found_.parts.push_back(
          {&schedule, fmt::format("{}/{}-{}", kKernels, known->second + 1, FamilyName(schedule))});
    return known->second;
  }

  Accuracy accuracy_;
  const DeviceProfile& profile_;
  std::map<std::string, size_t> known_;
  PlanKernels found_;
};

/// Fills the compiler's cache with every part's first configuration, on all cores. What does not
/// compile is reported when the part is examined.
Status CompileFirstGuesses(const std::vector<Part>& parts, const DeviceProfile& profile,
                           const TuningOptions& options, Services& services,
                           const std::stop_token& stop) {
  ATUNNER_TRY(const auto compiler, services.compilers.Open(options.compile_timeout_seconds));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size() && !stop.stop_requested(); i = next++) {
      const ScheduleTemplate& schedule = *parts[i].schedule;
      Candidate first;
      first.what = schedule.Default();
      (void)CandidateCompiler(schedule, *compiler, profile.Arch()).Compile(first, stop);
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min<size_t>(cores, parts.size()); ++i) threads.emplace_back(work);
  return {};
}

/// The budget of each part, which together have the whole one.
std::vector<Budget> BudgetsOf(const PlanKernels& kernels, const Budget& budget,
                              const DeviceProfile& profile) {
  std::vector<double> least_ns;
  for (const Part& part : kernels.parts)
    least_ns.push_back(PhysicalFloorNs(part.schedule->spec(), profile));
  if (least_ns.size() == 1) return {budget};
  return DivideBudget(budget, least_ns).parts;
}

/// The artifacts of an earlier plan that this one does not have.
void RemoveOthers(const Path& folder, const std::vector<Part>& parts) {
  std::set<std::string> kept;
  for (const Part& part : parts) kept.insert(Path(part.folder).filename().string());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / kKernels, ignored)) {
    if (!kept.contains(entry.path().filename().string()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

/// Why the last trial was refused.
std::string ReasonOf(const RunResult& failed) {
  const std::vector<Trial>& trials = failed.report.trials;
  if (trials.empty()) return "no trial was made";
  const Verdict& last = trials.back().verdict;
  const std::string counted = trials.size() == 1 ? "the trial" : "the last trial";
  if (last.kind == VerdictKind::kCorrect)
    return counted + " was refused when it was verified again";
  return fmt::format("{} was refused ({}): {}", counted, Name(last.kind), last.reason);
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
    KernelFinder finder(request_.accuracy, target_.profile);
    for (const auto& step : model.steps) {
      if (const auto* segment = std::get_if<importers::ModelSegment>(&step))
        ATUNNER_RETURN_IF_ERROR(finder.Add(*segment));
    }
    const PlanKernels kernels = std::move(finder).Take();
    ATUNNER_RETURN_IF_ERROR(RemoveOldPlan());
    ATUNNER_RETURN_IF_ERROR(TuneAll(kernels));
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

  Status TuneAll(const PlanKernels& kernels) {
    TuningOptions options = request_.tuning;
    std::vector<Budget> budgets = BudgetsOf(kernels, options.budget, target_.profile);
    if (options.thoroughness != Thoroughness::kSearch) {
      options.baselines = options.transfer = false;
      budgets.assign(budgets.size(), {.trials = kMostGuesses, .seconds = {}});
      ATUNNER_RETURN_IF_ERROR(
          CompileFirstGuesses(kernels.parts, target_.profile, options, services_, stop_));
    }
    TaskTuner tuner(target_, options, services_, events_, stop_);
    ATUNNER_RETURN_IF_ERROR(tuner.Open());
    for (size_t i = 0; i < kernels.parts.size(); ++i) {
      events_(PartStartedEvent{i + 1, kernels.parts.size()});
      ATUNNER_RETURN_IF_ERROR(TunePart(tuner, kernels.parts[i], budgets[i]));
    }
    return {};
  }

  Status TunePart(TaskTuner& tuner, const Part& part, const Budget& budget) {
    const Path out = result_.out / part.folder;
    ATUNNER_TRY(RunResult tuned, tuner.Tune(*part.schedule, out, budget));
    if (tuned.found()) return Take(std::move(tuned));
    ATUNNER_TRY(RunResult plain, TunePlain(tuner, part, out, tuned));
    if (plain.found()) return Take(std::move(plain));
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    return Fail(ErrorCode::kUnsupported,
                fmt::format("no correct kernel was found for '{}': {}", part.schedule->spec().name,
                            ReasonOf(tuned)),
                result_.out.string(), "its report says more: " + tuned.page.string());
  }

  Status Take(RunResult tuned) {
    result_.kernels.push_back(std::move(tuned));
    return {};
  }

  /// Plain kernels in the place of a family's, of which none is correct. `failed` where that was
  /// not tried.
  Result<RunResult> TunePlain(TaskTuner& tuner, const Part& part, const Path& out,
                              const RunResult& failed) {
    if (stop_.stop_requested()) return failed;
    auto plain = PlainSchedule(part.schedule->spec(), target_.profile);
    if (!plain) return failed;
    const std::string note = fmt::format("plain kernels compute '{}': {}",
                                         part.schedule->spec().name, ReasonOf(failed));
    events_(NoteEvent{note});
    result_.notes.push_back(note);
    return tuner.Tune(**plain, out, {.trials = 1, .seconds = {}});
  }

  Result<OptimizeModelResult> Write(const importers::DividedModel& model,
                                    const PlanKernels& kernels, const std::string& name) {
    std::vector<PlannedKernel> planned;
    for (const Part& part : kernels.parts) {
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
      result_.unshared_bytes += (plan.buffers[i].Bytes() + kPlanAlignment - 1) / kPlanAlignment *
                                kPlanAlignment;
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
