#include "atunner/jobs/runs/reports.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/jobs/runs/run_summary.h"
#include "atunner/model/json/json.h"

namespace atunner::jobs {
namespace {

constexpr size_t kMostOfAReason = 120;  ///< characters of a verdict's reason in a line

/// One line for each trial of the run.
Result<std::string> TrialLines(Store& store, const RunRecord& run) {
  ATUNNER_TRY(const std::vector<Trial> trials, store.Trials(run.id));
  ATUNNER_TRY(const Json space_json, ParseJson(run.space));
  ATUNNER_TRY(const ParameterSpace space, FromJson<ParameterSpace>(space_json));
  std::string text = fmt::format("{} on {} ({}), {}: {} trials\n{}\n\n", run.id, run.device,
                                 run.evidence, run.status, trials.size(), run.command);
  for (const Trial& trial : trials) {
    const auto ns = trial.ObjectiveNs();
    text += fmt::format("{:>4}  {:>12}  {}  {}\n", trial.number,
                        ns ? FormatTime(*ns) : std::string(Name(trial.verdict.kind)),
                        trial.candidate.Describe(space),
                        trial.verdict.reason.substr(0, kMostOfAReason));
  }
  return text;
}

}  // namespace

Result<std::string> MakeReportText(const ReportRequest& request, Services& services) {
  using enum ReportRequest::Format;
  ATUNNER_TRY(const auto store, services.stores.OpenExisting());
  ATUNNER_TRY(const RunRecord run, store->FindRun(request.run));
  if (request.format == kText) return TrialLines(*store, run);
  if (request.format == kJson) {
    ATUNNER_RETURN_IF_ERROR(CheckSummary(run));
    return run.summary + "\n";
  }
  ATUNNER_TRY(const Report report, ReportOf(*store, run));
  return request.format == kMarkdown ? RenderMarkdown(report) : RenderHtml(report);
}

}  // namespace atunner::jobs
