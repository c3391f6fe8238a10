#include "atunner/trace/trace_comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace atunner::trace {
namespace {

constexpr size_t kFewestSteps = 3;
constexpr double kLeastChange = 0.02;

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Median absolute deviation of the steps, relative to their median.
double Noise(const Iterations& steps) {
  const auto median = static_cast<double>(steps.Median());
  std::vector<double> deviations;
  for (const Interval& one : steps.at)
    deviations.push_back(std::abs(static_cast<double>(one.length()) - median));
  return median > 0 ? MedianOf(std::move(deviations)) / median : 0;
}

bool HasSteps(const Analysis& analysis) { return analysis.iterations.at.size() >= kFewestSteps; }

/// The number of steps that the sums of an analysis are divided by.
double Divisor(const Analysis& analysis, bool steps) {
  return steps ? static_cast<double>(analysis.iterations.at.size()) : 1;
}

double TimeOf(const Analysis& analysis, bool steps) {
  return static_cast<double>(steps ? analysis.iterations.Median() : analysis.window.length());
}

const Analysis& Slowest(const TimelineReport& report) {
  return *std::ranges::max_element(report.analyses, {}, [](const Analysis& analysis) {
    return TimeOf(analysis, HasSteps(analysis));
  });
}

std::map<std::string, double> PartsOf(const Analysis& analysis, double divisor) {
  const DeviceTime total = analysis.Total();
  const double scale = divisor *
                       std::max<double>(1, static_cast<double>(analysis.times.devices.size()));
  std::map<std::string, double> parts{
      {"compute", static_cast<double>(total.compute) / scale},
      {"exposed communication", static_cast<double>(total.exposed_communication) / scale},
      {"exposed copies", static_cast<double>(total.exposed_copies) / scale}};
  for (size_t cause = 0; cause < kIdleCauses; ++cause)
    parts["idle: " + std::string(Title(static_cast<IdleCause>(cause)))] = static_cast<double>(
                                                                              total.idle[cause]) /
                                                                          scale;
  return parts;
}

std::map<std::string, double> KernelsOf(const Analysis& analysis, double divisor) {
  std::map<std::string, double> kernels;
  for (const KernelRow& row : analysis.tables.kernels)
    kernels[std::string(analysis.timeline->strings[row.name])] = static_cast<double>(row.total) /
                                                                 divisor;
  return kernels;
}

/// Largest change first.
std::vector<TimeChange> Changes(const std::map<std::string, double>& before,
                                const std::map<std::string, double>& after) {
  std::map<std::string, TimeChange> changes;
  for (const auto& [name, time] : before) changes[name].before = time;
  for (const auto& [name, time] : after) changes[name].after = time;
  std::vector<TimeChange> list;
  for (auto& [name, change] : changes) {
    if (change.before == 0 && change.after == 0) continue;
    change.name = name;
    list.push_back(change);
  }
  std::ranges::stable_sort(list, std::greater<>(), [](const TimeChange& change) {
    return std::abs(change.after - change.before);
  });
  return list;
}

TraceVerdict VerdictOf(const TimeChange& time, double threshold) {
  if (time.before <= 0) return TraceVerdict::kEqual;
  const double change = time.after / time.before - 1;
  if (std::abs(change) < threshold) return TraceVerdict::kEqual;
  return change < 0 ? TraceVerdict::kFaster : TraceVerdict::kSlower;
}

Json ChangeJson(const TimeChange& change) {
  return {{"name", change.name}, {"before", change.before}, {"after", change.after}};
}

}  // namespace

std::string_view Name(TraceVerdict verdict) {
  static constexpr std::string_view kNames[] = {"faster", "slower", "equal"};
  return kNames[static_cast<size_t>(verdict)];
}

TraceComparison Compare(const TimelineReport& before, const TimelineReport& after) {
  const Analysis& old = Slowest(before);
  const Analysis& now = Slowest(after);
  const bool steps = HasSteps(old) && HasSteps(now);
  TraceComparison result;
  result.compared = steps ? "median step" : "whole window";
  result.time = {result.compared, TimeOf(old, steps), TimeOf(now, steps)};
  result.threshold = kLeastChange;
  if (steps)
    result.threshold = std::max(kLeastChange, 3 * (Noise(old.iterations) + Noise(now.iterations)));
  result.verdict = VerdictOf(result.time, result.threshold);
  const double old_steps = Divisor(old, steps), now_steps = Divisor(now, steps);
  result.parts = Changes(PartsOf(old, old_steps), PartsOf(now, now_steps));
  result.kernels = Changes(KernelsOf(old, old_steps), KernelsOf(now, now_steps));
  constexpr size_t kShown = 20;
  result.kernels.resize(std::min(kShown, result.kernels.size()));
  return result;
}

Json ToJson(const TraceComparison& comparison) {
  Json parts = Json::array(), kernels = Json::array();
  for (const TimeChange& change : comparison.parts) parts.push_back(ChangeJson(change));
  for (const TimeChange& change : comparison.kernels) kernels.push_back(ChangeJson(change));
  return {{"verdict", Name(comparison.verdict)},
          {"compared", comparison.compared},
          {"before", comparison.time.before},
          {"after", comparison.time.after},
          {"threshold", comparison.threshold},
          {"parts", parts},
          {"kernels", kernels}};
}

}  // namespace atunner::trace
