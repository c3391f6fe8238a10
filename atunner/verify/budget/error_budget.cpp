#include "atunner/verify/budget/error_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

/// Least figures that stand for the baseline kernel's error, in units of roundoff u. Rounding the
/// exact result to a 16-bit type costs up to u per element and about u/√3 in the norm; float32
/// arithmetic before it adds next to nothing. In float32 itself a handful of operations, each
/// within u, is correct: exp2 of a scaled difference errs by 2 to 3 u where exp errs by 1 u.
struct Floor {
  double norm;
  double element;
};
constexpr Floor kRounding = {0.6, 1.05};
constexpr Floor kArithmetic = {2.0, 4.0};

/// Error of `terms` products of either sign, added up one by one, in each of `results` elements.
/// Step i rounds a partial sum of size √i by 0.4 u (rms), which adds up to 0.3·√n·u of the result
/// (measured for n = 576 and 864: 0.299 and 0.301). The errors are normally distributed, and the
/// largest of N of them is √(2·ln N) times their rms: 5.3 times for a million.
Floor InOrder(double terms, double results, double u) {
  const double largest = std::max(5.0, std::sqrt(2 * std::log(std::max(results, 1.0))));
  return {0.3 * std::sqrt(terms) * u, 0.3 * std::sqrt(terms) * largest * u};
}
Floor Larger(const Floor& a, const Floor& b) {
  return {std::max(a.norm, b.norm), std::max(a.element, b.element)};
}

/// Floor of the baseline's error. Under `fast` it is that of the next narrower type; 16-bit types
/// are not narrowed, but arithmetic in them is allowed.
Floor FloorOf(DType dtype, Accuracy accuracy) {
  const bool short_type = SizeOf(dtype) <= 2;
  const bool fast = accuracy == Accuracy::kFast;
  const double u = fast ? ReducedRoundoff(dtype) : UnitRoundoff(dtype);
  const Floor floor = short_type == fast ? kArithmetic : kRounding;
  return {floor.norm * u, floor.element * u};
}

/// The factor k on the baseline's error.
double FactorOf(const Tolerance& tolerance, Accuracy accuracy) {
  return accuracy == Accuracy::kStrict ? 1.0 : tolerance.budget_factor;
}

/// Error that another order of summation explains, in units of roundoff: of n terms about √n. 256 u
/// covers n = 65 536 in float32, while TF32's 2^-11 is 8192 u.
double SummationOrderError(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? 4.0 : 256.0;
}

constexpr double kLargestBound = ErrorBudget::kUnlimited;

/// Noise test of 16-bit outputs, where most of every kernel's error is the rounding of results. A
/// candidate's norm may be 0.625 k = 2.5 times the baseline's, which is room for five more
/// roundings of that size, or 0.9 u: two roundings at their largest, just above powers of two, give
/// √2/√3 u = 0.82 u. Fewer than 128 elements may differ by more without a reason.
constexpr double kShareOfFactor = 0.625;
constexpr double kFewRoundings = 0.9;  // units of roundoff
constexpr double kManyErring = 128;

/// Bias test of 16-bit outputs, beside k times the baseline's bias. Truncated results are too small
/// by 0.7 u, so 0.4 u are allowed. Independent errors of either sign add a sampling error: their
/// sum exceeds t standard errors with probability 2·exp(-t²/2) (Hoeffding), for t = 6 once in 30
/// million.
constexpr double kBias = 0.4;  // units of roundoff
constexpr double kBiasStandardErrors = 6;

/// Cancellation test. Differences of larger numbers lose all digits in correct kernels too. An
/// element counts if it is off by a quarter. A kernel that errs four times as much as the baseline
/// has such an element no more often than the baseline errs by a sixteenth, and the baseline's
/// errors are counted from 1/64 on. Of two Poisson numbers of equal mean one exceeds twice the
/// other plus 32 once in 5 million cases. 16-bit types: narrowing a term to bfloat16, which the
/// baseline does not, loses sums of two normal numbers that cancel to 4 u, 0.25 % of all; 1/32 is
/// allowed.
constexpr double kLostPerInexact = 2;
constexpr double kLostByChance = 32;
constexpr double kLostShareIn16Bits = 0x1p-5;

/// Sets the bounds of the noise, bias and cancellation tests.
void LimitAggregates(const CompareStats& baseline, DType dtype, double factor,
                     const TermCounts& terms, ErrorBudget& budget) {
  if (SizeOf(dtype) == 1) return;
  budget.lost_digits = kLostPerInexact * static_cast<double>(baseline.inexact) + kLostByChance;
  if (SizeOf(dtype) != 2) return;
  budget.lost_digits += kLostShareIn16Bits * static_cast<double>(baseline.finite);
  // The errors of few sums are part of many elements and do not average out.
  if (terms.few_sums > 0) return;
  const double u = UnitRoundoff(dtype);
  budget.noise = std::max(std::max(1.0, kShareOfFactor * factor) * baseline.RelativeNorm(),
                          kFewRoundings * u);
  budget.bias = factor * std::fabs(baseline.Bias()) + kBias * u;
}

/// A small norm with more than this share of elements beyond the bound is the pattern of a lower
/// precision (kLowPrecision) and not of a wrong answer (kWrongResult).
constexpr double kWidespread = 0.02;
constexpr double kSmallNorm = 0.05;

/// Relative tolerance of a task that states only an absolute one; 0 would divide by zero.
constexpr double kLeastRelative = 1e-30;

/// Floor of an output that depends on few sums of `terms` terms. The baseline's rounding error of
/// one sum is a single draw, so the error of adding up in order counts, within the bound that
/// FewElementsBound gives an output of few elements.
Floor FewSumsFloor(double terms, double factor) {
  const double u = UnitRoundoff(DType::kFloat32);
  const Floor order = InOrder(terms, 1, u);
  const double most = SummationOrderError(DType::kFloat32) * u / factor;
  return {std::min(order.norm, most), std::min(order.element, most)};
}

/// Bound for an output of fewer than kFewElements elements, whose baseline error is a small sample:
/// the error of another order of summation. For float32 sums of known length it is at most four
/// times the error of adding up in order or, if that is larger, 16 times the baseline's own error.
double FewElementsBound(const CompareStats& baseline, DType dtype, double terms) {
  constexpr double kSmallSampleFactor = 16;
  const double u = UnitRoundoff(dtype);
  const double most = SummationOrderError(dtype) * u;
  if (dtype != DType::kFloat32 || terms == 0) return most;
  return std::min(most, std::max(4 * InOrder(terms, 1, u).element,
                                 kSmallSampleFactor * baseline.RelativeNorm()));
}

double RelativeOf(const Tolerance& tolerance) {
  return std::max(tolerance.relative.value_or(0), kLeastRelative);
}

void ApplyTolerance(const Tolerance& tolerance, double rms, ErrorBudget& budget) {
  if (tolerance.absolute) {
    budget.element = RelativeOf(tolerance);
    // The largest norm that elements within their bound can add up to.
    budget.norm = std::min(
        kLargestBound, RelativeOf(tolerance) + *tolerance.absolute / std::max(rms, kLeastRelative));
  } else if (tolerance.relative) {
    budget.norm = budget.element = *tolerance.relative;
  }
}

double Rms(const CompareStats& stats) {
  return stats.finite > 0 ? std::sqrt(stats.squared_reference / static_cast<double>(stats.finite))
                          : 0.0;
}

OutputJudgement Refused(VerdictKind kind, std::string reason) {
  return {kind, std::move(reason), true};
}

/// The noise, bias and cancellation tests of an output whose every element is within its bound.
OutputJudgement JudgeAggregates(const std::string& output, const CompareStats& stats,
                                const ErrorBudget& budget) {
  using enum VerdictKind;
  const double norm = stats.RelativeNorm();
  if (norm > budget.noise && stats.ErringElements() >= kManyErring) {
    return Refused(kLowPrecision,
                   fmt::format("'{}': relative error {:.3g} (bound where many elements err {:.3g})",
                               output, norm, budget.noise));
  }
  const double most_bias = budget.bias + kBiasStandardErrors * stats.BiasSamplingError();
  if (std::fabs(stats.Bias()) > most_bias) {
    return Refused(kLowPrecision,
                   fmt::format("'{}': biased by {:.3g} of the reference (bound {:.3g})", output,
                               stats.Bias(), most_bias));
  }
  if (static_cast<double>(stats.lost_digits) > budget.lost_digits) {
    return Refused(kWrongResult,
                   fmt::format("'{}': {} of {} elements have no correct digit (bound {:.0f})",
                               output, stats.lost_digits, stats.finite, budget.lost_digits));
  }
  return {};
}

/// Floor of the baseline's error, where longer sums than the baseline's own count too.
Floor FloorWithSums(const CompareStats& baseline, DType dtype, const Tolerance& tolerance,
                    Accuracy accuracy, const TermCounts& terms) {
  Floor floor = FloorOf(dtype, accuracy);
  const double u = UnitRoundoff(dtype);
  if (dtype == DType::kFloat64) {
    const double order = 4 * std::sqrt(terms.elements) * u;
    return {floor.norm + order, floor.element + order};
  }
  if (dtype != DType::kFloat32) return floor;
  floor = Larger(floor, InOrder(terms.products, static_cast<double>(baseline.elements), u));
  if (accuracy == Accuracy::kStrict) return floor;
  return Larger(floor, FewSumsFloor(terms.few_sums, tolerance.budget_factor));
}

/// Elements that are unwritten, or NaN or infinite where the reference is not, or the reverse;
/// kCorrect if there are none. `at` names the first wrong element.
OutputJudgement JudgeSpecialValues(const std::string& output, const CompareStats& stats,
                                   const ErrorBudget& budget, bool sampled, const std::string& at) {
  using enum VerdictKind;
  if (stats.unwritten > 0 && !sampled) {
    return {kNotWritten, fmt::format("{} of {} elements of '{}' were not written{}",
                                     stats.unwritten, stats.elements, output, at)};
  }
  if (stats.lost_nan > budget.lost_nan) {
    return {kNonFinite, fmt::format("{} elements of '{}' should be NaN and are not{}",
                                    stats.lost_nan, output, at)};
  }
  if (stats.new_nonfinite > 0) {
    return {kNonFinite, fmt::format("{} elements of '{}' are NaN or infinite and should not be{}",
                                    stats.new_nonfinite, output, at)};
  }
  if (sampled && stats.finite == 0)
    return {kNotWritten, fmt::format("no element of '{}' was written", output)};
  return {};
}

}  // namespace

double ReducedRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return UnitRoundoff(DType::kFloat32);
    case DType::kFloat32:
      return 0x1p-11;  // TF32
    default:
      return UnitRoundoff(dtype);
  }
}

ErrorBudget BudgetFromBaseline(const CompareStats& baseline, DType dtype,
                               const Tolerance& tolerance, Accuracy accuracy,
                               const TermCounts& terms) {
  ErrorBudget budget;
  budget.baseline_norm = baseline.RelativeNorm();
  budget.baseline_element = baseline.worst;
  if (!IsFloat(dtype)) return budget;  // integers must be equal
  budget.lost_nan = baseline.lost_nan;
  const Floor floor = FloorWithSums(baseline, dtype, tolerance, accuracy, terms);
  const double factor = FactorOf(tolerance, accuracy);
  budget.norm = std::min(kLargestBound, factor * std::max(budget.baseline_norm, floor.norm));
  budget.element = std::min(kLargestBound,
                            factor * std::max(budget.baseline_element, floor.element));
  const bool few = baseline.elements > 0 && baseline.elements < kFewElements;
  if (few && accuracy != Accuracy::kStrict) {
    const double bound = FewElementsBound(baseline, dtype, terms.few_sums);
    budget.norm = std::max(budget.norm, bound);
    budget.element = std::max(budget.element, bound);
  }
  const bool stated = tolerance.relative || tolerance.absolute;
  if (!stated && accuracy != Accuracy::kFast)
    LimitAggregates(baseline, dtype, factor, terms, budget);
  ApplyTolerance(tolerance, Rms(baseline), budget);
  return budget;
}

double ElementScale(const Tolerance& tolerance, double rms) {
  return tolerance.absolute ? *tolerance.absolute / RelativeOf(tolerance) : rms;
}

ErrorBudget DefaultBudget(DType dtype, const Tolerance& tolerance, double rms) {
  ErrorBudget budget;
  if (!IsFloat(dtype)) return budget;
  const double u = UnitRoundoff(dtype);
  budget.norm = SummationOrderError(dtype) * u;
  budget.element = 16 * budget.norm;
  ApplyTolerance(tolerance, rms, budget);
  return budget;
}

OutputJudgement JudgeOutput(const std::string& output, const CompareStats& stats,
                            const ErrorBudget& budget, bool sampled) {
  const std::string at = stats.first_bad == ~uint64_t{0}
                             ? ""
                             : fmt::format(", first at element {}", stats.first_bad);
  OutputJudgement special = JudgeSpecialValues(output, stats, budget, sampled, at);
  if (special.kind != VerdictKind::kCorrect) return special;
  // Compared with `<=`, so that a NaN never passes.
  const double norm = stats.RelativeNorm();
  const bool norm_passes = norm <= budget.norm;
  const bool element_passes = stats.worst <= budget.element;
  if (norm_passes && element_passes) return JudgeAggregates(output, stats, budget);
  const double share = stats.finite
                           ? static_cast<double>(stats.beyond) / static_cast<double>(stats.finite)
                           : 1.0;
  const bool widespread = norm < kSmallNorm &&
                          (share > kWidespread || (element_passes && !norm_passes));
  return Refused(
      widespread ? VerdictKind::kLowPrecision : VerdictKind::kWrongResult,
      fmt::format("'{}': relative error {:.3g} (bound {:.3g}), worst element {:.3g} (bound "
                  "{:.3g}), {:.2f} % of elements beyond{}",
                  output, norm, budget.norm, stats.worst, budget.element, 100 * share, at));
}

}  // namespace atunner
