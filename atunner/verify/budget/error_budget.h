// The error budget: how far a candidate's result may be from the float64 reference.
//
// No fixed tolerance fits every task. A float16 softmax is right to 1e-3, a float32 sum of a
// million terms that cancel may lose every digit in any kernel. So the budget is derived from a
// kernel that is known to be right: the task's baseline kernel, one plain loop per result in the
// task's own types. Its error e on the same inputs is measured, and a candidate may err k = 4 times
// as much (the policy `strict` says once; `fast` measures the baseline on narrowed inputs).
//
// With y the result, r the reference and u the unit roundoff (2^-24 in float32), two figures are
// compared with their bounds:
//
//     norm    = ‖y - r‖ / ‖r‖                      over the whole output
//     element = |y - r| / (|r| + rms(r))           the largest of all elements
//
// Where the baseline is nearly exact, floors take the place of its error, since another correct
// kernel still rounds: 2 u (norm) and 4 u (element) in float32, 0.6 u and 1.05 u in 16-bit types.
//
// Example. A float32 softmax over rows of 1024 columns, whose baseline errs by 0.9e-7 (norm) and
// 2.1e-7 (largest element). Both are below the floors 2 u = 1.2e-7 and 4 u = 2.4e-7, so the bounds
// are 4 × 1.2e-7 = 4.8e-7 and 4 × 2.4e-7 = 9.5e-7. A kernel that sums in another order errs by
// about 1e-7 and passes. One that keeps its exponentials in bfloat16 errs by 2e-3 in nearly every
// element: kLowPrecision. One that writes zeros into the last 3 columns of each row errs in 3 of
// 1024 elements by their whole value, so that the norm is √(3/1024) = 0.05: kWrongResult.
//
// A bound per element is not enough: a kernel whose every element lies at the bound is biased or
// computes in a lower precision. Where the budget is derived, three aggregate tests follow. Each
// is a statistical test that refuses a correct kernel less than once in a million instances.
//
//  * Noise (16-bit outputs): where at least 128 elements make up the error, norm stays within
//    2.5 times the baseline's norm, or 0.9 u. In float16 (u = 4.9e-4) rounding alone gives
//    norm = 0.58 u = 2.8e-4, so the bound is about 7e-4.
//  * Bias (16-bit outputs): b = Σ (y - r)·r / Σ r², the b of y ≈ (1 + b)·r, stays within
//    4 times the baseline's b + 0.4 u + 6 standard errors √Σ((y - r)·r)² / Σr². Rounding to nearest
//    has either sign and averages out, truncation gives b = -0.7 u and is refused.
//  * Cancellation (16 bits and more): elements of which no digit is right (off by more than a
//    quarter of r) may be 32 plus twice as many as the baseline has that err by more than a
//    rounding. Where sums cancel every kernel has some, a kernel that computes the sum in TF32 has
//    thousands.
//
// A single run of the baseline is one draw of a random error and may be too good. A candidate
// beyond the bounds therefore causes a randomised re-evaluation (budget_reevaluation.cpp) before it
// is refused. The baseline of a user's kernel is that kernel itself. Where it is its own reference
// too, DefaultBudget allows another order of summation. docs/verification.md has the derivations.
#pragma once

#include <string>

#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/verdict.h"
#include "atunner/verify/launch/judge_kernels.h"

namespace atunner {

/// Bounds on the error of one output. All are relative, without a unit.
struct ErrorBudget {
  /// No bound. CompareStats reports 1e300 for an error that no number describes, so that it is
  /// beyond this bound too.
  static constexpr double kUnlimited = 1e299;
  double norm = 0;                  ///< bound on ‖y - r‖ / ‖r‖
  double element = 0;               ///< bound on |y - r| / (|r| + ElementScale) of every element
  double noise = kUnlimited;        ///< noise test: bound on the norm where many elements err
  double bias = kUnlimited;         ///< bias test: bound on |CompareStats::Bias|, without the
                                    ///< sampling error
  double lost_digits = kUnlimited;  ///< cancellation test: bound on CompareStats::lost_digits
  double baseline_norm = 0;         ///< the baseline kernel's norm; 0 when there is no baseline
  double baseline_element = 0;      ///< the baseline kernel's largest element error; 0 likewise
  /// Elements that may be numbers although the reference is NaN. Float64 makes a NaN that the
  /// task's type does not: pow(a, b - 1) of a < 0, where float32 rounds b - 1 to a whole number.
  uint64_t lost_nan = 0;
};

/// Unit roundoff that the policy `fast` assumes: that of float32 for float64, of TF32 (2^-11) for
/// float32, of the type itself otherwise.
double ReducedRoundoff(DType dtype);

/// How many terms the elements of an output are sums of.
struct TermCounts {
  /// Elements of the task's largest tensor. A float64 result may be a sum of so many terms, and
  /// its float64 reference then errs as much as the result does.
  double elements = 0;
  /// Products that are added up in each element of a float32 output; 0 = not a plain sum of
  /// products. The baseline kernel may add them up in blocks, which errs less than one by one.
  double products = 0;
  /// Length of the longest sum behind a float32 output that depends on fewer than kFewElements
  /// such sums; 0 = none. The rounding error of one sum is then part of many elements.
  double few_sums = 0;
};

/// Statistics of fewer elements than this say little about the error of another correct kernel.
inline constexpr uint64_t kFewElements = 16;

/// Budget derived from `baseline`, the error of the task's baseline kernel. A tolerance that the
/// task states replaces the derived bounds.
ErrorBudget BudgetFromBaseline(const CompareStats& baseline, DType dtype,
                               const Tolerance& tolerance, Accuracy accuracy = Accuracy::kDefault,
                               const TermCounts& terms = {});

/// The least budget where a user's kernel is its own reference: room for another order of summation
/// in the same precision, too little for TF32 or a half-precision accumulator. `rms` is that of the
/// reference.
ErrorBudget DefaultBudget(DType dtype, const Tolerance& tolerance, double rms);

/// The s of an element's error |y - r| / (|r| + s): the reference's rms or, where the task states
/// an absolute tolerance a beside its relative one t, a / t. `error ≤ t` then means
/// |y - r| ≤ a + t·|r|.
double ElementScale(const Tolerance& tolerance, double rms);

/// The verdict on one output.
struct OutputJudgement {
  VerdictKind kind = VerdictKind::kCorrect;
  std::string reason;
  bool beyond_budget = false;  ///< true if nothing but the size of the error is wrong
};

/// Compares the statistics of one output with its budget. With `sampled` only some blocks ran, so
/// that unwritten elements are expected.
OutputJudgement JudgeOutput(const std::string& output, const CompareStats& stats,
                            const ErrorBudget& budget, bool sampled);

}  // namespace atunner
