// `benchmark`: an operator at usual sizes: plain kernel, vendor library, atunner's kernel, side by
// side in one run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/codegen/template/family.h"
#include "atunner/measure/vendor.h"
#include "atunner/model/json/json.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

/// Sizes people ask about; small ones first.
std::vector<std::vector<std::string>> UsualShapes(const std::string& name) {
  if (name == "matmul") return {{"512,512,512"}, {"2048,2048,2048"}, {"4096,4096,4096"}};
  if (name == "conv2d")
    return {{"32,56,56,64", "64,3,3"}, {"32,28,28,128", "128,3,3"}, {"32,14,14,256", "256,3,3"}};
  if (name == "flash_attention") return {{"4,16,512,64"}, {"4,16,2048,128"}};
  return {{"4096,1024"}, {"8192,4096"}, {"8192,8192"}};
}

std::string Joined(const std::vector<std::string>& shapes) {
  return fmt::format("{}", fmt::join(shapes, " "));
}

Result<TuneResult> RunOne(const ScheduleTemplate& schedule, const Target& target,
                          const BenchmarkFlags& flags, Compiler& compiler) {
  TuneRequest request;
  request.schedule = &schedule;
  request.profile = target.profile;
  request.arch = target.profile.Arch();
  request.budget.trials = flags.performance_mode ? 60 : 1;
  request.compile_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (target.real_index) request.vendors = VendorNames(schedule.spec());
  const auto judge = MakeRunner(target, 180);
  TuneSession session(request, compiler, {judge.get()}, SystemClock());
  return session.Run(nullptr, {}, {}, [](const TuneEvent&) {});
}

}  // namespace

Result<int> Benchmark(const BenchmarkFlags& flags, const Common& common) {
  OptimizeFlags wanted;
  wanted.operator_name = flags.operator_name;
  wanted.dtype = flags.dtype;
  wanted.attributes = flags.attributes;
  wanted.accuracy = flags.accuracy;
  const Operator* op = FindOperator(flags.operator_name);
  const auto shapes = !flags.shapes.empty() || op == nullptr
                          ? std::vector<std::vector<std::string>>{flags.shapes}
                          : UsualShapes(op->info().name);
  ATUNNER_TRY(const Target target, ChooseTarget(flags.target, flags.force_virtual));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  Json rows = Json::array();
  if (!common.json) {
    fmt::print("{} on {}, {}; atunner's kernel: {}\n{:<24} {:<12} {:>14}  {}\n",
               flags.operator_name, target.profile.name, Name(target.evidence()),
               flags.performance_mode ? "the best of 60 trials" : "the default schedule", "shape",
               "kernel", std::string(Name(target.evidence())), "against it");
  }
  bool all_found = true;
  for (const std::vector<std::string>& shape : shapes) {
    wanted.shapes = shape;
    ATUNNER_TRY(const KernelSpec spec, SpecOf(wanted));
    ATUNNER_TRY(const auto schedule, MakeTemplate(spec, target.profile));
    ATUNNER_TRY(const TuneResult result, RunOne(*schedule, target, flags, *compiler));
    const Report report = MakeReport({}, result, spec, schedule->space(), target.profile);
    const auto best = result.best ? result.best->ObjectiveNs() : std::nullopt;
    all_found &= best.has_value();
    Json row{{"shape", shape},
             {"best_ns", best ? Json(*best) : Json()},
             {"floor_ns", result.floor_ns},
             {"baselines", Json::array()}};
    for (const Baseline& baseline : result.baselines) row["baselines"].push_back(ToJson(baseline));
    rows.push_back(row);
    if (common.json) continue;
    for (const Baseline& baseline : result.baselines) {
      const auto ns = baseline.ObjectiveNs();
      const std::string ratio = baseline.comparison
                                    ? fmt::format("{:.2f} times as fast [{:.2f}, {:.2f}]",
                                                  baseline.comparison->ratio,
                                                  baseline.comparison->low,
                                                  baseline.comparison->high)
                                : ns && best ? fmt::format("{:.2f} times as fast", *ns / *best)
                                             : baseline.note;
      fmt::print("{:<24} {:<12} {:>14}  {}\n", Joined(shape), baseline.name,
                 ns ? FormatTime(*ns) : "-", ratio);
    }
    fmt::print("{:<24} {:<12} {:>14}  {}\n", Joined(shape), "atunner",
               best ? FormatTime(*best) : "none correct", best ? RatesOf(report, *best) : "");
  }
  if (common.json)
    PrintJson({{"operator", flags.operator_name},
               {"dtype", flags.dtype},
               {"device", target.profile.name},
               {"evidence", Name(target.evidence())},
               {"rows", rows}});
  return all_found ? 0 : 1;
}

}  // namespace atunner::cli
