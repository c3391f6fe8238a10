#include "atunner/verify/error_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

/// Floors of the honest figures, in units of roundoff u. Rounding the exact result to a 16-bit type costs up to u per
/// element and about u/√3 in the norm, and float32 arithmetic before it adds next to nothing. In float32 itself a
/// handful of operations, each within u, is honest: exp2 of a scaled difference errs by 2 to 3 u where exp errs by 1.
struct Floor {
  double norm;
  double element;
};
constexpr Floor kRounding = {0.6, 1.05};
constexpr Floor kArithmetic = {2.0, 4.0};

/// n products of either sign, added up in order: each step rounds a partial sum of about √i terms by 0.4 u (rms), which
/// comes to 0.3·√n·u of the result (seen of 576 and 864 products: 0.299 and 0.301). Such errors are normal numbers, the
/// largest of N of them is √(2·ln N) times that: 5.3 of a million.
Floor InOrder(double terms, double results, double u) {
  const double largest = std::max(5.0, std::sqrt(2 * std::log(std::max(results, 1.0))));
  return {0.3 * std::sqrt(terms) * u, 0.3 * std::sqrt(terms) * largest * u};
}
Floor Larger(const Floor& a, const Floor& b) { return {std::max(a.norm, b.norm), std::max(a.element, b.element)}; }

/// What stands for the plain kernel's error where that is smaller. Fast: as if the type were the next narrower one; 16
/// bits are not narrowed, but arithmetic in them is allowed.
Floor LeastHonest(DType dtype, Accuracy accuracy) {
  const bool short_type = SizeOf(dtype) <= 2;
  const bool fast = accuracy == Accuracy::kFast;
  const double u = fast ? ReducedRoundoff(dtype) : UnitRoundoff(dtype);
  const Floor floor = short_type == fast ? kArithmetic : kRounding;
  return {floor.norm * u, floor.element * u};
}

/// k: how many times the plain kernel's error may be made.
double FactorOf(const Tolerance& tolerance, Accuracy accuracy) {
  return accuracy == Accuracy::kStrict ? 1.0 : tolerance.budget_factor;
}

/// With no honest algorithm to compare with: another summation order of n terms errs by about √n·u; 256 u covers
/// n = 65 536 in float32, while TF32's 2^-11 is 8192 u.
double OrderRoom(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? 4.0 : 256.0; }

constexpr double kLargestBound = ErrorBudget::kUnlimited;

/// In 16 bits it is the rounding of results that errs, in all kernels alike: as a root mean square over many elements
/// it is no luck, and there is room for three roundings more, or for what else is kept as short as often again.
constexpr double kShareOfHonest = 0.5;
constexpr double kShareOfRounding = 0.35;

double NormIn16Bits(const CompareStats& honest, double rounding) {
  const double luck = honest.Comparable() > 0 ? std::min(1.0, 4 / std::sqrt(honest.Comparable())) : 1;
  const auto some = [&](double share) { return share + (1 - share) * luck; };
  return std::max(some(kShareOfHonest) * honest.RelativeNorm(), some(kShareOfRounding) * rounding);
}

/// Of 16 bits: what a result may be too large by as a whole, in units of roundoff, beside the luck of its elements'
/// roundings, six times their root mean square of 0.58 units by as many as they are.
constexpr double kGain = 0.2;
constexpr double kGainLuck = 6 * 0.58;

/// Elements may lose all of their digits where they are differences of what is larger: twice as often as in honest
/// runs, and some by chance. Where those lose many it is most of a row at once, and luck.
constexpr double kLostOfHonest = 2;
constexpr double kLostByChance = 8;
constexpr double kMostLost = 0.125;  // of the elements

void LimitAggregates(const CompareStats& honest, DType dtype, const Tolerance& tolerance, Accuracy accuracy,
                     ErrorBudget& budget) {
  if (accuracy == Accuracy::kFast || tolerance.relative || tolerance.absolute) return;
  const auto lost = static_cast<double>(honest.lost_digits);
  if (lost <= kMostLost * static_cast<double>(honest.finite)) budget.lost_digits = kLostOfHonest * lost + kLostByChance;
  if (SizeOf(dtype) != 2 || !(honest.Comparable() > 0)) return;
  const double units = kGain + kGainLuck / std::sqrt(honest.Comparable());
  budget.gain = FactorOf(tolerance, accuracy) * std::fabs(honest.Gain()) + units * UnitRoundoff(dtype);
}

/// Above this share of wrong elements with a small norm the pattern is that of a lower precision, not of a wrong
/// answer.
constexpr double kWidespread = 0.02;
constexpr double kSmallNorm = 0.05;

/// Stands for 0 in a task that states an absolute tolerance alone.
constexpr double kLeastRelative = 1e-30;

/// Sums so few that the plain kernel's error is one draw of luck, in every element behind them: adding up in order is
/// honest, as far as an output of so few numbers may go itself.
Floor OfFewSums(double terms, double factor) {
  const double u = UnitRoundoff(DType::kFloat32);
  const Floor order = InOrder(terms, 1, u);
  const double most = OrderRoom(DType::kFloat32) * u / factor;
  return {std::min(order.norm, most), std::min(order.element, most)};
}

/// Of an output of few numbers: what adding up so many terms in order may err by four times over, where it is known.
double RoomOfFew(DType dtype, double terms) {
  const double u = UnitRoundoff(dtype);
  const double most = OrderRoom(dtype) * u;
  return dtype == DType::kFloat32 && terms > 0 ? std::min(most, 4 * InOrder(terms, 1, u).element) : most;
}

double RelativeOf(const Tolerance& tolerance) { return std::max(tolerance.relative.value_or(0), kLeastRelative); }

void ApplyTolerance(const Tolerance& tolerance, double rms, ErrorBudget& budget) {
  if (tolerance.absolute) {
    budget.element = RelativeOf(tolerance);
    // What elements within the bound can add up to.
    budget.norm = std::min(kLargestBound, RelativeOf(tolerance) + *tolerance.absolute / std::max(rms, kLeastRelative));
  } else if (tolerance.relative) {
    budget.norm = budget.element = *tolerance.relative;
  }
}

double Rms(const CompareStats& stats) {
  return stats.finite > 0 ? std::sqrt(stats.squared_reference / static_cast<double>(stats.finite)) : 0.0;
}

/// Every element errs by little enough: do they err together, or where they are small?
OutputJudgement JudgeAggregates(const std::string& output, const CompareStats& stats, const ErrorBudget& budget) {
  if (!(std::fabs(stats.Gain()) <= budget.gain)) {
    return {VerdictKind::kLowPrecision,
            fmt::format("'{}': {:.3g} of the result too large as a whole (bound {:.3g})", output, stats.Gain(),
                        budget.gain),
            true};
  }
  if (!(static_cast<double>(stats.lost_digits) <= budget.lost_digits)) {
    return {VerdictKind::kWrongResult,
            fmt::format("'{}': {} elements have not a digit right, of {} (bound {:.0f})", output, stats.lost_digits,
                        stats.finite, budget.lost_digits),
            true};
  }
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

ErrorBudget BudgetFromHonest(const CompareStats& honest, DType dtype, const Tolerance& tolerance, Accuracy accuracy,
                             const TermCounts& terms) {
  ErrorBudget budget;
  budget.honest_norm = honest.RelativeNorm();
  budget.honest_element = honest.worst;
  if (!IsFloat(dtype)) return budget;  // integers must be equal
  budget.lost_nan = honest.lost_nan;
  Floor floor = LeastHonest(dtype, accuracy);
  if (dtype == DType::kFloat64) {
    const double order = 4 * std::sqrt(terms.elements) * UnitRoundoff(dtype);
    floor = {floor.norm + order, floor.element + order};
  } else if (dtype == DType::kFloat32) {
    floor = Larger(floor, InOrder(terms.products, static_cast<double>(honest.elements), UnitRoundoff(dtype)));
    if (accuracy != Accuracy::kStrict) floor = Larger(floor, OfFewSums(terms.few_sums, tolerance.budget_factor));
  }
  const auto times = [&](double error, double least) {
    return std::min(kLargestBound, FactorOf(tolerance, accuracy) * std::max(error, least));
  };
  budget.norm = SizeOf(dtype) == 2 && accuracy != Accuracy::kFast ? times(NormIn16Bits(honest, floor.norm), 0)
                                                                  : times(budget.honest_norm, floor.norm);
  budget.element = times(budget.honest_element, floor.element);
  const bool few = honest.elements > 0 && honest.elements < kFewElements;
  if (few && accuracy != Accuracy::kStrict) {
    const double room = RoomOfFew(dtype, terms.few_sums);
    budget.norm = std::max(budget.norm, room);
    budget.element = std::max(budget.element, room);
  }
  LimitAggregates(honest, dtype, tolerance, accuracy, budget);
  ApplyTolerance(tolerance, Rms(honest), budget);
  return budget;
}

double ElementScale(const Tolerance& tolerance, double rms) {
  return tolerance.absolute ? *tolerance.absolute / RelativeOf(tolerance) : rms;
}

ErrorBudget DefaultBudget(DType dtype, const Tolerance& tolerance, double rms) {
  ErrorBudget budget;
  if (!IsFloat(dtype)) return budget;
  const double u = UnitRoundoff(dtype);
  budget.norm = OrderRoom(dtype) * u;
  budget.element = 16 * budget.norm;
  ApplyTolerance(tolerance, rms, budget);
  return budget;
}

OutputJudgement JudgeOutput(const std::string& output, const CompareStats& stats, const ErrorBudget& budget,
                            bool sampled) {
  const auto at = [&] {
    return stats.first_bad == ~uint64_t{0} ? "" : fmt::format(", first at element {}", stats.first_bad);
  };
  if (stats.unwritten > 0 && !sampled) {
    return {VerdictKind::kNotWritten,
            fmt::format("{} of {} elements of '{}' were not written{}", stats.unwritten, stats.elements, output, at())};
  }
  if (stats.lost_nan > budget.lost_nan) {
    return {VerdictKind::kNonFinite,
            fmt::format("{} elements of '{}' should be NaN and are not{}", stats.lost_nan, output, at())};
  }
  if (stats.new_nonfinite > 0) {
    return {VerdictKind::kNonFinite, fmt::format("{} elements of '{}' are NaN or infinite and should not be{}",
                                                 stats.new_nonfinite, output, at())};
  }
  if (sampled && stats.finite == 0)
    return {VerdictKind::kNotWritten, fmt::format("no element of '{}' was written", output)};
  // `!(error <= bound)` and not `error > bound`: a NaN never passes.
  const double norm = stats.RelativeNorm();
  const bool norm_passes = norm <= budget.norm;
  const bool element_passes = stats.worst <= budget.element;
  if (norm_passes && element_passes) return JudgeAggregates(output, stats, budget);
  const double share = stats.finite ? static_cast<double>(stats.beyond) / static_cast<double>(stats.finite) : 1.0;
  const bool widespread = norm < kSmallNorm && (share > kWidespread || (element_passes && !norm_passes));
  const std::string text = fmt::format(
      "'{}': relative error {:.3g} (bound {:.3g}), worst element {:.3g} (bound {:.3g}), {:.2f} % of elements beyond{}",
      output, norm, budget.norm, stats.worst, budget.element, 100 * share, at());
  return {widespread ? VerdictKind::kLowPrecision : VerdictKind::kWrongResult, text, true};
}

}  // namespace atunner
