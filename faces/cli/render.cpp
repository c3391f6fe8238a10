#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "faces/cli/cli.h"

namespace atunner::cli {

void PrintJson(const Json& json) { fmt::print("{}\n", DumpJson(json)); }

std::string RenderTable(const Report& result) {
  std::string text = fmt::format("\n{} on {} ({})\n{:<10} {:>14} {:>3}{}\n", result.spec.name,
                                 result.profile.name, Name(result.evidence), "kernel",
                                 std::string(Name(result.evidence)), "speed-up", "");
  const auto best = result.best ? result.best->ObjectiveNs() : std::nullopt;
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    text += fmt::format("{:<10} {:>14} {:>3}{}\n", baseline.name, ns ? FormatTime(*ns) : "-", "",
                        ns ? "   " + RatesOf(result, *ns) : baseline.note);
  }
  if (!best && result.trials.empty())
    return text + "no correct kernel was found: no trial was made\n";
  if (!best) {
    const Verdict& last = result.trials.back().verdict;
    return text + fmt::format("no correct kernel was found; the last of {} trials: {}, {}\n",
                              result.trials.size(), Name(last.kind), last.reason);
  }
  text += fmt::format("{:<10} {:>14} {:>3}{}\n", "atunner", FormatTime(*best), "",
                      "   " + RatesOf(result, *best));
  for (const Baseline& baseline : result.baselines) {
    const auto ns = baseline.ObjectiveNs();
    if (baseline.comparison) {
      text += fmt::format("  against {}: {:.2f} times as fast [{:.2f}, {:.2f}], {} pairs\n",
                          baseline.name, baseline.comparison->ratio, baseline.comparison->low,
                          baseline.comparison->high, baseline.comparison->pairs);
    } else if (ns) {
      text += fmt::format("  against {}: {:.2f} times as fast ({})\n", baseline.name, *ns / *best,
                          Name(result.evidence));
    }
  }
  if (!result.best->verdict.correct())
    text += fmt::format("  not verified: {}\n", result.best->verdict.reason);
  const auto front = FrontRowsOf(result);
  if (!front.empty()) text += "  no other is better in every objective than one of:\n";
  for (const auto& [time, memory, energy, configuration] : front)
    text += fmt::format("    {:>10} {:>12} {:>12}   {}\n", time, memory, energy, configuration);
  text += fmt::format(
      "  configuration: {}\n  {} trials, {:.1f} s; judging {:.0f} % of the time; {}\n",
      result.space.Describe(result.best->configuration), result.trials.size(), result.seconds,
      result.seconds > 0 ? 100 * result.judge_seconds / result.seconds : 0.0, result.stop_reason);
  return text;
}

}  // namespace atunner::cli
