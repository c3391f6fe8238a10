#include "atunner/jobs/system/system_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/base/command.h"
#include "atunner/base/files.h"
#include "atunner/importers/user_python.h"
#include "atunner/planning/parallel/plan_text.h"
#include "embed/measure_parallel.h"

namespace atunner::jobs {
namespace {

constexpr char kEager[] = "eager + DDP", kCompiled[] = "compiled + DDP";

/// NVLink multicast is left out, as `comm tune` leaves it out.
Json Environment() { return {{"NCCL_NVLS_ENABLE", "0"}}; }

/// What the plan of parallelism changes in DDP's defaults; empty if nothing.
Json PlannedSettings(const SystemResult& plan) {
  const Json settings = planning::TorchSettings(plan.request, plan.plan);
  Json change = Json::object();
  for (const char* key : {"DistributedDataParallel", "fully_shard", "ZeroRedundancyOptimizer",
                          "gradient_accumulation_steps"})
    if (settings.contains(key)) change[key] = settings[key];
  if (change.contains("fully_shard")) change["DistributedDataParallel"] = nullptr;
  if (change.value("gradient_accumulation_steps", 1) == 1)
    change.erase("gradient_accumulation_steps");
  return change;
}

Json TriedChanges(const SystemConfig& config, const SystemResult& plan, int gpus) {
  Json changes = Json::array();
  const auto add = [&](const std::string& name, Json settings) {
    changes.push_back({{"name", name}, {"settings", std::move(settings)}});
  };
  add("compiled blocks", {{"compile", "blocks"}});
  add("compiled loss", {{"compile_loss", true}});
  add("fused optimizer", {{"optimizer", {{"fused", true}}}});
  add("gradient views", {{"DistributedDataParallel", {{"gradient_as_bucket_view", true}}}});
  if (Json planned = PlannedSettings(plan); !planned.empty())
    add("parallel plan", std::move(planned));
  add("static graph", {{"DistributedDataParallel", {{"static_graph", true}}}});
  const bool larger = config.objective == SystemObjective::kThroughput ||
                      config.throughput_weight > config.latency_weight;
  for (int64_t batch = 2 * config.batch; larger && batch <= config.largest_batch; batch *= 2)
    add(fmt::format("batch {}", batch), {{"micro_batch_size", batch / gpus}});
  return changes;
}

double Rate(const Json& found, const char* key, int gpus) {
  const double ms = found.value(key, 0.0);
  return ms > 0 ? gpus * 1e3 / ms : 0;
}

void AddShares(SystemMeasurement& measurement) {
  double whole = 0;
  for (const MeasuredChange& each : measurement.changes)
    if (each.kept) whole += std::log(each.after / each.before);
  for (MeasuredChange& each : measurement.changes)
    if (each.kept && whole > 0) each.share = std::log(each.after / each.before) / whole;
}

Status WritePackage(const Path& folder) {
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "__init__.py", ""));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "_parallel.py", embed::kParallelPy));
  return WriteFileAtomic(folder / "_measure_parallel.py", embed::kMeasureParallelPy);
}

}  // namespace

Result<Json> MeasureJob(const SystemConfig& config, const SystemResult& plan,
                        const std::string& out) {
  if (config.program.empty())
    return Invalid("--apply needs the program to measure", "apply.program",
                   "a Python file with model, batch, loss and optimizer");
  const int gpus = plan.request.cluster.gpus;
  if (config.batch < gpus || config.batch % gpus != 0)
    return Invalid(fmt::format("--apply needs a multiple of {} GPUs", gpus), "training.batch");
  const Json today = {{"micro_batch_size", config.batch / gpus},
                      {"DistributedDataParallel", Json::object()}};
  Json compiled = today;
  compiled["compile"] = "model";
  Json job = {{"program", std::filesystem::absolute(config.program).string()},
              {"gpus", gpus},
              {"steps", 6},
              {"turns", 5},
              {"seconds", config.apply_seconds},
              {"out", out},
              {"changes", TriedChanges(config, plan, gpus)}};
  job["variants"] = Json::array(
      {{{"name", kEager}, {"settings", today}, {"environment", Environment()}}});
  job["references"] = Json::array({{{"name", kCompiled}, {"settings", std::move(compiled)}}});
  return job;
}

Result<SystemMeasurement> ReadMeasurement(const Json& written, int gpus) {
  const auto results = written.is_object() ? written.find("results") : written.end();
  if (results == written.end() || !results->is_object())
    return Invalid("has no results", "the measurement");
  SystemMeasurement measurement;
  for (const auto& [name, found] : results->items()) {
    if (!found.is_object()) return Invalid("must be an object", "results." + name);
    if (found.value("best", false)) {
      measurement.best = Rate(found, "final_ms_a_sample", gpus);
      measurement.settings = DumpJson(found.value("settings", Json::object()));
    }
    if (name == kEager) measurement.eager = Rate(found, "final_ms_a_sample", gpus);
    if (name == kCompiled) measurement.compiled = Rate(found, "final_ms_a_sample", gpus);
    if (name == kEager || (name == kCompiled && !found.contains("failed"))) continue;
    measurement.changes.push_back({.name = name,
                                   .kept = found.value("kept", false),
                                   .before = Rate(found, "before_ms_a_sample", gpus),
                                   .after = Rate(found, "ms_a_sample", gpus),
                                   .failure = found.value("failed", std::string())});
  }
  const auto eager = results->find(kEager);
  if (eager == results->end() || eager->contains("failed"))
    return Invalid(eager == results->end() ? "the run of today was not measured"
                                           : eager->value("failed", std::string()),
                   kEager);
  AddShares(measurement);
  return measurement;
}

Result<SystemMeasurement> MeasureSystem(const SystemConfig& config, const SystemResult& plan) {
  ATUNNER_TRY(const Path python, importers::FindPython("a program is measured by Python"));
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  const Path out = folder.path() / "out.json", log = folder.path() / "log";
  ATUNNER_TRY(const Json job, MeasureJob(config, plan, out.string()));
  ATUNNER_RETURN_IF_ERROR(WritePackage(folder.path() / "atunner"));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder.path() / "job.json", DumpJson(job)));
  const std::string start = fmt::format(
      "import os, sys; sys.path.insert(0, r'{0}'); os.environ['PYTHONPATH'] = r'{0}' + "
      "os.pathsep + os.environ.get('PYTHONPATH', ''); from atunner._measure_parallel import main; "
      "sys.exit(main(sys.argv[1:]))",
      folder.path().string());
  ATUNNER_TRY(
      const int exit_code,
      RunCommand({python.string(), "-c", start, (folder.path() / "job.json").string()}, log));
  const auto text = ReadFile(out);
  if (exit_code != 0 || !text)
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("'{}' cannot measure it:\n{}", python.string(), importers::EndOfLog(log)),
        config.program);
  ATUNNER_TRY(const Json written, ParseJson(*text));
  auto measurement = ReadMeasurement(written, plan.request.cluster.gpus);
  if (!measurement)
    return Fail(measurement.error().code,
                measurement.error().ToString() + "\n" + importers::EndOfLog(log), config.program);
  return measurement;
}

std::string TextOf(const SystemMeasurement& measurement) {
  std::string text = fmt::format("\n{:<22}{:>16}{:>14}{:>9}  {}\n", "change (measured)",
                                 "samples/s before", "after", "share", "");
  for (const MeasuredChange& each : measurement.changes) {
    if (!each.failure.empty()) {
      text += fmt::format("{:<22}{:>16}{:>14}{:>9}  {}\n", each.name, "-", "-", "-",
                          "not measured: " + each.failure.substr(0, each.failure.find('\n')));
      continue;
    }
    text += fmt::format("{:<22}{:>16.1f}{:>14.1f}{:>8.0f}%  {}\n", each.name, each.before,
                        each.after, 100 * each.share, each.kept ? "kept" : "not faster: left out");
  }
  text += fmt::format("\neager + DDP {:.1f} samples/s", measurement.eager);
  if (measurement.compiled > 0)
    text += fmt::format(", torch.compile + DDP {:.1f}", measurement.compiled);
  text += fmt::format(", kept {:.1f} (measured in turns)", measurement.best);
  if (measurement.eager > 0)
    text += fmt::format(": {:.2f} times eager", measurement.best / measurement.eager);
  if (measurement.compiled > 0)
    text += fmt::format(", {:.2f} times torch.compile", measurement.best / measurement.compiled);
  return text + "\nsettings " + measurement.settings + "\n";
}

Json ToJson(const SystemMeasurement& measurement) {
  Json json{{"eager_samples_per_second", measurement.eager},
            {"compiled_samples_per_second", measurement.compiled},
            {"best_samples_per_second", measurement.best},
            {"changes", Json::array()}};
  const auto settings = ParseJson(measurement.settings);
  json["settings"] = settings ? *settings : Json::object();
  for (const MeasuredChange& each : measurement.changes)
    json["changes"].push_back({{"name", each.name},
                               {"kept", each.kept},
                               {"samples_per_second_before", each.before},
                               {"samples_per_second_after", each.after},
                               {"share", each.share},
                               {"failure", each.failure}});
  return json;
}

}  // namespace atunner::jobs
