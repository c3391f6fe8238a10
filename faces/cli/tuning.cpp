// A tuning run from a schedule template to the printed table: what `optimize`, `tune` and
// `hardware-optimize` share.
#include <fmt/format.h>
#include <semaphore.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "atunner/base/files.h"
#include "atunner/tune/part_choices.h"
#include "atunner/tune/restricted_schedule.h"
#include "faces/cli/artifact_writer.h"
#include "faces/cli/tuning_sessions.h"

namespace atunner::cli {
namespace {

/// Turns Ctrl-C into a stop request. A signal handler may only post a semaphore; a thread waits for
/// that and makes the request. One object lives as long as the process, because a handler has no
/// context of its own.
class Interrupt {
 public:
  static std::stop_token Token() {
    static Interrupt* interrupt = new Interrupt;
    return interrupt->stop_.get_token();
  }

 private:
  Interrupt() {
    ::sem_init(&Signalled(), 0, 0);
    std::thread([this] {
      while (::sem_wait(&Signalled()) != 0) {
      }
      stop_.request_stop();
    }).detach();
    std::signal(SIGINT, [](int) { ::sem_post(&Signalled()); });
  }
  static sem_t& Signalled() {
    static sem_t semaphore;
    return semaphore;
  }

  std::stop_source stop_;
};

/// What is printed of a run that has ended.
struct Outcome {
  bool found = false;  ///< a correct kernel
  Json json;
  std::string text;
};

Result<Outcome> Tune(const ScheduleTemplate& whole, const Target& target, const TuneFlags& flags,
                     const Common& common, const std::string& command,
                     const std::stop_token& stop) {
  ATUNNER_TRY(const RestrictedSchedule restricted, RestrictedSchedule::Make(whole, flags.where));
  ATUNNER_TRY(Budget budget, Budget::Parse(flags.budget));
  if (!flags.out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(flags.out));
  TuningSessions sessions(target, flags, common, command, stop);
  ATUNNER_RETURN_IF_ERROR(sessions.Open());
  // Conditions are on the parameters of the whole as it is.
  const auto* divided = flags.where.empty() ? dynamic_cast<const DividedSchedule*>(&whole)
                                            : nullptr;
  std::optional<PartChoices> choices;
  if (divided != nullptr) {
    ATUNNER_TRY(auto found, sessions.RunParts(*divided, budget));
    choices.emplace(whole, *divided, std::move(found));
  }
  const ScheduleTemplate& schedule = choices ? static_cast<const ScheduleTemplate&>(*choices)
                                             : restricted;
  ATUNNER_TRY(RunRecord run, sessions.OpenRun(schedule));
  const Path out = flags.out.empty() ? UserDataDirectory() / "runs" / run.id : Path(flags.out);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(out));
  ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(out));
  Outcome outcome;
  ATUNNER_TRY(const TuneResult result, sessions.Run(schedule, budget, true, run, outcome.json));
  ATUNNER_RETURN_IF_ERROR(WriteArtifact(out, run, result, schedule, target.profile));
  const std::string page = (out / "report.html").string();
  if (result.winner) outcome.json["artifact"] = out.string();
  outcome.json["report"] = page;
  const Report report = MakeReport(run, result, schedule.spec(), schedule.space(), target.profile);
  outcome.text = fmt::format("{}\n{}report:   {}\n", RenderTable(report),
                             result.winner ? "artifact: " + out.string() + "\n" : "", page);
  outcome.found = result.best.has_value();
  return outcome;
}

/// "m=4,n=512": the folder of an artifact among others of one task.
std::string SizeName(const Dims& dims) {
  std::string name;
  for (const auto& [symbol, size] : dims)
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", symbol, size);
  return name;
}

}  // namespace

Result<int> RunTuning(const ScheduleTemplate& schedule, const Target& target,
                      const TuneFlags& flags, const Common& common, const std::string& command) {
  ATUNNER_TRY(const Outcome outcome,
              Tune(schedule, target, flags, common, command, Interrupt::Token()));
  if (common.json) {
    PrintJson(outcome.json);
  } else {
    fmt::print("{}", outcome.text);
  }
  return outcome.found ? 0 : 1;
}

Result<int> RunTuningAtSizes(std::span<const std::unique_ptr<ScheduleTemplate>> schedules,
                             const Target& target, const TuneFlags& flags, const Common& common,
                             const std::string& command) {
  const Path out = flags.out;
  if (out.empty())
    return Invalid("several sizes have no folder in common", "--dim", "give --out FOLDER");
  if (Exists(out / "manifest.json"))
    return Invalid("is an artifact itself", "--out " + flags.out,
                   "name a folder that is to hold one for each size");
  const std::stop_token stop = Interrupt::Token();
  Json sizes = Json::array();
  bool found = true;
  for (const auto& schedule : schedules) {
    if (stop.stop_requested()) break;
    TuneFlags of_size = flags;
    of_size.out = (out / SizeName(schedule->spec().dims)).string();
    if (!common.quiet && !common.json) fmt::print(stderr, "{}: ", SizeName(schedule->spec().dims));
    ATUNNER_TRY(Outcome outcome, Tune(*schedule, target, of_size, common, command, stop));
    found = found && outcome.found;
    if (!common.json) fmt::print("{}\n", outcome.text);
    sizes.push_back(std::move(outcome.json));
  }
  if (common.json) {
    PrintJson({{"sizes", std::move(sizes)}, {"artifacts", out.string()}});
  } else {
    fmt::print(
        "artifacts: {}, of which the runtime takes the one tuned nearest to a problem's size\n",
        out.string());
  }
  return found ? 0 : 1;
}

}  // namespace atunner::cli
