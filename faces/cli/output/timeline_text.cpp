#include "faces/cli/output/timeline_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "atunner/trace/findings/measures.h"

namespace atunner::cli {
namespace {

using trace::Analysis;
using trace::Duration;
using trace::Percent;
using trace::Timeline;

constexpr size_t kNameWidth = 64;

std::string Time(int64_t nanoseconds) { return Duration(static_cast<double>(nanoseconds)); }

double ShareOf(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

std::string Short(std::string_view name) {
  if (name.size() <= kNameWidth) return std::string(name);
  return fmt::format("{}...", name.substr(0, kNameWidth - 3));
}

std::string Head(const Analysis& analysis) {
  const Timeline& timeline = *analysis.timeline;
  std::string text = fmt::format("{}: {} events, window {}", timeline.source, timeline.size(),
                                 Time(analysis.window.length()));
  if (timeline.rank >= 0)
    text += fmt::format(", rank {} of {}", timeline.rank, timeline.world_size);
  const trace::Iterations& steps = analysis.iterations;
  text += steps.at.empty()
              ? "\nno steps found"
              : fmt::format("\n{} steps ({}), median {}, longest {}", steps.at.size(),
                            steps.found_by, Time(steps.Median()), Time(steps.Longest()));
  text += "\n";
  for (const std::string& note : timeline.notes) text += "note: " + note + "\n";
  return text;
}

void AppendPart(std::string& text, std::string_view title, int64_t time, int64_t window) {
  if (time == 0) return;
  text += fmt::format("  {:<32} {:>10}  {:>7}\n", title, Time(time),
                      Percent(ShareOf(time, window)));
}

std::string Devices(const Analysis& analysis) {
  std::string text;
  for (const trace::DeviceTime& time : analysis.times.devices) {
    text += fmt::format("GPU {}: busy {}\n", time.device, Percent(ShareOf(time.busy, time.window)));
    AppendPart(text, "computing", time.compute, time.window);
    AppendPart(text, "exposed communication", time.exposed_communication, time.window);
    AppendPart(text, "exposed copies", time.exposed_copies, time.window);
    for (size_t cause = 0; cause < trace::kIdleCauses; ++cause)
      AppendPart(text, fmt::format("idle: {}", Title(static_cast<trace::IdleCause>(cause))),
                 time.idle[cause], time.window);
    if (time.communication > 0)
      text += fmt::format("  communication {} in all, {} of it hidden behind kernels\n",
                          Time(time.communication),
                          Percent(1 - ShareOf(time.exposed_communication, time.communication)));
  }
  return text;
}

std::string Kernels(const Analysis& analysis, size_t rows) {
  const auto& kernels = analysis.tables.kernels;
  if (kernels.empty()) return "";
  std::string text = fmt::format("\n{:>7} {:>10} {:>8} {:>10}  {:<13} kernel\n", "share", "total",
                                 "launches", "median", "class");
  for (size_t i = 0; i < std::min(rows, kernels.size()); ++i) {
    const trace::KernelRow& row = kernels[i];
    text += fmt::format("{:>7} {:>10} {:>8} {:>10}  {:<13} {}{}\n", Percent(row.share),
                        Time(row.total), row.count, Time(row.median), Name(row.kernel_class),
                        Short(analysis.timeline->strings[row.name]),
                        row.tensor_cores ? " [tensor cores]" : "");
  }
  if (kernels.size() > rows) text += fmt::format("and {} more\n", kernels.size() - rows);
  return text;
}

std::string Operators(const Analysis& analysis, size_t rows) {
  const auto& operators = analysis.tables.operators;
  if (operators.empty()) return "";
  std::string text = fmt::format("\n{:>10} {:>10} {:>10} {:>8}  operator\n", "on GPU", "on host",
                                 "host self", "calls");
  for (size_t i = 0; i < std::min(rows, operators.size()); ++i) {
    const trace::OperatorRow& row = operators[i];
    text += fmt::format("{:>10} {:>10} {:>10} {:>8}  {}\n", Time(row.device_total),
                        Time(row.host_total), Time(row.host_self), row.count,
                        Short(analysis.timeline->strings[row.name]));
  }
  return text;
}

std::string Copies(const Analysis& analysis) {
  std::string text;
  for (const trace::CopyRow& row : analysis.tables.copies)
    text += fmt::format("{:>10} {:>8} {:>12.3f} MB  {}\n", Time(row.total), row.count,
                        static_cast<double>(row.bytes) / 1e6, row.name);
  return text.empty()
             ? ""
             : fmt::format("\n{:>10} {:>8} {:>15}  copy\n", "total", "count", "bytes") + text;
}

std::string Gaps(const Analysis& analysis) {
  std::string text;
  constexpr size_t kShown = 5;
  const auto& gaps = analysis.times.longest;
  for (size_t i = 0; i < std::min(kShown, gaps.size()); ++i) {
    const trace::Gap& gap = gaps[i];
    text += fmt::format(
        "{:>10}  GPU {} at {}, {}; next: {}\n", Time(gap.at.length()), gap.device,
        Time(gap.at.begin - analysis.window.begin), Title(gap.Main()),
        gap.next == trace::kNoEvent ? "nothing" : Short(analysis.timeline->NameOf(gap.next)));
  }
  return text.empty() ? "" : "\nlongest gaps\n" + text;
}

std::string Path(const Analysis& analysis, size_t rows) {
  const trace::CriticalPath& path = analysis.path;
  const int64_t window = analysis.window.length();
  std::string text = fmt::format("\ncritical path: GPU {}, host {}, waiting {}\n",
                                 Percent(ShareOf(path.TotalOf(trace::PathPart::kGpu), window)),
                                 Percent(ShareOf(path.TotalOf(trace::PathPart::kHost), window)),
                                 Percent(ShareOf(path.TotalOf(trace::PathPart::kWaiting), window)));
  for (size_t i = 0; i < std::min(rows / 2, path.rows.size()); ++i) {
    const trace::PathRow& row = path.rows[i];
    const std::string_view name = analysis.timeline->strings[row.name];
    text += fmt::format("{:>7} {:>10} {:>8}  {:<8} {}\n", Percent(ShareOf(row.total, window)),
                        Time(row.total), row.count, Name(row.part),
                        name.empty() ? "(not in the trace)" : Short(name));
  }
  return text;
}

std::string Memory(const Analysis& analysis) {
  std::string text;
  for (const trace::MemoryUse& use : analysis.memory)
    text += fmt::format("\nmemory of GPU {}: peak {:.3f} GB allocated, {:.3f} GB reserved\n",
                        use.device, static_cast<double>(use.peak_allocated) / 1e9,
                        static_cast<double>(use.peak_reserved) / 1e9);
  return text;
}

std::string Ranks(const trace::RankComparison& ranks) {
  if (ranks.ranks.empty()) return "";
  std::string text = fmt::format("\n{:>5} {:>10} {:>10} {:>14} {:>10} {:>10} {:>12}\n", "rank",
                                 "window", "computing", "exposed comm.", "idle", "came last",
                                 "others waited");
  for (const trace::RankRow& row : ranks.ranks)
    text += fmt::format("{:>5} {:>10} {:>10} {:>14} {:>10} {:>10} {:>12}\n", row.rank,
                        Time(row.window), Time(row.compute), Time(row.exposed_communication),
                        Time(row.idle), row.last_arrivals, Time(row.caused_wait));
  for (const std::string& note : ranks.notes) text += "note: " + note + "\n";
  return text;
}

std::string Findings(const std::vector<trace::Finding>& findings) {
  if (findings.empty()) return "\nadvice: no rule found anything\n";
  std::string text = "\nadvice\n";
  for (const trace::Finding& finding : findings) {
    const std::string gain = finding.gain > 0 ? fmt::format(" (up to {})", Percent(finding.gain))
                                              : "";
    text += fmt::format("* {}{}\n  {}\n  -> {}\n", finding.title, gain, finding.evidence,
                        finding.action);
  }
  return text;
}

void AppendChange(std::string& text, const trace::TimeChange& change) {
  text += fmt::format(
      "{:>10} {:>10} {:>11}  {}\n", Duration(change.before), Duration(change.after),
      (change.after < change.before ? "-" : "+") + Duration(std::abs(change.after - change.before)),
      Short(change.name));
}

}  // namespace

std::string RenderTimeline(const trace::TimelineReport& report, size_t rows) {
  std::string text;
  for (const Analysis& analysis : report.analyses) {
    text += Head(analysis) + Devices(analysis);
    if (report.analyses.size() > 1) continue;
    text += Kernels(analysis, rows) + Operators(analysis, rows) + Copies(analysis) +
            Gaps(analysis) + Path(analysis, rows) + Memory(analysis);
  }
  return text + Ranks(report.ranks) + Findings(report.findings);
}

std::string RenderComparison(const trace::TraceComparison& comparison) {
  const trace::TimeChange& time = comparison.time;
  std::string text = fmt::format(
      "\ncompared with before: {} ({}: {} -> {}, {:+.1f} %; differences below {} do not count)\n",
      Name(comparison.verdict), comparison.compared, Duration(time.before), Duration(time.after),
      time.before > 0 ? 100 * (time.after / time.before - 1) : 0, Percent(comparison.threshold));
  text += fmt::format("{:>10} {:>10} {:>11}\n", "before", "after", "change");
  for (const trace::TimeChange& change : comparison.parts) AppendChange(text, change);
  text += "kernels\n";
  for (const trace::TimeChange& change : comparison.kernels) AppendChange(text, change);
  return text;
}

}  // namespace atunner::cli
