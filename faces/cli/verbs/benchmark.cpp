// `benchmark`: an operator at usual sizes: plain kernel, vendor library, atunner's kernel, side by
// side in one run.
#include "atunner/jobs/runs/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "faces/cli/flags/task_flags.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

struct BenchmarkFlags {
  TaskFlags task;
  std::string target = "auto";
  bool force_virtual = false;
  bool performance_mode = false;
};

std::optional<double> BestNs(const Report& report) {
  return report.best ? report.best->ObjectiveNs() : std::nullopt;
}

void PrintHeader(const jobs::BenchmarkStartedEvent& event, const BenchmarkFlags& flags) {
  fmt::print("{} on {}, {}; atunner's kernel: {}\n{:<24} {:<12} {:>14}  {}\n",
             flags.task.operator_name, event.gpu, Name(event.evidence),
             flags.performance_mode ? "the best of 60 trials" : "the default schedule", "shape",
             "kernel", std::string(Name(event.evidence)), "against it");
}

/// How many times as fast the best kernel is as a baseline, or why that is not known.
std::string RatioText(const Baseline& baseline, std::optional<double> best) {
  if (baseline.comparison)
    return fmt::format("{:.2f} times as fast [{:.2f}, {:.2f}]", baseline.comparison->ratio,
                       baseline.comparison->low, baseline.comparison->high);
  const auto ns = baseline.ObjectiveNs();
  return ns && best ? fmt::format("{:.2f} times as fast", *ns / *best) : baseline.note;
}

void PrintRow(const jobs::BenchmarkRow& row) {
  std::string shape;
  for (const std::vector<int64_t>& each : row.shapes)
    shape += fmt::format("{}{}", shape.empty() ? "" : " ", fmt::join(each, ","));
  const auto best = BestNs(row.report);
  for (const Baseline& baseline : row.report.baselines) {
    const auto ns = baseline.ObjectiveNs();
    fmt::print("{:<24} {:<12} {:>14}  {}\n", shape, baseline.name, ns ? FormatTime(*ns) : "-",
               RatioText(baseline, best));
  }
  fmt::print("{:<24} {:<12} {:>14}  {}\n", shape, "atunner",
             best ? FormatTime(*best) : "none correct", best ? RatesOf(row.report, *best) : "");
}

void PrintResultJson(const jobs::BenchmarkResult& result, const TaskFlags& task) {
  Json rows = Json::array();
  for (const jobs::BenchmarkRow& row : result.rows) rows.push_back(jobs::ToJson(row));
  PrintJson({{"operator", task.operator_name},
             {"dtype", task.dtype},
             {"device", result.gpu},
             {"evidence", Name(result.evidence)},
             {"rows", rows}});
}

Result<int> Benchmark(const BenchmarkFlags& flags, const Context& context) {
  jobs::BenchmarkRequest request;
  ATUNNER_TRY(request.task, flags.task.Request());
  request.target = {flags.target, flags.force_virtual};
  request.tune = flags.performance_mode;
  Machine machine(context.common.store);
  const bool json = context.common.json;
  const jobs::EventSink events = [&](const jobs::Event& event) {
    if (json) return;
    if (const auto* started = std::get_if<jobs::BenchmarkStartedEvent>(&event))
      PrintHeader(*started, flags);
    if (const auto* row = std::get_if<jobs::BenchmarkRowEvent>(&event)) PrintRow(row->row);
  };
  ATUNNER_TRY(const jobs::BenchmarkResult result,
              jobs::Benchmark(request, machine.services(), events, InterruptToken()));
  if (json) PrintResultJson(result, flags.task);
  const bool all_found = std::ranges::all_of(
      result.rows, [](const jobs::BenchmarkRow& row) { return BestNs(row.report).has_value(); });
  return all_found ? 0 : 1;
}

}  // namespace

void AddBenchmark(VerbList& verbs) {
  const auto flags = std::make_shared<BenchmarkFlags>();
  CLI::App* verb = verbs.Add("benchmark",
                             "an operator at usual sizes against plain kernel and vendor library",
                             [flags](const Context& c) { return Benchmark(*flags, c); });
  AddOperator(verb, flags->task)->required();
  verb->add_option("--input-shape", flags->task.shapes, "one size instead of the usual ones");
  verb->add_option("--target-gpu", flags->target, "a GPU of `atunner devices`, or auto");
  verb->add_flag("--virtual", flags->force_virtual, "predict, even if the GPU is in this machine");
  verb->add_flag("--performance-mode", flags->performance_mode, "tune each size before comparing");
}

}  // namespace atunner::cli
