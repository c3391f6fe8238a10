#include "atunner/jobs/runs/tuning_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/base/build_id.h"
#include "atunner/base/clock.h"
#include "atunner/jobs/requests/examine_limit.h"
#include "atunner/jobs/runs/run_summary.h"
#include "atunner/measure/harness.h"
#include "atunner/measure/vendor.h"
#include "atunner/model/json/json.h"
#include "atunner/tune/part_choices.h"

namespace atunner::jobs {
namespace {

constexpr double kVirtualCheckSeconds = 10;

/// "time,energy", as a person writes them.
std::string NamesOf(const std::vector<Objective>& objectives) {
  std::string names;
  for (const Objective objective : objectives)
    names += (names.empty() ? "" : ",") + std::string(Name(objective));
  return names;
}

/// The digest of everything that decides a run: an equal request resumes it, another one starts
/// anew. The budget is not part of it: a longer one goes on where a shorter one ended. The build
/// is part of it: another build writes, judges and predicts differently.
std::string KeyOf(const TuningOptions& options, const KernelSpec& spec, const ParameterSpace& space,
                  const Target& target) {
  std::vector<std::string> fields = {
      spec.ContentDigest().ToHex(),
      DumpJson(ToJson(space)),
      DumpJson(ToJson(target.profile)),
      target.real_index ? std::string() : DumpJson(ToJson(target.calibration)),
      std::string(Name(target.evidence())),
      options.strategy,
      std::to_string(options.seed),
      BuildId()};
  const std::string objectives = NamesOf(options.objectives);
  if (objectives != "time") fields.push_back(objectives);
  // Trials that were not timed are no part of a search.
  if (options.thoroughness != Thoroughness::kSearch)
    fields.push_back(options.thoroughness == Thoroughness::kUnchecked ? "unchecked"
                                                                      : "first right");
  return DigestOf(fields).ToHex();
}

/// "20261121-0123-softmax-3f2a" of "2026-11-21T01:23:45Z".
std::string RunId(const std::string& created, const std::string& task, const std::string& key) {
  return created.substr(0, 4) + created.substr(5, 2) + created.substr(8, 2) + "-" +
         created.substr(11, 2) + created.substr(14, 2) + "-" + task + "-" + key.substr(0, 4);
}

RunRecord RecordOf(const TuningOptions& options, const KernelSpec& spec,
                   const ParameterSpace& space, const Target& target) {
  RunRecord run;
  run.key = KeyOf(options, spec, space, target);
  run.created = UtcTimestamp();
  run.id = RunId(run.created, spec.name, run.key);
  run.command = options.command;
  run.status = "running";
  run.evidence = std::string(Name(target.evidence()));
  run.device = target.profile.full_name.empty() ? target.profile.name : target.profile.full_name;
  run.spec = DumpJson(ToJson(spec));
  run.space = DumpJson(ToJson(space));
  run.summary = "{}";
  return run;
}

}  // namespace

Status TuningSessions::Open() {
  ATUNNER_RETURN_IF_ERROR(MakeJudges());
  ATUNNER_TRY(compiler_, services_.compilers.Open(options_.compile_timeout_seconds));
  ATUNNER_TRY(store_, services_.stores.Open());
  return {};
}

Status TuningSessions::MakeJudges() {
  ATUNNER_TRY(const std::vector<Target> targets,
              services_.devices.Select(target_, options_.devices));
  for (const Target& one : targets) {
    runners_.push_back(services_.devices.MakeJudge(one, ExamineSeconds(one), one_for_all_tasks_));
    judges_.push_back(runners_.back().get());
  }
  // The winner on a real GPU is examined on a virtual one too, for hazards that a GPU does not
  // report.
  if (target_.real_index)
    examiner_ = services_.devices.MakeJudge({target_.profile, std::nullopt, {}},
                                            kVirtualCheckSeconds, one_for_all_tasks_);
  return {};
}

Result<RunRecord> TuningSessions::OpenRun(const ScheduleTemplate& schedule) {
  RunRecord wanted = RecordOf(options_, schedule.spec(), schedule.space(), target_);
  bool resumed = false;
  ATUNNER_TRY(RunRecord run, store_->OpenRun(wanted, resumed));
  if (!resumed || !options_.fresh) return run;
  ATUNNER_RETURN_IF_ERROR(store_->DeleteRun(run.id));
  return store_->OpenRun(wanted, resumed);
}

atunner::TuneRequest TuningSessions::RequestFor(const ScheduleTemplate& schedule,
                                                const Budget& budget, bool compares) const {
  atunner::TuneRequest request;
  request.schedule = &schedule;
  request.profile = target_.profile;
  request.arch = target_.profile.Arch();
  request.thoroughness = options_.thoroughness;
  request.strategy = options_.strategy;
  request.budget = budget;
  request.objectives = options_.objectives;
  request.seed = options_.seed;
  request.in_order = !target_.real_index;
  request.transfer = options_.transfer && !options_.fresh;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  request.compile_threads = options_.compile_threads > 0 ? options_.compile_threads : cores;
  request.plain = compares && options_.baselines;
  if (target_.real_index && request.plain) request.vendors = VendorNames(schedule.spec());
  return request;
}

Result<TuneResult> TuningSessions::Run(const ScheduleTemplate& schedule, const Budget& budget,
                                       bool compares, RunRecord& run, Json& summary) {
  atunner::TuneRequest request = RequestFor(schedule, budget, compares);
  if (compares) request.sources = sources_;
  TuneSession session(std::move(request), *compiler_, judges_, services_.clock, examiner_.get());
  auto found = session.Run(store_.get(), run, stop_, [&](const TuneEvent& event) {
    Forward(event, schedule.space(), budget, run);
  });
  if (!found) {  // for example a kernel that does not compile
    MarkFailed(run, found.error());
    return std::unexpected(found.error());
  }
  TuneResult result = *std::move(found);
  ATUNNER_RETURN_IF_ERROR(CloseRun(result, schedule, run, summary));
  return result;
}

Status TuningSessions::CloseRun(const TuneResult& result, const ScheduleTemplate& schedule,
                                RunRecord& run, Json& summary) {
  run.seconds += result.seconds;
  run.status = stop_.stop_requested() ? "stopped" : "finished";
  summary = Summary(run, result, schedule.space(), target_.profile);
  if (!target_.real_index) summary["calibration"] = target_.calibration.source;
  run.summary = DumpJson(summary);
  return store_->UpdateRun(run);
}

std::unique_ptr<RoundSession> TuningSessions::MakeRounds(const ScheduleTemplate& schedule,
                                                         const Budget& budget,
                                                         const RunRecord& run) {
  return std::make_unique<RoundSession>(RequestFor(schedule, budget, true), *compiler_, judges_,
                                        services_.clock, examiner_.get(), store_.get(), run, stop_,
                                        [this, &schedule, budget, &run](const TuneEvent& event) {
                                          Forward(event, schedule.space(), budget, run);
                                        });
}

void TuningSessions::MarkFailed(RunRecord& run, const Error& error) {
  run.status = "failed";
  if (run.summary == "{}") run.summary = DumpJson({{"run", run.id}, {"error", error.what}});
  (void)store_->UpdateRun(run);
}

void TuningSessions::Forward(const TuneEvent& event, const ParameterSpace& space,
                             const Budget& budget, const RunRecord& run) const {
  switch (event.kind) {
    case TuneEvent::Kind::kStarted:
      events_(RunStartedEvent{event.space_size, budget, target_.evidence(), event.text, run.id,
                              run.device});
      break;
    case TuneEvent::Kind::kBaseline:
      events_(BaselineEvent{*event.baseline});
      break;
    case TuneEvent::Kind::kTrial:
      events_(TrialEvent{*event.trial, event.trial->candidate.Describe(space), event.best_ns,
                         event.trials_done, event.seconds});
      break;
    case TuneEvent::Kind::kFinalists:
      events_(FinalistsEvent{event.text});
      break;
    case TuneEvent::Kind::kFinished:
      events_(RunStoppedEvent{event.text});
      break;
  }
}

Result<std::vector<std::vector<Configuration>>> TuningSessions::RunParts(
    const PartitionedSchedule& divided, Budget& budget) {
  const std::vector<const ScheduleTemplate*> parts = divided.Parts();
  std::vector<double> least_ns;
  for (const ScheduleTemplate* part : parts)
    least_ns.push_back(PhysicalFloorNs(part->spec(), target_.profile));
  const PartBudgets budgets = DivideBudget(budget, least_ns);
  std::vector<std::vector<Configuration>> choices;
  for (size_t i = 0; i < parts.size(); ++i) {
    events_(PartStartedEvent{i + 1, parts.size()});
    ATUNNER_TRY(RunRecord run, OpenRun(*parts[i]));
    Json summary;
    ATUNNER_TRY(const TuneResult result, Run(*parts[i], budgets.parts[i], false, run, summary));
    choices.push_back(BestOf(result));
    if (choices.back().empty()) choices.back() = {parts[i]->Default()};
  }
  budget = budgets.whole;
  return choices;
}

}  // namespace atunner::jobs
