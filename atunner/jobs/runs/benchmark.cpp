#include "atunner/jobs/runs/benchmark.h"

#include <thread>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/requests/examine_limit.h"
#include "atunner/jobs/requests/tasks.h"
#include "atunner/jobs/runs/run_summary.h"
#include "atunner/measure/vendor.h"
#include "atunner/operators/operator.h"

namespace atunner::jobs {
namespace {

constexpr int64_t kTrials = 60;

using Shapes = std::vector<std::vector<int64_t>>;

/// Sizes that people ask about; small ones first.
std::vector<Shapes> UsualShapes(const std::string& name) {
  if (name == "matmul") return {{{512, 512, 512}}, {{2048, 2048, 2048}}, {{4096, 4096, 4096}}};
  if (name == "conv2d")
    return {{{32, 56, 56, 64}, {64, 3, 3}},
            {{32, 28, 28, 128}, {128, 3, 3}},
            {{32, 14, 14, 256}, {256, 3, 3}}};
  if (name == "flash_attention") return {{{4, 16, 512, 64}}, {{4, 16, 2048, 128}}};
  return {{{4096, 1024}}, {{8192, 4096}}, {{8192, 8192}}};
}

std::vector<Shapes> ShapesOf(const TaskRequest& task) {
  const Operator* op = FindOperator(task.operator_name);
  if (!task.shapes.empty() || op == nullptr) return {task.shapes};
  return UsualShapes(op->info().name);
}

Result<TuneResult> TuneOne(const ScheduleTemplate& schedule, const Target& target, bool tune,
                           Compiler& compiler, Services& services, const std::stop_token& stop) {
  atunner::TuneRequest request;
  request.schedule = &schedule;
  request.profile = target.profile;
  request.arch = target.profile.Arch();
  request.budget.trials = tune ? kTrials : 1;
  request.compile_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (target.real_index) request.vendors = VendorNames(schedule.spec());
  const auto judge = services.devices.MakeJudge(target, kExamineSeconds);
  TuneSession session(request, compiler, {judge.get()}, services.clock);
  return session.Run(nullptr, {}, stop, [](const TuneEvent&) {});
}

}  // namespace

Result<BenchmarkResult> Benchmark(const BenchmarkRequest& request, Services& services,
                                  const EventSink& events, std::stop_token stop) {
  ATUNNER_TRY(const Target target, services.devices.Choose(request.target));
  ATUNNER_TRY(const auto compiler, services.compilers.Open(kCompileTimeoutSeconds));
  BenchmarkResult result{target.profile.name, target.evidence(), {}};
  events(BenchmarkStartedEvent{result.gpu, result.evidence});
  for (const Shapes& shapes : ShapesOf(request.task)) {
    TaskRequest task = request.task;
    task.shapes = shapes;
    ATUNNER_TRY(const KernelSpec spec, SpecOf(task));
    ATUNNER_TRY(const auto schedule, MakeTemplate(spec, target.profile));
    ATUNNER_TRY(const TuneResult tuned,
                TuneOne(*schedule, target, request.tune, *compiler, services, stop));
    result.rows.push_back({shapes, MakeReport({}, tuned, spec, schedule->space(), target.profile)});
    events(BenchmarkRowEvent{result.rows.back()});
  }
  return result;
}

}  // namespace atunner::jobs
