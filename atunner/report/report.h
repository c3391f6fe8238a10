// The report of a tuning run: the best kernel, its baselines, its verification, the rejected
// trials.
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

/// The data that both renderings show. All times are of one kind of evidence: measured or
/// predicted.
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
  std::optional<Trial> best;  ///< verified again with inputs that no trial of the search saw
  std::vector<Baseline> baselines;
  /// With several objectives: the Pareto front, in the order of the first objective.
  std::vector<Trial> front;
  uint64_t space_size = 0;
  /// Lower bound of the time by the stated FLOPs and bytes; 0 if the task states neither.
  double floor_ns = 0;
  double seconds = 0;
  double judge_seconds = 0;
  std::string stop_reason;
};

std::string RenderMarkdown(const Report& report);
/// One page that needs no other file. All text that users wrote is escaped.
std::string RenderHtml(const Report& report);

// --- parts of both renderings ---

/// "312 ns", "4.10 us", "1.234 ms", "2.000 s"
std::string FormatTime(double ns);
/// "843 GB/s, 1.20 TFLOP/s, 61 % of the floor". Figures that need bytes or FLOPs that the task does
/// not state are left out.
std::string RatesOf(const Report& report, double ns);
/// The rejected trials with one verdict.
struct Rejection {
  std::string verdict;
  int count = 0;
  std::string example;  ///< the reason of the first of these trials
};
/// What must be said of a verdict that stands beside its kind, e.g. "not verified: …"; empty where
/// every element was compared at the task's own size.
std::string Reservation(const Verdict& verdict);
/// One entry per verdict, the most frequent first.
std::vector<Rejection> RejectionsOf(const Report& report);
/// "4.10 uJ", "1.234 mJ", "2.000 J"; "-" for nullopt
std::string FormatEnergy(std::optional<double> joules);
/// The Pareto front as text: time, memory, energy and configuration of each trial.
std::vector<std::array<std::string, 4>> FrontRowsOf(const Report& report);
/// The number of each trial that improved the best so far, and its time in ns.
std::vector<std::pair<int64_t, double>> ConvergenceOf(const Report& report);
/// One sentence: the error of the best kernel against float64, the error of the plain kernel, the
/// bound and the accuracy policy. "" if the best kernel was not compared.
std::string AccuracyOfBest(const Report& report);
/// Sentences that explain the time of the best kernel: physical floor, share of it, limiter,
/// registers and shared memory, accuracy.
std::vector<std::string> WhyOf(const Report& report);

}  // namespace atunner
