#include "atunner/verify/error_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

/// Floors of the honest figures, in units of roundoff u. Rounding the exact result to a 16-bit type
/// costs up to u per element and about u/√3 in the norm, and float32 arithmetic before it adds next
/// to nothing. In float32 itself a handful of operations, each within u, is honest: exp2 of a
/// scaled difference errs by 2 to 3 u where exp errs by 1.
struct Floor {
  double norm;
  double element;
};
constexpr Floor kRounding = {0.6, 1.05};
constexpr Floor kArithmetic = {2.0, 4.0};

/// n products of either sign, added up in order: each step rounds a partial sum of about √i terms
/// by 0.4 u (rms), which comes to 0.3·√n·u of the result (seen of 576 and 864 products: 0.299 and
/// 0.301). Such errors are normal numbers, the largest of N of them is √(2·ln N) times that: 5.3 of
/// a million.
Floor InOrder(double terms, double results, double u) {
  const double largest = std::max(5.0, std::sqrt(2 * std::log(std::max(results, 1.0))));
  return {0.3 * std::sqrt(terms) * u, 0.3 * std::sqrt(terms) * largest * u};
}
Floor Larger(const Floor& a, const Floor& b) {
  return {std::max(a.norm, b.norm), std::max(a.element, b.element)};
}

/// What stands for the plain kernel's error where that is smaller. Fast: as if the type were the
/// next narrower one; 16 bits are not narrowed, but arithmetic in them is allowed.
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

/// With no honest algorithm to compare with: another summation order of n terms errs by about √n·u;
/// 256 u covers n = 65 536 in float32, while TF32's 2^-11 is 8192 u.
double OrderRoom(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? 4.0 : 256.0;
}

constexpr double kLargestBound = ErrorBudget::kUnlimited;

/// In 16 bits it is the rounding of results that errs, in all kernels alike. Where many elements
/// err that is no luck: there is room for five roundings more like the plain kernel's, and for two
/// at their largest, just above powers of two.
constexpr double kShareOfFactor = 0.625;
constexpr double kFewRoundings = 0.9;  // units of roundoff, √2/√3 of them and some
constexpr double kManyErring = 128;

/// What all elements of 16 bits may be too large by, beside four times what the plain kernel's are:
/// a result that is cut off and not rounded is too small by 0.7 units. Of independent errors of
/// either sign, whatever their sizes, the sum is beyond t times the root of the sum of their
/// squares once in exp(t²/2)/2 cases: 6 is once in 30 million.
constexpr double kGain = 0.4;
constexpr double kLuckOfGain = 6;

/// Numbers that are differences of larger ones may lose all digits in honest kernels too. Where
/// these err by a quarter, the plain one errs by a sixteenth at least as often, even if it errs by
/// four times less, and an error of a sixty-fourth is what is counted in it. Of two Poisson numbers
/// of one mean, whichever it is, one is more than twice the other and 32 once in 5 million cases.
/// Who narrows a term to 16 bits, and the plain kernel does not, loses sums of two normal numbers
/// that cancel to 4 u: 0.25 % in bfloat16.
constexpr double kLostOfUnsure = 2;
constexpr double kLostByChance = 32;
constexpr double kLostIn16Bits = 0x1p-5;  // of all elements

/// Bounds of what many elements show together.
void LimitAggregates(const CompareStats& honest, DType dtype, double factor,
                     const TermCounts& terms, ErrorBudget& budget) {
  if (SizeOf(dtype) == 1) return;
  budget.lost = kLostOfUnsure * static_cast<double>(honest.unsure) + kLostByChance;
  if (SizeOf(dtype) != 2) return;
  budget.lost += kLostIn16Bits * static_cast<double>(honest.finite);
  if (terms.few_sums > 0) return;  // their errors are in many elements, and average out nowhere
  const double u = UnitRoundoff(dtype);
  budget.spread = std::max(std::max(1.0, kShareOfFactor * factor) * honest.RelativeNorm(),
                           kFewRoundings * u);
  budget.gain = factor * std::fabs(honest.Gain()) + kGain * u;
}

/// Above this share of wrong elements with a small norm the pattern is that of a lower precision,
/// not of a wrong answer.
constexpr double kWidespread = 0.02;
constexpr double kSmallNorm = 0.05;

/// Stands for 0 in a task that states an absolute tolerance alone.
constexpr double kLeastRelative = 1e-30;

/// Sums so few that the plain kernel's error is one draw of luck, in every element behind them:
/// adding up in order is honest, as far as an output of so few numbers may go itself.
Floor OfFewSums(double terms, double factor) {
  const double u = UnitRoundoff(DType::kFloat32);
  const Floor order = InOrder(terms, 1, u);
  const double most = OrderRoom(DType::kFloat32) * u / factor;
  return {std::min(order.norm, most), std::min(order.element, most)};
}

/// Of an output of few numbers: what adding up so many terms in order may err by four times over,
/// where it is known, and the plain kernel's own error many times over, which may be luck.
double RoomOfFew(const CompareStats& honest, DType dtype, double terms) {
  constexpr double kLuck = 16;
  const double u = UnitRoundoff(dtype);
  const double most = OrderRoom(dtype) * u;
  if (dtype != DType::kFloat32 || terms == 0) return most;
  return std::min(most, std::max(4 * InOrder(terms, 1, u).element, kLuck * honest.RelativeNorm()));
}

double RelativeOf(const Tolerance& tolerance) {
  return std::max(tolerance.relative.value_or(0), kLeastRelative);
}

void ApplyTolerance(const Tolerance& tolerance, double rms, ErrorBudget& budget) {
  if (tolerance.absolute) {
    budget.element = RelativeOf(tolerance);
    // What elements within the bound can add up to.
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

/// Every element errs by little enough: do they all err, or together, or where they are small?
OutputJudgement JudgeAggregates(const std::string& output, const CompareStats& stats,
                                const ErrorBudget& budget) {
  const double norm = stats.RelativeNorm();
  if (norm > budget.spread && stats.Erring() >= kManyErring) {
    return {VerdictKind::kLowPrecision,
            fmt::format("'{}': relative error {:.3g} (bound where many elements err {:.3g})",
                        output, norm, budget.spread),
            true};
  }
  const double most_gain = budget.gain + kLuckOfGain * stats.LuckOfGain();
  if (std::fabs(stats.Gain()) > most_gain) {
    return {VerdictKind::kLowPrecision,
            fmt::format("'{}': too large as a whole by {:.3g} of it (bound {:.3g})", output,
                        stats.Gain(), most_gain),
            true};
  }
  if (static_cast<double>(stats.lost) > budget.lost) {
    return {VerdictKind::kWrongResult,
            fmt::format("'{}': {} of {} elements have no digit right (bound {:.0f})", output,
                        stats.lost, stats.finite, budget.lost),
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

ErrorBudget BudgetFromHonest(const CompareStats& honest, DType dtype, const Tolerance& tolerance,
                             Accuracy accuracy, const TermCounts& terms) {
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
    floor = Larger(
        floor, InOrder(terms.products, static_cast<double>(honest.elements), UnitRoundoff(dtype)));
    if (accuracy != Accuracy::kStrict)
      floor = Larger(floor, OfFewSums(terms.few_sums, tolerance.budget_factor));
  }
  const auto times = [&](double error, double least) {
    return std::min(kLargestBound, FactorOf(tolerance, accuracy) * std::max(error, least));
  };
  budget.norm = times(budget.honest_norm, floor.norm);
  budget.element = times(budget.honest_element, floor.element);
  const bool few = honest.elements > 0 && honest.elements < kFewElements;
  if (few && accuracy != Accuracy::kStrict) {
    const double room = RoomOfFew(honest, dtype, terms.few_sums);
    budget.norm = std::max(budget.norm, room);
    budget.element = std::max(budget.element, room);
  }
  const bool stated = tolerance.relative || tolerance.absolute;
  if (!stated && accuracy != Accuracy::kFast)
    LimitAggregates(honest, dtype, FactorOf(tolerance, accuracy), terms, budget);
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

OutputJudgement JudgeOutput(const std::string& output, const CompareStats& stats,
                            const ErrorBudget& budget, bool sampled) {
  const auto at = [&] {
    return stats.first_bad == ~uint64_t{0} ? ""
                                           : fmt::format(", first at element {}", stats.first_bad);
  };
  if (stats.unwritten > 0 && !sampled) {
    return {VerdictKind::kNotWritten, fmt::format("{} of {} elements of '{}' were not written{}",
                                                  stats.unwritten, stats.elements, output, at())};
  }
  if (stats.lost_nan > budget.lost_nan) {
    return {VerdictKind::kNonFinite, fmt::format("{} elements of '{}' should be NaN and are not{}",
                                                 stats.lost_nan, output, at())};
  }
  if (stats.new_nonfinite > 0) {
    return {VerdictKind::kNonFinite,
            fmt::format("{} elements of '{}' are NaN or infinite and should not be{}",
                        stats.new_nonfinite, output, at())};
  }
  if (sampled && stats.finite == 0)
    return {VerdictKind::kNotWritten, fmt::format("no element of '{}' was written", output)};
  // `!(error <= bound)` and not `error > bound`: a NaN never passes.
  const double norm = stats.RelativeNorm();
  const bool norm_passes = norm <= budget.norm;
  const bool element_passes = stats.worst <= budget.element;
  if (norm_passes && element_passes) return JudgeAggregates(output, stats, budget);
  const double share = stats.finite
                           ? static_cast<double>(stats.beyond) / static_cast<double>(stats.finite)
                           : 1.0;
  const bool widespread = norm < kSmallNorm &&
                          (share > kWidespread || (element_passes && !norm_passes));
  const std::string text = fmt::format(
      "'{}': relative error {:.3g} (bound {:.3g}), worst element {:.3g} (bound {:.3g}), {:.2f} % "
      "of elements beyond{}",
      output, norm, budget.norm, stats.worst, budget.element, 100 * share, at());
  return {widespread ? VerdictKind::kLowPrecision : VerdictKind::kWrongResult, text, true};
}

}  // namespace atunner
