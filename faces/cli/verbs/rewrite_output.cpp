#include "faces/cli/verbs/rewrite_output.h"

#include <fmt/format.h>

#include <cmath>

#include "atunner/report/report.h"
#include "faces/cli/output/render.h"

namespace atunner::cli {
namespace {

std::string NameOf(const std::string& rewrite, const std::string& detail) {
  return detail.empty() ? rewrite : rewrite + " " + detail;
}

void PrintSummary(const jobs::RewriteRecord& record) {
  if (record.steps.empty()) {
    fmt::print("no rewrite is faster than the kernel as given ({} {}); {}\n",
               FormatTime(record.own_ns), record.times, record.stop_reason);
    return;
  }
  fmt::print("{} to {} {}, {:.2f}x, by {} rewrite{}; {}\n", FormatTime(record.own_ns),
             FormatTime(record.best_ns), record.times, record.own_ns / record.best_ns,
             record.steps.size(), record.steps.size() == 1 ? "" : "s", record.stop_reason);
}

void PrintStep(const jobs::RewriteStep& step, const jobs::RewriteRecord& record) {
  fmt::print("\n{}: {}\n", NameOf(step.rewrite, step.detail), step.reason);
  fmt::print("  {} to {} {}; bottleneck {} to {}\n", FormatTime(step.before_ns),
             FormatTime(step.after_ns), record.times, step.bottleneck_before,
             step.bottleneck_after);
  for (const jobs::CounterChange& change : step.counters)
    fmt::print("  {:<34} {:>12} to {:>12} {} ({})\n", change.name, CounterText(change.before),
               CounterText(change.after), change.unit, record.counters);
}

}  // namespace

std::string CounterText(double value) {
  if (std::abs(value) >= 1e7) return fmt::format("{:.3g}", value);
  return value == std::round(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

void PrintIdeas(const jobs::RewriteRecord& record) {
  fmt::print("\nideas:\n");
  for (const jobs::IdeaRecord& idea : record.ideas) {
    std::string result = idea.status;
    if (idea.gain) result += fmt::format(", {:.2f}x", *idea.gain);
    if (idea.expected_gain) result += fmt::format(" (expected {:.2f}x)", *idea.expected_gain);
    if (!idea.note.empty()) result += ": " + Printable(idea.note);
    fmt::print("  {} {:<28} {}\n", idea.round, NameOf(idea.rewrite, idea.detail), result);
  }
  PrintSummary(record);
}

void PrintDiff(const jobs::RewriteRecord& record) {
  fmt::print("{} on {}: ", Printable(record.kernel), record.device);
  PrintSummary(record);
  for (const jobs::RewriteStep& step : record.steps) PrintStep(step, record);
  if (!record.note.empty()) fmt::print("\n{}\n", record.note);
  fmt::print("\n{}", Printable(record.diff));
}

}  // namespace atunner::cli
