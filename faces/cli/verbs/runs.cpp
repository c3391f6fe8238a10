// `history`, `report` and `export`: what earlier runs found.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/jobs/runs/reports.h"
#include "atunner/model/json/json.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

constexpr int kMostRuns = 50;

Json HistoryJson(const std::vector<RunRecord>& runs) {
  Json json = Json::array();
  for (const RunRecord& run : runs)
    json.push_back({{"run", run.id},
                    {"created", run.created},
                    {"status", run.status},
                    {"evidence", run.evidence},
                    {"device", run.device},
                    {"command", run.command}});
  return json;
}

Result<int> History(const Context& context) {
  Machine machine(context.common.store);
  ATUNNER_TRY(const auto store, machine.services().stores.OpenExisting());
  ATUNNER_TRY(const std::vector<RunRecord> runs, store->Runs(kMostRuns));
  if (context.common.json) {
    PrintJson(HistoryJson(runs));
    return 0;
  }
  for (const RunRecord& run : runs)
    fmt::print("{}", Printable(fmt::format("{:<40} {:<9} {:<10} {:<22} {}\n", run.id, run.status,
                                           run.evidence, run.device, run.command)));
  if (runs.empty()) fmt::print("no runs yet\n");
  return 0;
}

struct ReportFlags {
  std::string run = "last";
  std::string format = "text";
  std::string out;
};

Result<jobs::ReportRequest> RequestOf(const ReportFlags& flags, bool json) {
  using enum jobs::ReportRequest::Format;
  static constexpr std::pair<std::string_view, jobs::ReportRequest::Format> kFormats[] = {
      {"text", kText}, {"md", kMarkdown}, {"html", kHtml}, {"json", kJson}};
  for (const auto& [name, format] : kFormats) {
    if (flags.format == name) return jobs::ReportRequest{flags.run, json ? kJson : format};
  }
  return Invalid("unknown format '" + flags.format + "'", "--format", "use text, md, html or json");
}

Result<int> ShowReport(const ReportFlags& flags, const Context& context) {
  ATUNNER_TRY(const jobs::ReportRequest request, RequestOf(flags, context.common.json));
  Machine machine(context.common.store);
  ATUNNER_TRY(const std::string text, jobs::MakeReportText(request, machine.services()));
  if (!flags.out.empty()) {
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(flags.out, text));
    return 0;
  }
  const bool for_people = request.format == jobs::ReportRequest::Format::kText;
  fmt::print("{}", for_people ? Printable(text) : text);
  return 0;
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void PrintCsv(const RunRecord& run, const ParameterSpace& space, const std::vector<Trial>& trials) {
  std::string header = "number,verdict," + run.evidence + "_ns";
  for (const Parameter& parameter : space.parameters) header += "," + parameter.name;
  fmt::print("{}\n", header);
  for (const Trial& trial : trials) {
    const auto ns = trial.ObjectiveNs();
    std::string line = fmt::format("{},{},{}", trial.number, Name(trial.verdict.kind),
                                   ns ? fmt::format("{}", *ns) : "");
    const std::vector<Value>& values = trial.configuration().values;  // none for a whole kernel
    for (size_t i = 0; i < space.parameters.size(); ++i)
      line += "," + (i < values.size() ? CsvField(ToString(values[i])) : std::string());
    fmt::print("{}\n", line);
  }
}

Json TrialsJson(const RunRecord& run, const Json& space, const std::vector<Trial>& trials) {
  Json all = Json::array();
  for (const Trial& trial : trials) all.push_back(ToJson(trial));
  return {{"run", run.id},
          {"evidence", run.evidence},
          {"device", run.device},
          {"space", space},
          {"trials", all}};
}

struct ExportFlags {
  std::string run = "last";
  std::string format = "csv";
};

Result<int> Export(const ExportFlags& flags, const Context& context) {
  if (flags.format != "csv" && flags.format != "json")
    return Invalid("unknown format '" + flags.format + "'", "--format", "use csv or json");
  Machine machine(context.common.store);
  ATUNNER_TRY(const auto store, machine.services().stores.OpenExisting());
  ATUNNER_TRY(const RunRecord run, store->FindRun(flags.run));
  ATUNNER_TRY(const std::vector<Trial> trials, store->Trials(run.id));
  ATUNNER_TRY(const Json space_json, ParseJson(run.space));
  ATUNNER_TRY(const ParameterSpace space, FromJson<ParameterSpace>(space_json));
  if (context.common.json || flags.format == "json")
    PrintJson(TrialsJson(run, space_json, trials));
  else
    PrintCsv(run, space, trials);
  return 0;
}

}  // namespace

void AddRuns(VerbList& verbs) {
  verbs.Add("history", "earlier runs", History);
  const auto report = std::make_shared<ReportFlags>();
  CLI::App* verb = verbs.Add("report", "what a run found",
                             [report](const Context& c) { return ShowReport(*report, c); });
  verb->add_option("run", report->run, "run, prefix of one, or last");
  verb->add_option("--format", report->format, "text, md, html or json");
  verb->add_option("--out", report->out, "file to write instead of printing");
  const auto exported = std::make_shared<ExportFlags>();
  verb = verbs.Add("export", "a run's trials",
                   [exported](const Context& c) { return Export(*exported, c); });
  verb->add_option("run", exported->run, "run, prefix of one, or last");
  verb->add_option("--format", exported->format, "csv or json");
}

}  // namespace atunner::cli
