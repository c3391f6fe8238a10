#include "atunner/jobs/runs/tuning.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "atunner/base/files.h"
#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/requests/user_sources.h"
#include "atunner/jobs/runs/artifact_writer.h"
#include "atunner/jobs/runs/finished_run.h"
#include "atunner/jobs/runs/tuning_sessions.h"
#include "atunner/jobs/stages/stages.h"
#include "atunner/tune/part_choices.h"
#include "atunner/tune/restricted_schedule.h"

namespace atunner::jobs {
namespace {

/// The arguments that are the same at every size.
struct Job {
  const Target& target;
  const TuningOptions& options;
  Services& services;
  const EventSink& events;
  std::stop_token stop;
  std::vector<CandidateSource*> sources = {};
};

/// Tunes one task into the folder `out`; empty: a folder of its own.
Result<RunResult> TuneOne(const ScheduleTemplate& whole, const Path& out, const Job& job) {
  ATUNNER_TRY(const RestrictedSchedule restricted,
              RestrictedSchedule::Make(whole, job.options.where));
  if (!out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(out));
  TuningSessions sessions(job.target, job.options, job.services, job.events, job.stop);
  sessions.Propose(job.sources);
  ATUNNER_RETURN_IF_ERROR(sessions.Open());
  // Conditions are on the parameters of the whole as it is.
  const auto* divided = job.options.where.empty() ? dynamic_cast<const PartitionedSchedule*>(&whole)
                                                  : nullptr;
  Budget budget = job.options.budget;
  std::optional<PartChoices> choices;
  if (divided != nullptr) {
    ATUNNER_TRY(auto found, sessions.RunParts(*divided, budget));
    choices.emplace(whole, *divided, std::move(found));
  }
  const ScheduleTemplate& schedule = choices ? static_cast<const ScheduleTemplate&>(*choices)
                                             : restricted;
  ATUNNER_TRY(RunRecord run, sessions.OpenRun(schedule));
  ATUNNER_TRY(const Path folder, ArtifactFolder(out, run, job.services));
  Json summary;
  ATUNNER_TRY(const TuneResult result, sessions.Run(schedule, budget, true, run, summary));
  return FinishRun(folder, run, result, schedule, job.target.profile, std::move(summary),
                   job.events);
}

/// Shows the stages that the request asks for. True if the job ends there.
Result<bool> EndsAfterStages(const ScheduleTemplate& schedule, const Job& job) {
  const Inspection& inspection = job.options.inspection;
  if (inspection.Empty()) return false;
  ATUNNER_RETURN_IF_ERROR(ShowStages(schedule, job.target, inspection, job.services, job.events));
  return inspection.stop_after.has_value();
}

Result<TuningResult> TuneSchedule(const ScheduleTemplate& schedule, const Job& job) {
  TuningResult result;
  ATUNNER_TRY(const bool ended, EndsAfterStages(schedule, job));
  if (ended) return result;
  ATUNNER_TRY(RunResult run, TuneOne(schedule, job.options.out, job));
  result.runs.push_back(std::move(run));
  return result;
}

/// "m=4,n=512": the folder of one size's artifact.
std::string SizeName(const Dims& dims) {
  std::string name;
  for (const auto& [symbol, size] : dims)
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", symbol, size);
  return name;
}

Status CheckFolderOfSizes(const Path& out) {
  if (out.empty())
    return Invalid("several sizes have no folder in common", "request.dims",
                   "give request.out FOLDER");
  if (Exists(out / "manifest.json"))
    return Invalid("is an artifact itself", "request.out " + out.string(),
                   "name a folder that is to hold one for each size");
  return {};
}

using Schedules = std::vector<std::unique_ptr<ScheduleTemplate>>;

/// Tunes one size after the other, each with the whole budget.
Result<TuningResult> TuneSizes(const Schedules& schedules, const Job& job) {
  TuningResult result;
  result.several = !job.options.inspection.stop_after;
  result.out = job.options.out;
  if (result.several) ATUNNER_RETURN_IF_ERROR(CheckFolderOfSizes(result.out));
  for (const auto& schedule : schedules) {
    if (job.stop.stop_requested()) break;
    const Dims& dims = schedule->spec().dims;
    ATUNNER_TRY(const bool ended, EndsAfterStages(*schedule, job));
    if (ended) continue;
    job.events(SizeStartedEvent{dims});
    ATUNNER_TRY(RunResult run, TuneOne(*schedule, result.out / SizeName(dims), job));
    result.runs.push_back(std::move(run));
  }
  return result;
}

}  // namespace

Result<TuningResult> Optimize(const OptimizeRequest& request, Services& services,
                              const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const std::vector<KernelSpec> specs, SpecsOf(request.task));
  ATUNNER_TRY(const Target target, services.devices.Choose(request.tuning.target));
  Schedules schedules;
  for (const KernelSpec& spec : specs) {
    ATUNNER_TRY(auto schedule, MakeTemplate(spec, target.profile));
    schedules.push_back(std::move(schedule));
  }
  const Job job{target, request.tuning, services, events, std::move(stop)};
  return schedules.size() == 1 ? TuneSchedule(*schedules.front(), job) : TuneSizes(schedules, job);
}

Result<TuningResult> TuneTemplate(const ScheduleTemplate& schedule, const Target& target,
                                  const TuningOptions& options, Services& services,
                                  const EventSink& events, std::stop_token stop,
                                  const std::vector<CandidateSource*>& sources) {
  return TuneSchedule(schedule, {target, options, services, events, std::move(stop), sources});
}

TaskTuner::TaskTuner(const Target& target, const TuningOptions& options, Services& services,
                     const EventSink& events, const std::stop_token& stop)
    : target_(target),
      options_(options),
      services_(services),
      events_(events),
      stop_(stop),
      sessions_(target, options, services, events, stop, /*one_for_all_tasks=*/true) {}

Result<RunResult> TaskTuner::Tune(const ScheduleTemplate& schedule, const Path& out,
                                  const Budget& budget) {
  ATUNNER_TRY(RunRecord run, sessions_.OpenRun(schedule));
  ATUNNER_TRY(const Path folder, ArtifactFolder(out, run, services_));
  Json summary;
  ATUNNER_TRY(const TuneResult result, sessions_.Run(schedule, budget, true, run, summary));
  return FinishRun(folder, run, result, schedule, target_.profile, std::move(summary), events_);
}

Result<TuningResult> Tune(const TuneRequest& request, Services& services, const EventSink& events,
                          std::stop_token stop) {
  const std::string file = request.file.string();
  if (!file.ends_with(".json") && !file.ends_with(".toml")) {
    return Invalid("'" + file + "' is neither a kernel .toml nor a T1 .json", "",
                   file.ends_with(".cu")
                       ? "for a bare source: atunner hardware-optimize --source " + file
                       : "");
  }
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, {}));
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, file, events));
  ATUNNER_TRY(const Target target, services.devices.Choose(request.tuning.target));
  return TuneSchedule(*schedule, {target, request.tuning, services, events, std::move(stop)});
}

Result<std::variant<TuningResult, UnderstoodKernel>> HardwareOptimize(
    const HardwareOptimizeRequest& request, Services& services, const EventSink& events,
    std::stop_token stop) {
  ATUNNER_TRY(const Target target, services.devices.Choose(request.tuning.target));
  SourceOptions options;
  options.kernel = request.kernel;
  options.extra_tunables = request.auto_tune;
  options.multiprocessors = target.profile.sms;
  options.sizes = request.sizes;
  const std::string file = request.source.string();
  ATUNNER_TRY(UserKernel kernel, ReadUserKernel(file, options));
  if (!request.auto_tune && request.tuning.inspection.Empty())
    return UnderstoodKernel{std::move(kernel)};
  ATUNNER_TRY(const auto schedule, TemplateOf(kernel, file, events));
  const Job job{target, request.tuning, services, events, std::move(stop)};
  if (!request.auto_tune) {
    ATUNNER_TRY(const bool ended, EndsAfterStages(*schedule, job));
    if (!ended) return UnderstoodKernel{std::move(kernel)};
    return TuningResult{};
  }
  ATUNNER_TRY(TuningResult result, TuneSchedule(*schedule, job));
  return result;
}

}  // namespace atunner::jobs
