#include "faces/cli/tuning_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/base/build_id.h"
#include "atunner/base/clock.h"
#include "atunner/measure/harness.h"
#include "atunner/measure/vendor.h"
#include "atunner/model/json/json.h"
#include "atunner/tune/part_choices.h"
#include "faces/cli/tuning_output.h"

namespace atunner::cli {
namespace {

/// One kernel at its small sizes; what takes longer is not examined.
constexpr double kVirtualCheckSeconds = 10;

/// Everything that decides a run, digested: the same command resumes, another one starts anew. The
/// budget is not part of it: a longer one goes on where a shorter one ended. The build is: another
/// one writes, judges and predicts otherwise.
RunRecord RecordOf(const TuneFlags& flags, const KernelSpec& spec, const ParameterSpace& space,
                   const Target& target, const std::string& command) {
  RunRecord run;
  std::vector<std::string> fields = {
      spec.ContentDigest().ToHex(),
      DumpJson(ToJson(space)),
      DumpJson(ToJson(target.profile)),
      target.real_index ? std::string() : DumpJson(ToJson(target.calibration)),
      std::string(Name(target.evidence())),
      flags.strategy,
      std::to_string(flags.seed),
      BuildId()};
  if (flags.objective != "time") fields.push_back(flags.objective);
  run.key = DigestOf(fields).ToHex();
  run.created = UtcTimestamp();
  run.id = run.created.substr(0, 4) + run.created.substr(5, 2) + run.created.substr(8, 2) + "-" +
           run.created.substr(11, 2) + run.created.substr(14, 2) + "-" + spec.name + "-" +
           run.key.substr(0, 4);
  run.command = command;
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
  ATUNNER_TRY(request_.objectives, ParseObjectives(flags_.objective));
  ATUNNER_TRY(const std::vector<Target> targets, DevicesLike(target_, flags_.devices));
  ATUNNER_TRY(compiler_, OpenCompiler(flags_.compile_timeout));
  ATUNNER_TRY(store_, OpenStore(common_.store));
  request_.profile = target_.profile;
  request_.arch = target_.profile.Arch();
  request_.strategy = flags_.strategy;
  request_.seed = flags_.seed;
  request_.in_order = !target_.real_index;
  request_.transfer = !flags_.no_transfer && !flags_.fresh;
  request_.compile_threads = flags_.compile_threads > 0
                                 ? flags_.compile_threads
                                 : static_cast<int>(
                                       std::max(1u, std::thread::hardware_concurrency()));
  for (const Target& one : targets) {
    runners_.push_back(MakeRunner(one, 180));
    judges_.push_back(runners_.back().get());
  }
  // Examines whoever is to win on a real GPU for what that does not tell.
  if (target_.real_index)
    examiner_ = MakeRunner({target_.profile, std::nullopt, {}}, kVirtualCheckSeconds);
  return {};
}

Result<RunRecord> TuningSessions::OpenRun(const ScheduleTemplate& schedule) {
  RunRecord wanted = RecordOf(flags_, schedule.spec(), schedule.space(), target_, command_);
  bool resumed = false;
  ATUNNER_TRY(RunRecord run, store_->OpenRun(wanted, resumed));
  if (!resumed || !flags_.fresh) return run;
  ATUNNER_RETURN_IF_ERROR(store_->DeleteRun(run.id));
  return store_->OpenRun(wanted, resumed);
}

Result<TuneResult> TuningSessions::Run(const ScheduleTemplate& schedule, const Budget& budget,
                                       bool compares, RunRecord& run, Json& summary) {
  TuneRequest request = request_;
  request.schedule = &schedule;
  request.budget = budget;
  request.plain = compares && !flags_.no_baselines;
  if (target_.real_index && request.plain) request.vendors = VendorNames(schedule.spec());
  TuneSession session(request, *compiler_, judges_, SystemClock(), examiner_.get());
  Progress progress(common_, schedule.space(), budget, target_.evidence());
  auto found = session.Run(store_.get(), run, stop_,
                           [&](const TuneEvent& event) { progress(event); });
  if (!found) {  // a kernel that does not compile, say: nothing interrupted it
    run.status = "failed";
    if (run.summary == "{}")
      run.summary = DumpJson({{"run", run.id}, {"error", found.error().what}});
    (void)store_->UpdateRun(run);
    return std::unexpected(found.error());
  }
  TuneResult result = *std::move(found);
  run.seconds += result.seconds;
  run.status = stop_.stop_requested() ? "stopped" : "finished";
  summary = Summary(run, result, schedule.space(), target_.profile);
  if (!target_.real_index) summary["calibration"] = target_.calibration.source;
  run.summary = DumpJson(summary);
  ATUNNER_RETURN_IF_ERROR(store_->UpdateRun(run));
  return result;
}

Result<std::vector<std::vector<Configuration>>> TuningSessions::RunParts(
    const DividedSchedule& divided, Budget& budget) {
  const std::vector<const ScheduleTemplate*> parts = divided.Parts();
  std::vector<double> least_ns;
  for (const ScheduleTemplate* part : parts)
    least_ns.push_back(PhysicalFloorNs(part->spec(), target_.profile));
  const PartBudgets budgets = DivideBudget(budget, least_ns);
  std::vector<std::vector<Configuration>> choices;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!common_.quiet && !common_.json) fmt::print(stderr, "part {} of {}: ", i + 1, parts.size());
    ATUNNER_TRY(RunRecord run, OpenRun(*parts[i]));
    Json summary;
    ATUNNER_TRY(const TuneResult result, Run(*parts[i], budgets.parts[i], false, run, summary));
    choices.push_back(BestOf(result));
    if (choices.back().empty()) choices.back() = {parts[i]->Default()};
  }
  budget = budgets.whole;
  return choices;
}

}  // namespace atunner::cli
