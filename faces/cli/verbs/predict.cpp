// `predict`: times of listed configurations on the virtual GPU, without judging them.
#include "atunner/jobs/kernels/predict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"
#include "atunner/fusion/training_text.h"
#include "atunner/importers/python_step.h"
#include "atunner/importers/user_python.h"
#include "faces/cli/flags/model_source.h"
#include "faces/cli/flags/task_flags.h"
#include "faces/cli/flags/tuning_flags.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/progress.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/capture_flags.h"
#include "faces/cli/verbs/interrupt.h"
#include "faces/cli/verbs/training_plan.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

struct PredictFlags {
  std::string file;
  std::string training_graph;
  std::vector<int64_t> batches;
  std::string kernel;
  TaskFlags task;
  std::string target;
  std::string configurations;
  double compile_timeout = jobs::kCompileTimeoutSeconds;
  bool counts = false;
};

Result<jobs::PredictRequest> RequestOf(const PredictFlags& flags) {
  jobs::PredictRequest request;
  request.file = flags.file;
  request.kernel = flags.kernel;
  if (flags.file.empty()) {
    ATUNNER_TRY(request.task, flags.task.Request());
  }
  request.gpu = flags.target;
  request.configurations = flags.configurations;
  request.counts = flags.counts;
  request.compile_timeout_seconds = flags.compile_timeout;
  return request;
}

void PrintRow(const jobs::Prediction& row) {
  if (row.error)
    fmt::print("{:>12}  {}  {}\n", "-", row.described, WithFlags(*row.error).ToString());
  else
    fmt::print("{:>12}  {}  {}\n", FormatTime(row.estimate->time_ns), row.described,
               row.estimate->limiter);
}

void PrintEvent(const jobs::Event& event) {
  if (const auto* started = std::get_if<jobs::KernelStartedEvent>(&event))
    fmt::print("{}\n", started->kernel);
  if (const auto* predicted = std::get_if<jobs::KernelPredictedEvent>(&event)) {
    for (const jobs::Prediction& row : predicted->result.predictions) PrintRow(row);
  }
  if (const auto* refused = std::get_if<jobs::KernelRefusedEvent>(&event))
    fmt::print(stderr, "{} is not predicted: {}\n", refused->kernel,
               WithFlags(refused->error).ToString());
}

Json JsonOf(jobs::PredictResult::Item& item) {
  if (!item.predicted)
    return {{"kernel", item.kernel}, {"refused", WithFlags(item.predicted.error()).what}};
  for (jobs::Prediction& one : item.predicted->predictions) {
    if (one.error) one.error = WithFlags(*one.error);
  }
  return jobs::ToJson(*item.predicted);
}

/// The kernels that a program launches: it runs once on the virtual GPU.
Result<int> PredictProgram(const PredictFlags& flags, const Context& context) {
  if (!flags.file.empty() || !flags.task.operator_name.empty() || !flags.task.graph.empty())
    return Invalid("either a kernel or a program", flags.file + " -- " + context.program[0]);
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  Machine machine(context.common.store);
  ATUNNER_TRY(const Target target, machine.services().devices.Choose({flags.target, true}));
  CaptureFlags capture;
  capture.out = (folder.path() / "program.capture").string();
  ATUNNER_TRY(const recorder::CapturedProgram captured, Capture(capture, context, target));
  PrintProblems(captured);
  return ShowCapture({capture.out, flags.target, false}, context);
}

Result<fusion::TrainingPlan> PlanOfFile(const std::string& file, const DeviceProfile& profile) {
  ATUNNER_TRY(const ModelSource source, ReadModelSource(file));
  return PlanOfStep(source, profile, fusion::Roundings::kWhereExact);
}

/// One row for each size of the batch.
Result<int> PredictBatches(const PredictFlags& flags, const DeviceProfile& profile,
                           const Context& context) {
  ATUNNER_TRY(const importers::WrittenSteps written,
              importers::WriteSteps(flags.training_graph, flags.batches));
  std::vector<fusion::BatchPrediction> rows;
  for (size_t i = 0; i < flags.batches.size(); ++i) {
    ATUNNER_TRY(fusion::TrainingPlan plan, PlanOfFile(written.files[i], profile));
    rows.push_back({flags.batches[i], std::move(plan)});
  }
  if (context.common.json)
    PrintJson(fusion::PredictionJson(rows, profile.full_name));
  else
    fmt::print("{}", Printable(fusion::PredictionText(rows, profile.full_name)));
  return 0;
}

/// A training step: time of each part, of the whole, and the peak of its memory.
Result<int> PredictStep(const PredictFlags& flags, const Context& context) {
  if (!flags.file.empty() || !flags.task.operator_name.empty() || !flags.task.graph.empty())
    return Invalid("either a kernel or a training step", flags.training_graph);
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(flags.target));
  std::string file = flags.training_graph;
  if (!flags.batches.empty() && !importers::IsPythonFile(file))
    return Invalid("the batch of a written step is fixed", file,
                   "give train.py:make_step with --batch");
  if (!flags.batches.empty()) return PredictBatches(flags, profile, context);
  std::optional<importers::WrittenSteps> written;
  if (importers::IsPythonFile(file)) {
    ATUNNER_TRY(importers::WrittenSteps made, importers::WriteSteps(file, {}));
    written.emplace(std::move(made));
    file = written->files[0];
  }
  ATUNNER_TRY(const fusion::TrainingPlan plan, PlanOfFile(file, profile));
  if (context.common.json)
    PrintJson(fusion::PredictionJson(plan, profile.full_name));
  else
    fmt::print("{}", Printable(fusion::PredictionText(plan, profile.full_name)));
  return 0;
}

Result<int> Predict(const PredictFlags& flags, const Context& context) {
  if (!context.program.empty()) return PredictProgram(flags, context);
  if (!flags.training_graph.empty()) return PredictStep(flags, context);
  ATUNNER_TRY(const jobs::PredictRequest request, RequestOf(flags));
  const Common& common = context.common;
  Machine machine(common.store);
  Progress progress({.silent = common.quiet || common.json});
  const jobs::EventSink events = [&](const jobs::Event& event) {
    progress(event);
    if (!common.json) PrintEvent(event);
  };
  ATUNNER_TRY(jobs::PredictResult result,
              jobs::Predict(request, machine.services(), events, InterruptToken()));
  if (common.json) {
    Json answers = Json::array();
    for (auto& item : result.kernels) answers.push_back(JsonOf(item));
    PrintJson(answers.size() == 1 ? answers[0] : answers);
  }
  return result.any() ? 0 : 1;
}

}  // namespace

void AddPredict(VerbList& verbs) {
  const auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = verbs.Add(
      "predict", "times of listed configurations on the virtual GPU, without judging them",
      [flags](const Context& c) { return Predict(*flags, c); });
  verb->footer(
      "atunner predict --target-gpu H200 -- PROGRAM ARGUMENTS: each kernel that it launches");
  verb->add_option("file", flags->file,
                   "kernel.cu, kernel.toml or space.json; without it, --operator or --graph");
  verb->add_option("--kernel", flags->kernel, "which kernel of a .cu");
  verb->add_option("--operator", flags->task.operator_name,
                   "operator (`atunner operators` lists them)");
  verb->add_option("--input-shape", flags->task.shapes, "shapes, as the operator asks for them");
  verb->add_option("--dtype", flags->task.dtype, "float32, float16 or bfloat16");
  verb->add_option("--attr", flags->task.attributes, "operator attribute, key=value");
  verb->add_option("--graph", flags->task.graph, "file.atg: a graph in text form (docs/graph.md)");
  verb->add_option(
      "--training-graph", flags->training_graph,
      "a training step that atunner.capture_step wrote, or train.py:make_step, a function that "
      "returns model, loss, optimizer, batch: time of each part, peak memory");
  verb->add_option("--batch", flags->batches,
                   "sizes of the batch, 32,64,128, that make_step(batch) takes: a row for each")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  verb->add_option("--dim", flags->task.dims,
                   "size of a graph's symbol, B=4096; else the end of its range");
  verb->add_option("--target-gpu", flags->target,
                   "a GPU of `atunner devices`; A100@765: at 765 MHz")
      ->required();
  verb->add_option(
      "--configs", flags->configurations,
      "JSON list of configurations, or a run's export; default: the default configuration");
  AddCompileTimeout(verb, flags->compile_timeout);
  verb->add_flag("--counts", flags->counts, "with --json: what was counted, beside each estimate");
}

}  // namespace atunner::cli
