// The arguments and results of the judge's larger kernels. Both compilers read this file, so that
// the two sides cannot differ. Addresses are integers, and wide members come first, so that there
// is no padding.
#ifndef ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_
#define ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_

namespace judge {

typedef unsigned long long Word;

/// Arguments of judge_fill. Fill kinds: 0 = family, 1 = constant `low`, 2 = iota, 3 = uniform in
/// [low, high). Element `spike_at` (if < elements) becomes `spike_value` afterwards: needles, NaN
/// tests, one-element changes.
struct Fill {
  Word data, elements, seed, spike_at;
  double low, high, spike_value;
  int dtype, kind, family, variant;
};

/// Arguments of judge_guards.
struct GuardZones {
  Word at[16];
};

/// Arguments of judge_compare: `data` with a masked float64 reference (key 0 = not masked).
/// `largest` is the type's largest finite number: a result whose reference is beyond it must be
/// infinite or that number, unless an error within `element_bound` decides. With `poison_counts`,
/// elements that hold the poison pattern are counted as unwritten and skipped. `rounding` is a
/// relative error that is too large for a rounding of the result.
struct Comparison {
  Word data, reference, elements, key, choices, partial;
  double scale, largest, element_bound, rounding;
  int dtype, poison_counts, choice_slots, unused;
};

/// The findings of one block of judge_compare.
struct Partial {
  double squared_difference;
  double squared_reference;
  double sum_reference;
  double squared_reference_second_half;
  double fourth_difference;  // sum of (y - r)⁴
  double along_reference;    // sum of (y - r) · r: by how much the result is too large in total
  double squared_along;      // sum of ((y - r) · r)²
  double worst;              // largest |y - r| / (|r| + scale)
  Word finite;               // elements compared numerically
  Word unwritten;            // still the judge's poison
  Word lost_nan;             // reference NaN, output not
  Word new_nonfinite;        // output NaN or infinite, reference representable
  Word beyond;               // elements whose error exceeds `element_bound`
  Word unsure;               // surely normal numbers that err by more than `rounding`
  Word lost;                 // those of them of which not even the first two bits are right
  // elements that may be beyond the bound because of a data-dependent decision
  Word undetermined;
  // smallest index of an element that is wrong or beyond the bound, or ~0
  Word first_bad;
};

}  // namespace judge

#endif  // ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_
