#include "atunner/jobs/runs/run_summary.h"

#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"

namespace atunner::jobs {
namespace {

Json ConfigurationByName(const ParameterSpace& space, const Configuration& configuration) {
  Json json = Json::object();
  for (size_t i = 0; i < configuration.values.size(); ++i)
    std::visit([&](const auto& value) { json[space.parameters[i].name] = value; },
               configuration.values[i]);
  return json;
}

Json FrontOf(const TuneResult& result, const ParameterSpace& space) {
  Json front = Json::array();
  for (size_t i : result.front) {
    const Trial& trial = result.trials[i];
    Json point{{"trial", trial.number},
               {"time_ns", *trial.ObjectiveNs()},
               {"memory_bytes", trial.memory_bytes},
               {"configuration", ConfigurationByName(space, trial.configuration())}};
    if (const auto joules = trial.EnergyJoules()) point["energy_joules"] = *joules;
    front.push_back(std::move(point));
  }
  return front;
}

Json JsonOf(const TimeSpent& spent) {
  return {{"search", spent.search},
          {"for_compile", spent.for_compile},
          {"for_proposals", spent.for_proposals},
          {"books", spent.persisting},
          {"verifying", spent.verifying},
          {"timing", spent.timing},
          {"handing_over", spent.handing_over},
          {"again", spent.remeasuring},
          {"plain", spent.plain},
          {"finals", spent.finals},
          {"baselines", spent.baselines}};
}

}  // namespace

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
    json["best_configuration"] = ConfigurationByName(space, result.best->configuration());
  } else if (!result.trials.empty()) {
    json["refused"] = ToJson(result.trials.back().verdict);
  }
  return json;
}

Report MakeReport(const RunRecord& run, const TuneResult& result, const KernelSpec& spec,
                  const ParameterSpace& space, const DeviceProfile& profile) {
  Report report;
  report.run = run.id;
  report.command = run.command;
  report.created = run.created;
  report.evidence = run.evidence == "measured" ? Evidence::kMeasured : Evidence::kPredicted;
  report.device = run.device;
  report.profile = profile;
  report.spec = spec;
  report.space = space;
  report.trials = result.trials;
  report.best = result.best;
  report.baselines = result.baselines;
  for (size_t i : result.front) report.front.push_back(result.trials[i]);
  report.space_size = result.space_size;
  report.floor_ns = result.floor_ns;
  report.seconds = result.seconds;
  report.judge_seconds = result.judge_seconds;
  report.stop_reason = result.stop_reason;
  return report;
}

namespace {

std::unexpected<Error> Damaged(const RunRecord& run, const std::string& what) {
  return Invalid("the summary of run '" + run.id + "' is damaged: " + what, "report",
                 "run its command again: it goes on where it was\n  " + run.command);
}

/// The summary, an object.
Result<Json> SummaryOf(const RunRecord& run) {
  auto summary = ParseJson(run.summary);
  if (!summary) return Damaged(run, summary.error().what);
  if (!summary->is_object()) return Damaged(run, "it is no JSON object");
  return summary;
}

Result<std::vector<Baseline>> BaselinesOf(const Json& summary) {
  std::vector<Baseline> baselines;
  for (const Json& each : summary.value("baselines", Json::array())) {
    ATUNNER_TRY(Baseline baseline, FromJson<Baseline>(each));
    baselines.push_back(std::move(baseline));
  }
  return baselines;
}

/// The front's trials as indices into the run's trials.
Result<std::vector<size_t>> FrontOf(const Json& summary, const RunRecord& run, size_t trials) {
  std::vector<size_t> front;
  for (const Json& each : summary.value("front", Json::array())) {
    const auto number = each.value("trial", int64_t{0});
    if (number < 1 || static_cast<size_t>(number) > trials)
      return Invalid("run '" + run.id + "' names trials on its front that it does not have",
                     "report");
    front.push_back(static_cast<size_t>(number - 1));
  }
  return front;
}

/// Throws Json::exception where a field has another type.
Result<Report> ReadReport(Store& store, const RunRecord& run, const Json& summary) {
  if (summary.contains("error"))
    return Invalid("run '" + run.id + "' failed: " + summary["error"].get<std::string>(), "report");
  if (!summary.contains("profile")) {
    return Invalid("run '" + run.id + "' was interrupted before it had a summary", "report",
                   "run its command again: it goes on where it was\n  " + run.command);
  }
  ATUNNER_TRY(const Json space_json, ParseJson(run.space));
  ATUNNER_TRY(const Json spec_json, ParseJson(run.spec));
  ATUNNER_TRY(const ParameterSpace space, FromJson<ParameterSpace>(space_json));
  ATUNNER_TRY(const KernelSpec spec, FromJson<KernelSpec>(spec_json));
  ATUNNER_TRY(const DeviceProfile profile, FromJson<DeviceProfile>(summary["profile"]));
  TuneResult result;
  ATUNNER_TRY(result.trials, store.Trials(run.id));
  if (summary.contains("best")) {
    ATUNNER_TRY(result.best, FromJson<Trial>(summary["best"]));
  }
  ATUNNER_TRY(result.baselines, BaselinesOf(summary));
  ATUNNER_TRY(result.front, FrontOf(summary, run, result.trials.size()));
  result.space_size = summary.value("space_size", uint64_t{0});
  result.floor_ns = summary.value("floor_ns", 0.0);
  result.seconds = run.seconds;
  result.judge_seconds = summary.value("judge_seconds", 0.0);
  result.stop_reason = summary.value("stop_reason", "");
  return MakeReport(run, result, spec, space, profile);
}

}  // namespace

Status CheckSummary(const RunRecord& run) {
  ATUNNER_TRY(const Json summary, SummaryOf(run));
  return {};
}

Result<Report> ReportOf(Store& store, const RunRecord& run) {
  ATUNNER_TRY(const Json summary, SummaryOf(run));
  try {
    return ReadReport(store, run, summary);
  } catch (const Json::exception& error) {
    return Damaged(run, error.what());
  }
}

}  // namespace atunner::jobs
