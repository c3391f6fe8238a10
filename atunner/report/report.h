// What a run found, and why the best kernel is fast.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/trial/trial.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

/// Everything the reports show. All times in it have the run's one evidence word.
struct Report {
  std::string run;      ///< id
  std::string command;  ///< as the user gave it
  std::string created;  ///< UTC
  Evidence evidence = Evidence::kPredicted;
  std::string device;
  DeviceProfile profile;
  KernelSpec spec;
  ParameterSpace space;
  std::vector<Trial> trials;
  std::optional<Trial> best;  ///< verified again with inputs nobody saw before
  std::vector<Baseline> baselines;
  /// Of several objectives: trials that none beats in all of them, by the first objective
  std::vector<Trial> front;
  uint64_t space_size = 0;
  double floor_ns = 0;  ///< 0 = the task states no work to bound its time with
  double seconds = 0;
  double judge_seconds = 0;
  std::string stop_reason;
};

std::string RenderMarkdown(const Report& report);
/// One page that needs no other file. Whatever came from the user is escaped.
std::string RenderHtml(const Report& report);

// --- what both renderings say ---

/// "312 ns", "4.10 us", "1.234 ms", "2.000 s"
std::string FormatTime(double ns);
/// "843 GB/s, 1.20 TFLOP/s, 61 % of the floor", as far as the task states its work.
std::string RatesOf(const Report& report, double ns);
/// Verdict names with how many trials got them and the first reason, the most frequent first.
/// Correct ones are left out.
struct Rejection {
  std::string verdict;
  int count = 0;
  std::string example;
};
std::vector<Rejection> RejectionsOf(const Report& report);
/// "4.10 uJ", "1.234 mJ", "2.000 J"; "-" for nullopt
std::string FormatEnergy(std::optional<double> joules);
/// The front in words, row by row: time, memory, energy, configuration.
std::vector<std::array<std::string, 4>> FrontRowsOf(const Report& report);
/// Trials at which the best so far improved, with its time in ns.
std::vector<std::pair<int64_t, double>> ConvergenceOf(const Report& report);
/// How far the best kernel is from float64, beside how far the plain kernel is, and under which
/// policy; "" where nothing was compared.
std::string AccuracyOfBest(const Report& report);
/// Sentences on why the best kernel takes as long as it does: roof, share of it, limiter,
/// resources.
std::vector<std::string> WhyOf(const Report& report);

}  // namespace atunner
