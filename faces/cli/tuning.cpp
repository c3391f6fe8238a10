// A tuning run from a schedule template to the printed table: what `optimize`, `tune` and `hardware-optimize` share.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/measure/harness.h"
#include "atunner/measure/vendor.h"
#include "atunner/model/json.h"
#include "atunner/tune/part_choices.h"
#include "atunner/tune/restricted_schedule.h"
#include "faces/cli/artifact_writer.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

/// One kernel at its small sizes; what takes longer is not examined.
constexpr double kVirtualCheckSeconds = 10;

std::atomic<bool> g_stop{false};  // set by the signal handler, the one place where a global cannot be avoided

/// Everything that decides a run, digested: the same command resumes, another one starts anew. The budget is not part
/// of it: a longer one goes on where a shorter one ended.
RunRecord RecordOf(const TuneFlags& flags, const KernelSpec& spec, const ParameterSpace& space, const Target& target,
                   const std::string& command) {
  RunRecord run;
  std::vector<std::string> fields = {spec.ContentDigest().ToHex(),
                                     DumpJson(ToJson(space)),
                                     DumpJson(ToJson(target.profile)),
                                     target.real_index ? std::string() : DumpJson(ToJson(target.calibration)),
                                     std::string(Name(target.evidence())),
                                     flags.strategy,
                                     std::to_string(flags.seed)};
  if (flags.objective != "time") fields.push_back(flags.objective);
  run.key = DigestOf(fields).ToHex();
  run.created = UtcTimestamp();
  run.id = run.created.substr(0, 4) + run.created.substr(5, 2) + run.created.substr(8, 2) + "-" +
           run.created.substr(11, 2) + run.created.substr(14, 2) + "-" + spec.name + "-" + run.key.substr(0, 4);
  run.command = command;
  run.status = "running";
  run.evidence = std::string(Name(target.evidence()));
  run.device = target.profile.full_name.empty() ? target.profile.name : target.profile.full_name;
  run.spec = DumpJson(ToJson(spec));
  run.space = DumpJson(ToJson(space));
  run.summary = "{}";
  return run;
}

/// Progress: a line rewritten on a terminal, plain lines when piped.
class Progress {
 public:
  Progress(const Common& common, const ParameterSpace& space, const Budget& budget, Evidence evidence)
      : silent_(common.quiet || common.json),
        explain_(common.explain),
        terminal_(::isatty(2) == 1),
        space_(space),
        budget_(budget),
        evidence_(evidence) {}

  void operator()(const TuneEvent& event) {
    if (silent_) return;
    switch (event.kind) {
      case TuneEvent::Kind::kStarted:
        Line(fmt::format("{} valid configurations; budget {}{}", event.space_size, budget_.ToString(),
                         event.text.empty() ? "" : "; " + event.text));
        break;
      case TuneEvent::Kind::kBaseline: {
        const auto ns = event.baseline->ObjectiveNs();
        Line(fmt::format("baseline {}: {}", event.baseline->name,
                         ns ? FormatTime(*ns) + " " + std::string(Name(evidence_)) : event.baseline->note));
        break;
      }
      case TuneEvent::Kind::kTrial:
        Trial(event);
        break;
      case TuneEvent::Kind::kFinalists:
        Line(event.text);
        break;
      case TuneEvent::Kind::kFinished:
        Line("stopped: " + event.text);
        break;
    }
  }

 private:
  void Trial(const TuneEvent& event) {
    const auto ns = event.trial->ObjectiveNs();
    const std::string outcome = ns ? FormatTime(*ns) : std::string(Name(event.trial->verdict.kind));
    if (explain_) {
      Line(fmt::format("trial {}: {} -> {}{}{}", event.trial->number, space_.Describe(event.trial->configuration),
                       outcome, event.trial->verdict.reason.empty() ? "" : " (" + event.trial->verdict.reason + ")",
                       event.trial->note.empty() ? "" : "; " + event.trial->note));
      return;
    }
    const std::string best = event.best_ns ? FormatTime(*event.best_ns) : "none yet";
    const std::string left = budget_.trials    ? fmt::format("{}/{} trials", event.trials_done, *budget_.trials)
                             : budget_.seconds ? fmt::format("{} trials, {:.0f} s left", event.trials_done,
                                                             std::max(0.0, *budget_.seconds - event.seconds))
                                               : fmt::format("{} trials", event.trials_done);
    const std::string text = fmt::format("{}, this one {}, best {} {}", left, outcome, best, Name(evidence_));
    if (terminal_) {
      fmt::print(stderr, "\r\033[K{}", text);
      open_line_ = true;
    } else if (event.trials_done % 10 == 0 || event.trials_done == 1) {
      Line(text);
    }
  }

  void Line(const std::string& text) {
    if (open_line_) fmt::print(stderr, "\n");
    open_line_ = false;
    fmt::print(stderr, "{}\n", text);
  }

  bool silent_;
  bool explain_;
  bool terminal_;
  bool open_line_ = false;
  const ParameterSpace& space_;
  Budget budget_;
  Evidence evidence_;
};

Json ConfigurationByName(const ParameterSpace& space, const Configuration& configuration) {
  Json json = Json::object();
  for (size_t i = 0; i < space.parameters.size(); ++i)
    std::visit([&](const auto& value) { json[space.parameters[i].name] = value; }, configuration.values[i]);
  return json;
}

Json FrontOf(const TuneResult& result, const ParameterSpace& space) {
  Json front = Json::array();
  for (size_t i : result.front) {
    const Trial& trial = result.trials[i];
    Json point{{"trial", trial.number},
               {"time_ns", *trial.ObjectiveNs()},
               {"memory_bytes", trial.memory_bytes},
               {"configuration", ConfigurationByName(space, trial.configuration)}};
    if (const auto joules = trial.EnergyJoules()) point["energy_joules"] = *joules;
    front.push_back(std::move(point));
  }
  return front;
}

Json JsonOf(const TimeSpent& spent) {
  return {{"search", spent.search},
          {"for_compile", spent.for_compile},
          {"for_proposals", spent.for_proposals},
          {"books", spent.books},
          {"verifying", spent.verifying},
          {"timing", spent.timing},
          {"handing_over", spent.handing_over},
          {"again", spent.again},
          {"plain", spent.plain},
          {"finals", spent.finals},
          {"baselines", spent.baselines}};
}

Json Summary(const RunRecord& run, const TuneResult& result, const ParameterSpace& space,
             const DeviceProfile& profile) {
  Json json{{"run", run.id},
            {"evidence", run.evidence},
            {"device", run.device},
            {"space_size", result.space_size},
            {"trials", result.trials.size()},
            {"stop_reason", result.stop_reason},
            {"floor_ns", result.floor_ns},
            {"seconds", result.seconds},
            {"judge_seconds", result.judge_seconds},
            {"compile_seconds", result.compile_seconds},
            {"spent", JsonOf(result.spent)}};
  json["baselines"] = Json::array();
  for (const Baseline& baseline : result.baselines) json["baselines"].push_back(ToJson(baseline));
  json["profile"] = ToJson(profile);
  if (!result.front.empty()) json["front"] = FrontOf(result, space);
  if (result.best) {
    json["best"] = ToJson(*result.best);
    json["best_configuration"] = ConfigurationByName(space, result.best->configuration);
  } else if (!result.trials.empty()) {
    json["refused"] = ToJson(result.trials.back().verdict);
  }
  return json;
}

/// What the sessions of one command share: a divided schedule has one for each of its parts.
class Tuning {
 public:
  Tuning(const Target& target, const TuneFlags& flags, const Common& common, const std::string& command)
      : target_(target), flags_(flags), common_(common), command_(command) {}

  Status Open() {
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
                                   : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (const Target& one : targets) {
      runners_.push_back(MakeRunner(one, 180));
      judges_.push_back(runners_.back().get());
    }
    // Examines whoever is to win on a real GPU for what that does not tell.
    if (target_.real_index) examiner_ = MakeRunner({target_.profile, std::nullopt, {}}, kVirtualCheckSeconds);
    return {};
  }

  Result<RunRecord> OpenRun(const ScheduleTemplate& schedule) {
    RunRecord wanted = RecordOf(flags_, schedule.spec(), schedule.space(), target_, command_);
    bool resumed = false;
    ATUNNER_TRY(RunRecord run, store_->OpenRun(wanted, resumed));
    if (!resumed || !flags_.fresh) return run;
    ATUNNER_RETURN_IF_ERROR(store_->DeleteRun(run.id));
    return store_->OpenRun(wanted, resumed);
  }

  /// `summary` is what the store gets to know of it. With `compares` the winner is measured beside others.
  Result<TuneResult> Run(const ScheduleTemplate& schedule, const Budget& budget, bool compares, RunRecord& run,
                         Json& summary) {
    TuneRequest request = request_;
    request.schedule = &schedule;
    request.budget = budget;
    request.plain = compares && !flags_.no_baselines;
    if (target_.real_index && request.plain) request.vendors = VendorNames(schedule.spec());
    TuneSession session(request, *compiler_, judges_, SystemClock(), examiner_.get());
    Progress progress(common_, schedule.space(), budget, target_.evidence());
    ATUNNER_TRY(TuneResult result,
                session.Run(store_.get(), run, g_stop, [&](const TuneEvent& event) { progress(event); }));
    run.seconds += result.seconds;
    run.status = g_stop ? "stopped" : "finished";
    summary = Summary(run, result, schedule.space(), target_.profile);
    if (!target_.real_index) summary["calibration"] = target_.calibration.source;
    run.summary = DumpJson(summary);
    ATUNNER_RETURN_IF_ERROR(store_->UpdateRun(run));
    return result;
  }

  /// One part after the other, each as the task that it is; what the store knows of them is not tried again. `budget`
  /// becomes what is left for the whole.
  Result<std::vector<std::vector<Configuration>>> RunParts(const DividedSchedule& divided, Budget& budget) {
    const std::vector<const ScheduleTemplate*> parts = divided.Parts();
    std::vector<double> least_ns;
    for (const ScheduleTemplate* part : parts) least_ns.push_back(PhysicalFloorNs(part->spec(), target_.profile));
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

 private:
  const Target& target_;
  const TuneFlags& flags_;
  const Common& common_;
  const std::string& command_;
  TuneRequest request_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<Judge>> runners_;
  std::vector<Judge*> judges_;
  std::unique_ptr<Judge> examiner_;
};

}  // namespace

Result<int> RunTuning(const ScheduleTemplate& whole, const Target& target, const TuneFlags& flags, const Common& common,
                      const std::string& command) {
  ATUNNER_TRY(const RestrictedSchedule restricted, RestrictedSchedule::Make(whole, flags.where));
  ATUNNER_TRY(Budget budget, Budget::Parse(flags.budget));
  if (!flags.out.empty()) ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(flags.out));
  Tuning tuning(target, flags, common, command);
  ATUNNER_RETURN_IF_ERROR(tuning.Open());
  std::signal(SIGINT, [](int) { g_stop = true; });
  // Conditions are on the parameters of the whole as it is.
  const auto* divided = flags.where.empty() ? dynamic_cast<const DividedSchedule*>(&whole) : nullptr;
  std::optional<PartChoices> choices;
  if (divided != nullptr) {
    ATUNNER_TRY(auto found, tuning.RunParts(*divided, budget));
    choices.emplace(whole, *divided, std::move(found));
  }
  const ScheduleTemplate& schedule = choices ? static_cast<const ScheduleTemplate&>(*choices) : restricted;
  ATUNNER_TRY(RunRecord run, tuning.OpenRun(schedule));
  const Path out = flags.out.empty() ? UserDataDirectory() / "runs" / run.id : Path(flags.out);
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(out));
  ATUNNER_RETURN_IF_ERROR(CheckArtifactFolder(out));
  Json summary;
  ATUNNER_TRY(const TuneResult result, tuning.Run(schedule, budget, true, run, summary));
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
