#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "faces/cli/cli.h"

namespace atunner::cli {
namespace {

/// Achieved rates and the share of the physical floor, as far as the task states its work.
std::string Rates(double ns, const TuneResult& result, const KernelSpec& spec) {
  const double bytes = MinimumBytes(spec, spec.dims).value_or(0);
  const double flops = FlopCount(spec, spec.dims).value_or(0);
  std::string text;
  const auto add = [&](const std::string& piece) { text += (text.empty() ? "   " : ", ") + piece; };
  if (bytes > 0) add(fmt::format("{:.0f} GB/s", bytes / ns));
  if (flops > 0) add(fmt::format("{:.2f} TFLOP/s", flops / ns / 1e3));
  if (result.floor_ns > 0) add(fmt::format("{:.0f} % of the floor", 100 * result.floor_ns / ns));
  return text;
}

std::map<std::string, int> Rejections(const TuneResult& result) {
  std::map<std::string, int> counts;
  for (const Trial& trial : result.trials) {
    if (!trial.verdict.correct()) ++counts[std::string(Name(trial.verdict.kind))];
  }
  return counts;
}

}  // namespace

std::string FormatTime(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string RenderTable(const TuneResult& result, const KernelSpec& spec, const ParameterSpace& space,
                        const DeviceProfile& profile, Evidence evidence) {
  std::string text = fmt::format("\n{} on {} ({})\n{:<10} {:>14} {:>3}{}\n", spec.name, profile.name, Name(evidence),
                                 "kernel", std::string(Name(evidence)), "speed-up", "");
  const auto best = result.best ? result.best->ObjectiveNs() : std::nullopt;
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    text += fmt::format("{:<10} {:>14} {:>3}{}\n", baseline.name, ns ? FormatTime(*ns) : "-", "",
                        ns ? Rates(*ns, result, spec) : baseline.note);
  }
  if (!best) return text + "no correct kernel was found\n";
  text += fmt::format("{:<10} {:>14} {:>3}{}\n", "atunner", FormatTime(*best), "", Rates(*best, result, spec));
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    if (baseline.comparison) {
      text += fmt::format("  against {}: {:.2f} times as fast [{:.2f}, {:.2f}], {} pairs\n", baseline.name,
                          baseline.comparison->ratio, baseline.comparison->low, baseline.comparison->high,
                          baseline.comparison->pairs);
    } else if (ns) {
      text += fmt::format("  against {}: {:.2f} times as fast ({})\n", baseline.name, *ns / *best, Name(evidence));
    }
  }
  text += fmt::format("  configuration: {}\n  {} trials, {:.1f} s; judging {:.0f} % of the time; {}\n",
                      space.Describe(result.best->configuration), result.trials.size(), result.seconds,
                      result.seconds > 0 ? 100 * result.judge_seconds / result.seconds : 0.0, result.stop_reason);
  return text;
}

std::string RenderMarkdown(const RunRecord& run, const TuneResult& result, const KernelSpec& spec,
                           const ParameterSpace& space, const DeviceProfile& profile) {
  const Evidence evidence = run.evidence == "measured" ? Evidence::kMeasured : Evidence::kPredicted;
  std::string text =
      fmt::format("# {} on {}\n\nEvery time below is **{}**. Run `{}`: `{}`\n\n```\n{}```\n", spec.name, run.device,
                  run.evidence, run.id, run.command, RenderTable(result, spec, space, profile, evidence));
  if (result.best) {
    text +=
        "\n## Verification of the best kernel\n\n| check | inputs | size | error | bound | plain kernel's error | "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const CheckRecord& check : result.best->verdict.checks) {
      std::string dims;
      for (const auto& [name, extent] : check.dims)
        dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", name, extent);
      text += fmt::format("| {} | {} | {} | {:.2e} | {:.2e} | {:.2e} | {} |\n", check.check, check.family, dims,
                          check.error, check.bound, check.honest, check.passed ? "passed" : "FAILED");
    }
    if (result.best->estimate) {
      text += fmt::format("\n## Where the predicted time goes (limited by {})\n\n| part | time | |\n|---|---|---|\n",
                          result.best->estimate->limiter);
      for (const Estimate::Part& part : result.best->estimate->parts)
        text +=
            fmt::format("| {} | {} | {} |\n", part.name, FormatTime(part.ns), part.overlapped ? "hidden" : "counts");
    }
    text += "\n## Resources\n\n";
    for (const KernelResources& kernel : result.best->resources) {
      text += fmt::format("- `{}`: {} registers, {} bytes static shared, {} bytes spilled\n", kernel.entry,
                          kernel.registers, kernel.static_shared_bytes, kernel.spill_store_bytes);
    }
  }
  text += "\n## Convergence\n\n| trial | best so far |\n|---|---|\n";
  double best = 1e300;
  for (const Trial& trial : result.trials) {
    const auto ns = trial.ObjectiveNs();
    if (!ns || *ns >= best) continue;
    best = *ns;
    text += fmt::format("| {} | {} |\n", trial.number, FormatTime(best));
  }
  text += "\n## Rejected\n\n";
  for (const auto& [kind, count] : Rejections(result)) text += fmt::format("- {}: {}\n", kind, count);
  if (Rejections(result).empty()) text += "none\n";
  return text;
}

}  // namespace atunner::cli
