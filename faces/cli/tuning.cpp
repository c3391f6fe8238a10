// A tuning run from a schedule template to the printed table: what `optimize`, `tune` and `hardware-optimize` share.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "atunner/tune/part_choices.h"
#include "atunner/tune/restricted_schedule.h"
#include "faces/cli/artifact_writer.h"
#include "faces/cli/tuning_sessions.h"

namespace atunner::cli {
namespace {

std::atomic<bool> g_stop{false};  // set by the signal handler, the one place where a global cannot be avoided

}  // namespace

Result<int> RunTuning(const ScheduleTemplate& whole, const Target& target, const TuneFlags& flags, const Common& common,
                      const std::string& command) {
  ATUNNER_TRY(const RestrictedSchedule restricted, RestrictedSchedule::Make(whole, flags.where));
  ATUNNER_TRY(Budget budget, Budget::Parse(flags.budget));
  if (!flags.out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(flags.out));
  TuningSessions sessions(target, flags, common, command, g_stop);
  ATUNNER_RETURN_IF_ERROR(sessions.Open());
  std::signal(SIGINT, [](int) { g_stop = true; });
  // Conditions are on the parameters of the whole as it is.
  const auto* divided = flags.where.empty() ? dynamic_cast<const DividedSchedule*>(&whole) : nullptr;
  std::optional<PartChoices> choices;
  if (divided != nullptr) {
    ATUNNER_TRY(auto found, sessions.RunParts(*divided, budget));
    choices.emplace(whole, *divided, std::move(found));
  }
  const ScheduleTemplate& schedule = choices ? static_cast<const ScheduleTemplate&>(*choices) : restricted;
  ATUNNER_TRY(RunRecord run, sessions.OpenRun(schedule));
  const Path out = flags.out.empty() ? UserDataDirectory() / "runs" / run.id : Path(flags.out);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(out));
  ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(out));
  Json summary;
  ATUNNER_TRY(const TuneResult result, sessions.Run(schedule, budget, true, run, summary));
  ATUNNER_RETURN_IF_ERROR(WriteArtifact(out, run, result, schedule, target.profile));
  if (common.json) {
    Json printed = summary;
    if (result.winner) printed["artifact"] = out.string();
    printed["report"] = (out / "report.html").string();
    PrintJson(printed);
  } else {
    const Report report = MakeReport(run, result, schedule.spec(), schedule.space(), target.profile);
    fmt::print("{}\n{}report:   {}\n", RenderTable(report), result.winner ? "artifact: " + out.string() + "\n" : "",
               (out / "report.html").string());
  }
  return result.best ? 0 : 1;
}

}  // namespace atunner::cli
