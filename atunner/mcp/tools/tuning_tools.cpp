#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "atunner/jobs/kernels/proposal.h"
#include "atunner/mcp/tools/arguments.h"
#include "atunner/mcp/tools/tools.h"

namespace atunner::mcp {
namespace {

constexpr int kDefaultRuns = 20;
constexpr size_t kMostNoteBytes = 500;

/// `value == 4` for each parameter: the one configuration.
std::vector<std::string> ConditionsOf(const ParameterSpace& space,
                                      const Configuration& configuration) {
  std::vector<std::string> conditions;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    if (parameter.values.size() < 2) continue;
    const Value& value = configuration.values[i];
    const bool text = std::holds_alternative<std::string>(value);
    conditions.push_back(parameter.name +
                         " == " + (text ? "'" + ToString(value) + "'" : ToString(value)));
  }
  return conditions;
}

Result<jobs::TuningOptions> OptionsOf(const Json& arguments, const NamedKernel& kernel) {
  jobs::TuningOptions options;
  options.target = {kernel.problem->target.profile.name, false};
  ATUNNER_TRY(options.budget, Budget::Parse(arguments.value("budget", "60")));
  options.strategy = arguments.value("strategy", "auto");
  options.where = arguments.value("where", std::vector<std::string>());
  options.seed = arguments.value("seed", uint64_t{1});
  options.fresh = arguments.value("fresh", false);
  options.transfer = !kernel.proposed;
  options.command = "mcp autotune " + kernel.problem->id;
  return options;
}

Result<Json> Autotune(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const jobs::TuningOptions options, OptionsOf(arguments, kernel));
  const std::string job = workbench.tuning().Start(
      {kernel.problem->id, kernel.schedule, kernel.problem->target, options});
  return workbench.tuning().Status(job);
}

Result<Json> JobStatus(const Json& arguments, Workbench& workbench) {
  if (!arguments.contains("job")) return Json{{"jobs", workbench.tuning().List()}};
  return workbench.tuning().Status(arguments["job"]);
}

Result<Json> JobCancel(const Json& arguments, Workbench& workbench) {
  ATUNNER_RETURN_IF_ERROR(workbench.tuning().Cancel(arguments["job"]));
  return workbench.tuning().Status(arguments["job"]);
}

/// One kernel, examined as the winner of a search is.
Result<Json> Submit(const Json& arguments, const CallContext& context, Workbench& workbench) {
  ATUNNER_TRY(const NamedKernel kernel, KernelOf(arguments, workbench));
  ATUNNER_TRY(const Configuration configuration,
              jobs::ConfigurationOf(*kernel.schedule, kernel.configuration));
  ATUNNER_TRY(jobs::TuningOptions options, OptionsOf(Json::object(), kernel));
  options.budget = {.trials = 1, .seconds = {}};
  options.where = ConditionsOf(kernel.schedule->space(), configuration);
  options.command = "mcp submit " + kernel.problem->id;
  if (arguments.contains("note"))
    options.command += ": " + arguments["note"].get<std::string>().substr(0, kMostNoteBytes);
  const std::string job = workbench.tuning().Start(
      {kernel.problem->id, kernel.schedule, kernel.problem->target, options});
  context.progress(0, 0, job + " is examined");
  return workbench.tuning().Wait(job, context.stop);
}

Json RunJson(const RunRecord& run) {
  Json json{{"run", run.id},
            {"created", run.created},
            {"status", run.status},
            {"evidence", run.evidence},
            {"device", run.device},
            {"command", run.command.substr(0, kMostNoteBytes)},
            {"report", "atunner://run/" + run.id + "/report"}};
  const auto summary = ParseJson(run.summary);
  if (!summary || !summary->is_object()) return json;
  for (const char* key : {"best_configuration", "trials", "stop_reason"}) {
    if (summary->contains(key)) json[key] = (*summary)[key];
  }
  return json;
}

Result<Json> History(const Json& arguments, Workbench& workbench) {
  ATUNNER_TRY(const auto store, workbench.services().stores.OpenExisting());
  ATUNNER_TRY(const std::vector<RunRecord> runs,
              store->Runs(arguments.value("limit", kDefaultRuns)));
  Json json = Json::array();
  for (const RunRecord& run : runs) json.push_back(RunJson(run));
  return Json{{"runs", std::move(json)}};
}

constexpr const char* kTuneProperties = R"json({
  "budget": {"type": "string", "maxLength": 40,
    "description": "60 (trials, the default), 5m, 90s, or both: 200,5m"},
  "strategy": {"type": "string", "maxLength": 40},
  "where": {"type": "array", "maxItems": 16, "items": {"type": "string", "maxLength": 500},
    "description": "only configurations for which this holds: \"tile_m == 128\""},
  "seed": {"type": "integer", "minimum": 0},
  "fresh": {"type": "boolean", "description": "forget an earlier run of the same order"}
})json";

constexpr const char* kJob = R"({"job": {"type": "string", "maxLength": 40}})";

using PlainCall = Result<Json> (*)(const Json&, Workbench&);

Tool TuningTool(const char* name, const char* title, const char* description, Json schema,
                bool read_only, Workbench& workbench, PlainCall call) {
  return {name,
          title,
          description,
          std::move(schema),
          read_only,
          [&workbench, call](const Json& arguments, const CallContext&) {
            return call(arguments, workbench);
          }};
}

}  // namespace

void AddTuningTools(Workbench& workbench, std::vector<Tool>& tools) {
  tools.push_back(TuningTool(
      "autotune", "Tune a kernel",
      "Searches the parameters of the problem's own template, of the user's kernel, or of your "
      "source. Returns a job at once; ask job_status for its progress and result. Jobs run one "
      "after the other.",
      KernelSchema(kTuneProperties), false, workbench, Autotune));
  tools.push_back(TuningTool("job_status", "State of a job",
                             "State, trials, best so far and, at the end, the result with its "
                             "report and kernel. Without an id: all jobs of this session.",
                             ObjectSchema(kJob, {}), true, workbench, JobStatus));
  tools.push_back(TuningTool("job_cancel", "Cancel a job",
                             "Ends a job; the best kernel so far is its result.",
                             ObjectSchema(kJob, {"job"}), false, workbench, JobCancel));
  tools.push_back(
      {"submit", "Submit a kernel",
       "Examines one kernel as the winner of a search is: verified with inputs that it has not "
       "seen, timed, compared with the baseline, and stored as a run with artifact and report.",
       KernelSchema(R"({"note": {"type": "string", "maxLength": 500,
                        "description": "one line for the record"}})"),
       false, [&workbench](const Json& arguments, const CallContext& context) {
         return Submit(arguments, context, workbench);
       }});
  tools.push_back(TuningTool(
      "history", "Earlier runs", "Runs in the store, newest first, with reports to read.",
      ObjectSchema(R"({"limit": {"type": "integer", "minimum": 1, "maximum": 50}})", {}), true,
      workbench, History));
}

}  // namespace atunner::mcp
