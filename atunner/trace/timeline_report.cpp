#include "atunner/trace/timeline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/trace/readers/open_trace.h"

namespace atunner::trace {
namespace {

/// Each rule once: on the rank where it gains most.
std::vector<Finding> FindingsOfRanks(const TimelineReport& report) {
  std::map<std::string, std::pair<Finding, size_t>> rules;  // with the number of ranks
  for (size_t i = 0; i < report.analyses.size(); ++i) {
    for (Finding& finding : FindAll({report.analyses[i], &report.ranks})) {
      if (finding.rule != "straggler" && finding.rule != "imbalance")
        finding.evidence = fmt::format("rank {}: {}", report.ranks.ranks[i].rank, finding.evidence);
      auto& [best, ranks] = rules[finding.rule];
      if (++ranks == 1 || finding.gain > best.gain) best = std::move(finding);
    }
  }
  std::vector<Finding> findings;
  for (auto& [name, found] : rules) {
    if (found.second > 1 && name != "straggler" && name != "imbalance")
      found.first.evidence += fmt::format(" (on {} ranks)", found.second);
    findings.push_back(std::move(found.first));
  }
  std::ranges::stable_sort(findings, std::greater<>(), &Finding::gain);
  return findings;
}

Json CausesJson(const std::array<int64_t, kIdleCauses>& causes) {
  Json json = Json::object();
  for (size_t cause = 0; cause < kIdleCauses; ++cause)
    json[std::string(Name(static_cast<IdleCause>(cause)))] = causes[cause];
  return json;
}

Json DeviceJson(const DeviceTime& time) {
  return {{"device", time.device},
          {"window", time.window},
          {"busy", time.busy},
          {"compute", time.compute},
          {"communication", time.communication},
          {"copies", time.copies},
          {"exposed_communication", time.exposed_communication},
          {"exposed_copies", time.exposed_copies},
          {"idle", time.Idle()},
          {"idle_causes", CausesJson(time.idle)}};
}

Json KernelJson(const Timeline& timeline, const KernelRow& row) {
  return {{"name", timeline.strings[row.name]},
          {"class", Name(row.kernel_class)},
          {"count", row.count},
          {"total", row.total},
          {"median", row.median},
          {"shortest", row.shortest},
          {"longest", row.longest},
          {"share", row.share},
          {"tensor_cores", row.tensor_cores},
          {"operator", timeline.strings[row.operator_name]},
          {"operator_shapes", timeline.strings[row.operator_shapes]},
          {"blocks", row.detail.blocks},
          {"threads", row.detail.threads},
          {"registers", row.detail.registers}};
}

Json TablesJson(const Timeline& timeline, const Tables& tables) {
  Json json{{"kernels", Json::array()},
            {"operators", Json::array()},
            {"copies", Json::array()},
            {"calls", Json::array()}};
  for (const KernelRow& row : tables.kernels) json["kernels"].push_back(KernelJson(timeline, row));
  for (const OperatorRow& row : tables.operators)
    json["operators"].push_back({{"name", timeline.strings[row.name]},
                                 {"count", row.count},
                                 {"host_total", row.host_total},
                                 {"host_self", row.host_self},
                                 {"device_total", row.device_total},
                                 {"device_self", row.device_self},
                                 {"launches", row.launches}});
  for (const CopyRow& row : tables.copies)
    json["copies"].push_back(
        {{"name", row.name}, {"count", row.count}, {"bytes", row.bytes}, {"total", row.total}});
  for (const CallRow& row : tables.calls)
    json["calls"].push_back(
        {{"name", timeline.strings[row.name]}, {"count", row.count}, {"total", row.total}});
  json["graph_launches"] = tables.graph_launches;
  json["graph_work"] = tables.graph_work;
  json["unlinked"] = tables.unlinked;
  return json;
}

Json PathJson(const Timeline& timeline, const CriticalPath& path) {
  Json rows = Json::array();
  for (const PathRow& row : path.rows)
    rows.push_back({{"part", Name(row.part)},
                    {"name", timeline.strings[row.name]},
                    {"count", row.count},
                    {"total", row.total}});
  return {{"gpu", path.TotalOf(PathPart::kGpu)},
          {"host", path.TotalOf(PathPart::kHost)},
          {"waiting", path.TotalOf(PathPart::kWaiting)},
          {"rows", rows}};
}

Json GapsJson(const Timeline& timeline, const std::vector<Gap>& gaps) {
  Json json = Json::array();
  for (const Gap& gap : gaps)
    json.push_back({{"device", gap.device},
                    {"begin", gap.at.begin},
                    {"length", gap.at.length()},
                    {"cause", Name(gap.Main())},
                    {"next", gap.next == kNoEvent ? "" : timeline.NameOf(gap.next)}});
  return json;
}

Json StreamsJson(const Timeline& timeline, const std::vector<StreamTime>& streams) {
  Json json = Json::array();
  for (const StreamTime& stream : streams)
    json.push_back({{"device", timeline.tracks[stream.track].device},
                    {"stream", timeline.tracks[stream.track].id},
                    {"busy", stream.busy},
                    {"events", stream.events}});
  return json;
}

Json MemoryJson(const std::vector<MemoryUse>& memory) {
  Json json = Json::array();
  for (const MemoryUse& use : memory)
    json.push_back({{"device", use.device},
                    {"allocations", use.allocations},
                    {"peak_allocated", use.peak_allocated},
                    {"peak_reserved", use.peak_reserved},
                    {"capacity", use.capacity}});
  return json;
}

Json AnalysisJson(const Analysis& analysis) {
  const Timeline& timeline = *analysis.timeline;
  Json devices = Json::array(), steps = Json::array();
  for (const DeviceTime& time : analysis.times.devices) devices.push_back(DeviceJson(time));
  for (const Interval& step : analysis.iterations.at) steps.push_back(step.length());
  return {{"source", timeline.source},
          {"events", timeline.size()},
          {"rank", timeline.rank},
          {"world_size", timeline.world_size},
          {"notes", timeline.notes},
          {"window", {{"begin", analysis.window.begin}, {"end", analysis.window.end}}},
          {"iterations", {{"found_by", analysis.iterations.found_by}, {"times", steps}}},
          {"devices", devices},
          {"streams", StreamsJson(timeline, analysis.times.streams)},
          {"gaps", GapsJson(timeline, analysis.times.longest)},
          {"tables", TablesJson(timeline, analysis.tables)},
          {"critical_path", PathJson(timeline, analysis.path)},
          {"memory", MemoryJson(analysis.memory)}};
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings)
    json.push_back({{"rule", finding.rule},
                    {"title", finding.title},
                    {"evidence", finding.evidence},
                    {"gain", finding.gain},
                    {"action", finding.action},
                    {"kernel", finding.kernel}});
  return json;
}

Json RanksJson(const RankComparison& ranks) {
  Json rows = Json::array();
  for (const RankRow& row : ranks.ranks)
    rows.push_back({{"rank", row.rank},
                    {"source", row.source},
                    {"window", row.window},
                    {"compute", row.compute},
                    {"communication", row.communication},
                    {"exposed_communication", row.exposed_communication},
                    {"idle", row.idle},
                    {"last_arrivals", row.last_arrivals},
                    {"caused_wait", row.caused_wait}});
  const bool found = ranks.straggler >= 0;
  return {{"ranks", rows},
          {"collectives", ranks.collectives},
          {"straggler", found ? ranks.ranks[static_cast<size_t>(ranks.straggler)].rank : -1},
          {"imbalance", ranks.Imbalance()},
          {"notes", ranks.notes}};
}

Result<TimelineReport> ReportRanks(const Path& folder) {
  TimelineReport report;
  ATUNNER_TRY(const std::vector<Path> files, TracesOfFolder(folder));
  for (const Path& file : files) {
    ATUNNER_TRY(Timeline timeline, OpenTrace(file));
    report.timelines.push_back(std::make_unique<Timeline>(std::move(timeline)));
  }
  std::ranges::stable_sort(report.timelines, {}, [](const auto& each) { return each->rank; });
  for (const auto& timeline : report.timelines) report.analyses.push_back(Analyze(*timeline));
  std::vector<RankInput> inputs;
  for (const Analysis& analysis : report.analyses)
    inputs.push_back({&analysis, CollectivesOf(*analysis.timeline)});
  report.ranks = CompareRanks(inputs);
  report.findings = FindingsOfRanks(report);
  return report;
}

}  // namespace

Result<TimelineReport> ReportTimeline(const Path& path) {
  if (IsFolder(path)) return ReportRanks(path);
  TimelineReport report;
  ATUNNER_TRY(Timeline timeline, OpenTrace(path));
  report.timelines.push_back(std::make_unique<Timeline>(std::move(timeline)));
  report.analyses.push_back(Analyze(*report.timelines[0]));
  report.findings = FindAll({report.analyses[0], nullptr});
  return report;
}

Json ToJson(const TimelineReport& report) {
  Json json{{"traces", Json::array()}, {"findings", FindingsJson(report.findings)}};
  for (const Analysis& analysis : report.analyses) json["traces"].push_back(AnalysisJson(analysis));
  if (!report.ranks.ranks.empty()) json["comparison_of_ranks"] = RanksJson(report.ranks);
  return json;
}

}  // namespace atunner::trace
