#include "atunner/platform/job_runner.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "atunner/graph/text.h"
#include "atunner/importers/import_model.h"
#include "atunner/importers/model_file.h"
#include "atunner/jobs/runs/tuning.h"
#include "atunner/platform/job_files.h"

namespace atunner::platform {
namespace {

constexpr size_t kLargestGraph = size_t{16} << 20;

/// Quoted where a shell would change it.
std::string Quoted(const std::string& text) {
  const bool plain =
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,=:/@") ==
      std::string::npos;
  return plain && !text.empty() ? text : "'" + text + "'";
}

std::string TaskFlags(const JobRequest& request, const std::string& file) {
  const jobs::TaskRequest& task = request.task;
  std::string text;
  if (request.kind == JobKind::kOperator) {
    text = "optimize --operator " + task.operator_name;
    for (const auto& shape : task.shapes)
      text += fmt::format(" --input-shape {}", fmt::join(shape, ","));
    text += " --dtype " + std::string(Name(task.dtype));
    for (const auto& [name, value] : task.attributes)
      text += " --attr " + Quoted(name + "=" + ToString(value));
  } else if (request.kind == JobKind::kGraph) {
    text = "optimize --graph " + Quoted(file.empty() ? "graph.atg" : file);
    for (const auto& [name, sizes] : task.dims)
      text += fmt::format(" --dim {}={}", name, fmt::join(sizes, ","));
  } else {
    text = "hardware-optimize --auto-tune --source " + Quoted(file);
    if (!request.kernel.empty()) text += " --kernel " + Quoted(request.kernel);
  }
  return text;
}

Result<jobs::GraphText> ReadGraph(const Path& upload) {
  if (importers::IsModelFile(upload)) {
    ATUNNER_TRY(const importers::ImportedModel model, importers::ImportModel(upload));
    return jobs::GraphText{graph::Print(model.graph), upload.filename().string()};
  }
  ATUNNER_TRY(std::string text, ReadFile(upload, kLargestGraph));
  return jobs::GraphText{std::move(text), upload.filename().string()};
}

Result<jobs::TuningResult> Tune(JobRequest request, const Path& upload, jobs::Services& services,
                                const jobs::EventSink& events, std::stop_token stop) {
  if (request.kind == JobKind::kSource) {
    ATUNNER_TRY(const std::string text, ReadFile(upload));
    ATUNNER_RETURN_IF_ERROR(CheckIncludes(text));
    const jobs::HardwareOptimizeRequest source{upload, request.kernel, true, request.tuning};
    ATUNNER_TRY(auto tuned, jobs::HardwareOptimize(source, services, events, std::move(stop)));
    auto* const result = std::get_if<jobs::TuningResult>(&tuned);
    ATUNNER_CHECK(result != nullptr);  // auto_tune
    return std::move(*result);
  }
  if (!request.upload.empty()) {
    ATUNNER_TRY(request.task.graph, ReadGraph(upload));
  }
  return jobs::Optimize({request.task, request.tuning}, services, events, std::move(stop));
}

}  // namespace

std::string CommandOf(const JobRequest& request, const std::string& file) {
  const jobs::TuningOptions& tuning = request.tuning;
  std::string text = "atunner " + TaskFlags(request, file);
  text += " --target-gpu " + Quoted(tuning.target.gpu);
  if (tuning.target.force_virtual) text += " --virtual";
  text += " --budget " + Quoted(tuning.budget.ToString());
  if (tuning.seed != 1) text += fmt::format(" --seed {}", tuning.seed);
  if (tuning.strategy != "auto") text += " --strategy " + Quoted(tuning.strategy);
  for (const std::string& where : tuning.where) text += " --where " + Quoted(where);
  if (tuning.fresh) text += " --fresh";
  if (!tuning.transfer) text += " --no-transfer";
  if (!tuning.baselines) text += " --no-baselines";
  return text;
}

Result<bool> RunJob(JobRequest request, const Path& upload, const Path& out,
                    jobs::Services& services, const jobs::EventSink& events, std::stop_token stop) {
  request.tuning.out = out;
  request.tuning.command = CommandOf(request, upload.filename().string());
  ATUNNER_TRY(const jobs::TuningResult result,
              Tune(std::move(request), upload, services, events, std::move(stop)));
  return !result.runs.empty() && result.AllFound();
}

}  // namespace atunner::platform
