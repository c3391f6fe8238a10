// From runs to what the report room renders.
#include <nlohmann/json.hpp>

#include "atunner/model/json/json.h"
#include "faces/cli/cli.h"

namespace atunner::cli {

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

Result<Report> ReportOf(Store& store, const RunRecord& run) {
  ATUNNER_TRY(const Json summary, ParseJson(run.summary));
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
  for (const Json& each : summary["baselines"]) {
    ATUNNER_TRY(Baseline baseline, FromJson<Baseline>(each));
    result.baselines.push_back(std::move(baseline));
  }
  for (const Json& each : summary.value("front", Json::array())) {
    const auto number = each.value("trial", int64_t{0});
    if (number < 1 || static_cast<size_t>(number) > result.trials.size())
      return Invalid("run '" + run.id + "' names trials on its front that it does not have",
                     "report");
    result.front.push_back(static_cast<size_t>(number - 1));
  }
  result.space_size = summary.value("space_size", uint64_t{0});
  result.floor_ns = summary.value("floor_ns", 0.0);
  result.seconds = run.seconds;
  result.judge_seconds = summary.value("judge_seconds", 0.0);
  result.stop_reason = summary.value("stop_reason", "");
  return MakeReport(run, result, spec, space, profile);
}

}  // namespace atunner::cli
