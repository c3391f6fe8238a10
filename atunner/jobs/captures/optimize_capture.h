// Tunes the kernels of a captured program.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "atunner/jobs/captures/kernel_shares.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// The change of the source, beside an artifact that was tuned from it.
inline constexpr const char* kPatchFile = "faster.diff";

struct OptimizeCaptureRequest {
  Path capture;
  std::string kernel;  ///< part of a kernel's name; empty: the most expensive ones
  size_t top = 3;      ///< how many kernels; 0 = all
  Path source;         ///< the file that defines the kernels; empty: as -lineinfo names it
  std::vector<std::string> compiler_options;  ///< of the source: -I, -D, -std
  TuningOptions tuning;
  bool rewrite = false;  ///< rewrite the sources instead of tuning parameters
};

/// One kernel of the program that was tuned, or why not.
struct TunedKernel {
  std::string kernel;    ///< readable name
  double share = 0;      ///< of the program's time in kernels
  std::string obstacle;  ///< "" if it was tuned
  std::optional<RunResult> run;
};

struct OptimizeCaptureResult {
  std::vector<TunedKernel> kernels;  ///< most expensive first
  Path out;
  /// Time of all kernels before / after, by the shares (Amdahl's law); 1 = nothing was gained.
  double speedup = 1;
  bool any() const;  ///< true if a kernel has a correct result
};

/// Time of a kernel as given over that of the best one; nullopt where they were not compared.
std::optional<double> GainOf(const Report& report);

/// Each kernel gets its share of the budget's trials, and at least ten. The budget's seconds are
/// those of all kernels together, baselines and finals included; kernels whose turn comes after
/// them are not tuned, and the result says so. An artifact with replacement.json is written to
/// `tuning.out`/NAME for each.
Result<OptimizeCaptureResult> OptimizeCapture(const OptimizeCaptureRequest& request,
                                              Services& services, const EventSink& events,
                                              std::stop_token stop);

}  // namespace atunner::jobs
