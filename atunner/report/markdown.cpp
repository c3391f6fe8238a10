#include <fmt/format.h>

#include "atunner/report/report.h"

namespace atunner {
namespace {

std::string Cell(std::string text) {
  for (char& c : text) {
    if (c == '|' || c == '\n') c = c == '|' ? '/' : ' ';
  }
  return text;
}

std::string BaselineRow(const Report& report, const Baseline& baseline,
                        std::optional<double> best) {
  const auto ns = baseline.ObjectiveNs();
  std::string speedup = "";
  if (baseline.comparison) {
    speedup = fmt::format("{:.2f} [{:.2f}, {:.2f}] over {} pairs", baseline.comparison->ratio,
                          baseline.comparison->low, baseline.comparison->high,
                          baseline.comparison->pairs);
  } else if (ns && best) {
    speedup = fmt::format("{:.2f}", *ns / *best);
  }
  return fmt::format("| {} | {} | {} | {} |\n", Cell(baseline.name), ns ? FormatTime(*ns) : "-",
                     ns ? RatesOf(report, *ns) : Cell(baseline.note), speedup);
}

std::string Checks(const Trial& best) {
  const std::string reservation = Reservation(best.verdict);
  std::string text = reservation.empty() ? "" : "\n**Note**: " + reservation + ".\n";
  if (!best.verdict.passed()) return text;
  text +=
      "\n## Verification of the best kernel\n\n| check | inputs | size | error | bound | plain "
      "kernel's error | "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const CheckRecord& check : best.verdict.checks) {
    text += fmt::format("| {} | {} | {} | {:.2e} | {:.2e} | {:.2e} | {} |\n", check.check,
                        check.family, ToString(check.dims), check.error, check.bound, check.honest,
                        check.passed ? "passed" : "FAILED");
  }
  return text;
}

std::string Parts(const Estimate& estimate) {
  std::string text = fmt::format(
      "\n## Where the predicted time goes (limited by {})\n\n| part | predicted | "
      "|\n|---|---|---|\n",
      estimate.limiter);
  for (const Estimate::Part& part : estimate.parts)
    text += fmt::format("| {} | {} | {} |\n", part.name, FormatTime(part.ns),
                        part.overlapped ? "hidden" : "counts");
  return text;
}

std::string KernelTable(const Report& report) {
  const auto best = report.best ? report.best->ObjectiveNs() : std::nullopt;
  std::string text = fmt::format(
      "| kernel | {} | rates | times as slow as the best |\n|---|---|---|---|\n",
      Name(report.evidence));
  for (const Baseline& baseline : report.baselines) text += BaselineRow(report, baseline, best);
  return text + (best ? fmt::format("| **atunner** | {} | {} | |\n", FormatTime(*best),
                                    RatesOf(report, *best))
                      : "\nNo correct kernel was found.\n");
}

std::string BestConfiguration(const Report& report) {
  if (!report.best) return "";
  std::string text = fmt::format("\n## Best configuration\n\n`{}`\n\n",
                                 report.best->candidate.Describe(report.space));
  for (const std::string& sentence : WhyOf(report)) text += "- " + sentence + "\n";
  text += Checks(*report.best);
  if (report.best->estimate) text += Parts(*report.best->estimate);
  return text;
}

std::string Front(const Report& report) {
  if (report.front.empty()) return "";
  std::string text = fmt::format(
      "\n## Pareto front\n\n| time ({}) | memory | energy | configuration |\n|---|---|---|---|\n",
      Name(report.evidence));
  for (const auto& [time, memory, energy, configuration] : FrontRowsOf(report))
    text += fmt::format("| {} | {} | {} | {} |\n", time, memory, energy, Cell(configuration));
  return text;
}

std::string Convergence(const Report& report) {
  std::string text = fmt::format("\n## Convergence\n\n| trial | best so far ({}) |\n|---|---|\n",
                                 Name(report.evidence));
  for (const auto& [number, ns] : ConvergenceOf(report))
    text += fmt::format("| {} | {} |\n", number, FormatTime(ns));
  return text;
}

std::string Rejected(const Report& report) {
  const std::vector<Rejection> rejections = RejectionsOf(report);
  std::string text = "\n## Rejected\n\n";
  for (const Rejection& one : rejections)
    text += fmt::format("- {} × {}, for example: {}\n", one.count, one.verdict,
                        Cell(one.example.substr(0, 300)));
  return rejections.empty() ? text + "none\n" : text;
}

}  // namespace

std::string RenderMarkdown(const Report& report) {
  std::string text = fmt::format(
      "# {} on {}\n\nEvery time below is **{}**. Run `{}` of {}: `{}`\n\n", report.spec.name,
      report.device, Name(report.evidence), report.run, report.created, report.command);
  text += KernelTable(report);
  text += fmt::format("\n{} trials of {} valid configurations in {:.1f} s; {}.\n",
                      report.trials.size(), report.space_size, report.seconds, report.stop_reason);
  return text + BestConfiguration(report) + Front(report) + Convergence(report) + Rejected(report);
}

}  // namespace atunner
