#include "faces/cli/verbs/tuning_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

/// "m=4,n=512".
std::string SizeName(const Dims& dims) {
  std::string name;
  for (const auto& [symbol, size] : dims)
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", symbol, size);
  return name;
}

/// Prints events as they come.
class Printer {
 public:
  explicit Printer(const Common& common)
      : common_(common),
        progress_({.silent = common.quiet || common.json, .explain = common.explain}) {}

  void operator()(const jobs::Event& event) {
    if (const auto* size = std::get_if<jobs::SizeStartedEvent>(&event)) Started(*size);
    if (const auto* kernel = std::get_if<jobs::KernelStartedEvent>(&event)) Started(*kernel);
    if (const auto* stage = std::get_if<jobs::StageEvent>(&event)) Show(*stage);
    if (const auto* run = std::get_if<jobs::RunFinishedEvent>(&event)) Finished(run->result);
    progress_(event);
  }

 private:
  void Started(const jobs::KernelStartedEvent& kernel) {
    several_ = true;
    if (!common_.quiet && !common_.json) fmt::print(stderr, "{}: ", Printable(kernel.kernel));
  }
  void Started(const jobs::SizeStartedEvent& size) {
    several_ = true;
    if (!common_.quiet && !common_.json) fmt::print(stderr, "{}: ", SizeName(size.dims));
  }
  void Show(const jobs::StageEvent& stage) const {
    if (common_.json)
      PrintJson({{"stage", Name(stage.stage)}, {"task", stage.task}, {"value", stage.value}});
    else
      fmt::print("=== {} of {}\n{}\n", Name(stage.stage), stage.task, Printable(stage.text));
  }
  void Finished(const jobs::RunResult& run) const {
    if (common_.json) return;
    fmt::print("{}\n{}report:   {}\n{}", Printable(RenderTable(run.report)),
               run.artifact ? "artifact: " + run.artifact->string() + "\n" : "", run.page.string(),
               several_ ? "\n" : "");
  }

  const Common& common_;
  Progress progress_;
  bool several_ = false;
};

void PrintResult(const jobs::TuningResult& result, bool json) {
  const bool tuned = !result.runs.empty() || result.several;
  if (json && result.several) {
    Json sizes = Json::array();
    for (const jobs::RunResult& run : result.runs) sizes.push_back(run.summary);
    PrintJson({{"sizes", std::move(sizes)}, {"artifacts", result.out.string()}});
  } else if (json && tuned) {
    PrintJson(result.runs.front().summary);
  } else if (result.several) {
    fmt::print(
        "artifacts: {}, of which the runtime takes the one tuned nearest to a problem's size\n",
        result.out.string());
  }
}

Json KernelJson(const jobs::TunedKernel& kernel) {
  const bool tuned = kernel.run && kernel.run->found();
  Json json{{"kernel", kernel.kernel},
            {"share", kernel.share},
            {"obstacle", kernel.obstacle},
            {"tuned", tuned},
            {"gain", 1.0}};
  if (tuned) {
    const auto gain = jobs::GainOf(kernel.run->report);
    json["gain"] = gain ? Json(*gain) : Json(nullptr);
  }
  if (kernel.run) json["run"] = kernel.run->summary;
  return json;
}

std::string GainText(const jobs::TunedKernel& kernel) {
  if (!kernel.obstacle.empty()) return "not tuned: " + kernel.obstacle;
  if (!kernel.run || !kernel.run->found()) return "no correct kernel was found";
  const auto gain = jobs::GainOf(kernel.run->report);
  return gain ? fmt::format("{:.2f}x", *gain) : "not compared with the kernel as given";
}

void PrintKernels(const jobs::OptimizeCaptureResult& result) {
  fmt::print("share  gain    kernel\n");
  for (const jobs::TunedKernel& kernel : result.kernels)
    fmt::print("{:>4.0f} %  {:<6}  {}\n", 100 * kernel.share, GainText(kernel),
               Printable(kernel.kernel));
  if (!result.any()) return;
  fmt::print(
      "all kernels of the program: {:.2f}x, by their shares of the time. `atunner apply {} -- "
      "PROGRAM` runs it with them\n",
      result.speedup, result.out.string());
}

size_t StepsOf(const ExecutionPlan& plan, PlanStep::Kind kind) {
  return static_cast<size_t>(std::ranges::count(plan.steps, kind, &PlanStep::kind));
}

void PrintPlan(const jobs::OptimizeModelResult& result) {
  const ExecutionPlan& plan = result.plan;
  const auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  fmt::print("plan: {}\n", result.out.string());
  fmt::print("  {} launches of {} kernels, {} copies, {} operators of the framework\n",
             StepsOf(plan, PlanStep::Kind::kLaunch), plan.kernels.size(),
             StepsOf(plan, PlanStep::Kind::kCopy), StepsOf(plan, PlanStep::Kind::kExtern));
  fmt::print("  weights {:.3g} MB, workspace {:.3g} MB ({:.3g} MB without sharing)\n",
             megabytes(plan.weight_bytes), megabytes(plan.workspace_bytes),
             megabytes(result.unshared_bytes));
  fmt::print("  kernels {:.2f} us {}, each timed alone\n", result.KernelNs() / 1e3,
             Name(result.kernels.front().report.evidence));
}

}  // namespace

jobs::EventSink TuningPrinter(const Common& common) {
  return [printer = std::make_shared<Printer>(common)](const jobs::Event& event) {
    (*printer)(event);
  };
}

Result<int> RunModelTuning(const Context& context, const jobs::OptimizeModelRequest& request) {
  Machine machine(context.common.store);
  Printer printer(context.common);
  ATUNNER_TRY(
      const jobs::OptimizeModelResult result,
      jobs::OptimizeModel(request, machine.services(), std::ref(printer), InterruptToken()));
  if (context.common.json)
    PrintJson(jobs::ToJson(result));
  else
    PrintPlan(result);
  return 0;
}

Result<int> RunCaptureTuning(const Context& context, const jobs::OptimizeCaptureRequest& request) {
  Machine machine(context.common.store);
  Printer printer(context.common);
  ATUNNER_TRY(
      const jobs::OptimizeCaptureResult result,
      jobs::OptimizeCapture(request, machine.services(), std::ref(printer), InterruptToken()));
  if (context.common.json) {
    Json kernels = Json::array();
    for (const jobs::TunedKernel& kernel : result.kernels) kernels.push_back(KernelJson(kernel));
    PrintJson({{"kernels", std::move(kernels)},
               {"speedup", result.speedup},
               {"artifacts", result.out.string()}});
  } else {
    PrintKernels(result);
  }
  return result.any() ? 0 : 1;
}

Result<int> RunTuning(const Context& context, const TuningJob& job) {
  Machine machine(context.common.store);
  Printer printer(context.common);
  ATUNNER_TRY(const jobs::TuningResult result,
              job(machine.services(), std::ref(printer), InterruptToken()));
  PrintResult(result, context.common.json);
  return result.AllFound() ? 0 : 1;
}

}  // namespace atunner::cli
