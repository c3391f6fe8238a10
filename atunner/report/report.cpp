#include "atunner/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

std::string FloorSentence(const Report& report, double best_ns) {
  const double bytes = MinimumBytes(report.spec, report.spec.dims).value_or(0);
  const double flops = FlopCount(report.spec, report.spec.dims).value_or(0);
  const bool memory = bytes / report.profile.dram_gbps >= 0.99 * report.floor_ns;
  return fmt::format(
      "The task is bound by {}: {} at {} is the floor. The best kernel reaches {:.0f} % of it.",
      memory ? "memory" : "arithmetic",
      memory ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.2f} GFLOP", flops / 1e9),
      FormatTime(report.floor_ns), 100 * report.floor_ns / best_ns);
}

std::string ResourceSentence(const KernelResources& kernel) {
  return fmt::format("Kernel {}: {} registers per thread, {} bytes of static shared memory, {}.",
                     kernel.entry, kernel.registers, kernel.static_shared_bytes,
                     kernel.spill_store_bytes > 0
                         ? fmt::format("{} bytes spilled", kernel.spill_store_bytes)
                         : "nothing spilled");
}

}  // namespace

std::string FormatTime(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string RatesOf(const Report& report, double ns) {
  const double bytes = MinimumBytes(report.spec, report.spec.dims).value_or(0);
  const double flops = FlopCount(report.spec, report.spec.dims).value_or(0);
  std::string text;
  const auto add = [&](const std::string& piece) { text += (text.empty() ? "" : ", ") + piece; };
  if (bytes > 0) add(fmt::format("{:.0f} GB/s", bytes / ns));
  if (flops > 0) add(fmt::format("{:.2f} TFLOP/s", flops / ns / 1e3));
  if (report.floor_ns > 0) add(fmt::format("{:.0f} % of the floor", 100 * report.floor_ns / ns));
  return text;
}

std::string Reservation(const Verdict& verdict) {
  if (!verdict.passed()) return "not verified: " + verdict.reason;
  if (!verdict.correct()) return "verified on a sample only: " + verdict.reason;
  if (verdict.coverage.executed <= 0)
    return "verified at smaller sizes; at its own size the virtual GPU predicts and compares "
           "nothing";
  if (verdict.coverage.compared >= 1) return "";
  return fmt::format(
      "at its own size all blocks ran, and {:.2g} % of the results were compared there",
      100 * verdict.coverage.compared);
}

std::vector<Rejection> RejectionsOf(const Report& report) {
  std::map<std::string, Rejection> by_verdict;
  for (const Trial& trial : report.trials) {
    if (trial.verdict.stands()) continue;
    const std::string name(Name(trial.verdict.kind));
    Rejection& rejection = by_verdict[name];
    if (rejection.count++ == 0) rejection = {name, 1, trial.verdict.reason};
  }
  std::vector<Rejection> all;
  for (auto& [name, rejection] : by_verdict) all.push_back(std::move(rejection));
  std::ranges::stable_sort(all, std::ranges::greater{}, &Rejection::count);
  return all;
}

std::string FormatEnergy(std::optional<double> joules) {
  if (!joules) return "-";
  if (*joules < 1e-3) return fmt::format("{:.2f} uJ", *joules * 1e6);
  if (*joules < 1) return fmt::format("{:.3f} mJ", *joules * 1e3);
  return fmt::format("{:.3f} J", *joules);
}

std::vector<std::array<std::string, 4>> FrontRowsOf(const Report& report) {
  std::vector<std::array<std::string, 4>> rows;
  for (const Trial& trial : report.front) {
    rows.push_back({FormatTime(trial.ObjectiveNs().value_or(0)),
                    fmt::format("{:.1f} KiB", static_cast<double>(trial.memory_bytes) / 1024),
                    FormatEnergy(trial.EnergyJoules()), trial.candidate.Describe(report.space)});
  }
  return rows;
}

std::vector<std::pair<int64_t, double>> ConvergenceOf(const Report& report) {
  std::vector<std::pair<int64_t, double>> points;
  for (const Trial& trial : report.trials) {
    const auto ns = trial.ObjectiveNs();
    if (ns && (points.empty() || *ns < points.back().second))
      points.emplace_back(trial.number, *ns);
  }
  return points;
}

std::string AccuracyOfBest(const Report& report) {
  const CheckRecord* worst = nullptr;
  size_t checks = 0;
  for (const CheckRecord& check : report.best->verdict.checks) {
    if (check.check != "oracle") continue;
    ++checks;
    if (worst == nullptr || check.error > worst->error) worst = &check;
  }
  if (worst == nullptr) return "";
  const std::string honest = report.spec.oracle.kind == Oracle::Kind::kKernel
                                 ? std::string("it is compared with the kernel as given")
                                 : fmt::format(
                                       "the plain kernel of the task's types errs by {:.2e} there",
                                       worst->honest);
  return fmt::format(
      "Accuracy policy {}: the largest relative error of {} comparisons with float64 is {:.2e}, on "
      "{} inputs; {}, and "
      "{:.2e} was allowed.",
      Name(AccuracyOf(report.spec)), checks, worst->error, worst->family, honest, worst->bound);
}

std::vector<std::string> WhyOf(const Report& report) {
  std::vector<std::string> why;
  const auto best = report.best ? report.best->ObjectiveNs() : std::nullopt;
  if (!best) return why;
  if (report.floor_ns > 0) why.push_back(FloorSentence(report, *best));
  if (const auto& estimate = report.best->estimate) {
    why.push_back(
        fmt::format("The model sees it limited by {}, with {:.0f} % of the warps resident.",
                    estimate->limiter, 100 * estimate->occupancy));
  }
  for (const KernelResources& kernel : report.best->resources)
    why.push_back(ResourceSentence(kernel));
  if (std::string accuracy = AccuracyOfBest(report); !accuracy.empty())
    why.push_back(std::move(accuracy));
  return why;
}

}  // namespace atunner
