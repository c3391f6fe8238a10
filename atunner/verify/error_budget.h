// How much error a candidate may make: k times what an honest algorithm of the task's precision
// makes on the same inputs.
#pragma once

#include <string>

#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/verdict.h"
#include "atunner/verify/judge_kernels.h"

namespace atunner {

struct ErrorBudget {
  /// Below the 1e300 that stands for errors beyond numbers
  static constexpr double kUnlimited = 1e299;
  double norm = 0;  ///< bound on ‖y - r‖ / ‖r‖
  /// Bound on |y - r| / (|r| + ElementScale), every element
  double element = 0;
  /// Bounds of what many elements show together, however small each one's error is; see
  /// CompareStats.
  double spread = kUnlimited;  ///< on ‖y - r‖ / ‖r‖, where it is the error of many
  double gain = kUnlimited;    ///< beside its luck
  double lost = kUnlimited;
  double honest_norm = 0;  ///< the honest algorithm's figures; 0 when there is none
  double honest_element = 0;
  /// Elements that are NaN by float64 arithmetic alone: b - 1 is whole where b has no digit left.
  uint64_t lost_nan = 0;
};

/// Unit roundoff of what `fast` allows instead of the type: float32 for float64, TF32 for float32,
/// else the type itself.
double ReducedRoundoff(DType dtype);
/// What a result may be a sum of.
struct TermCounts {
  /// Elements of the task's largest tensor: a float64 result may be the sum of so many, and then
  /// its reference errs itself by their order: no honest error shows that.
  double elements = 0;
  /// Products that a float32 result is the sum of. The plain kernel may add them up in steps; added
  /// up in order they err more, and that is honest too.
  double products = 0;
  /// Terms of the longest sum behind a float32 result of which there are fewer than kFewElements:
  /// the luck of its rounding is in many elements.
  double few_sums = 0;
};
/// The error of so few numbers is luck, the plain kernel's as well as a candidate's.
inline constexpr uint64_t kFewElements = 16;
/// Budget from the honest algorithm's error. A task's own tolerance, where stated, replaces the
/// derived bounds.
ErrorBudget BudgetFromHonest(const CompareStats& honest, DType dtype, const Tolerance& tolerance,
                             Accuracy accuracy = Accuracy::kDefault, const TermCounts& terms = {});
/// Budget without an honest algorithm (a user's kernel is its own oracle): room for another order
/// of summation in the same precision, and no more: plain TF32 or a half-precision accumulator does
/// not fit in. `rms`: of the reference.
ErrorBudget DefaultBudget(DType dtype, const Tolerance& tolerance, double rms);
/// What |r| is increased by in an element's relative error: the reference's rms, or, where the task
/// states an absolute tolerance a beside its relative one t, a / t: then `error ≤ t` is |y - r| ≤ a
/// + t·|r|.
double ElementScale(const Tolerance& tolerance, double rms);

/// What the statistics of one output mean. `sampled`: only some blocks ran, so unwritten elements
/// are expected.
struct OutputJudgement {
  VerdictKind kind = VerdictKind::kCorrect;
  std::string reason;
  bool beyond_budget = false;  ///< all that is wrong is the size of the error
};
OutputJudgement JudgeOutput(const std::string& output, const CompareStats& stats,
                            const ErrorBudget& budget, bool sampled);

}  // namespace atunner
