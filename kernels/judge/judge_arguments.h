// What the host hands to the judge's kernels that take much, and what it gets back. Both compilers
// read this file, so that neither side can be changed alone. Addresses are whole numbers, and wide
// members come first: no padding.
#ifndef ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_
#define ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_

namespace judge {

typedef unsigned long long Word;

/// Of judge_fill. Fill kinds: 0 = family, 1 = constant `low`, 2 = iota, 3 = uniform in [low, high).
/// Element `spike_at` (if < elements) becomes `spike_value` afterwards: needles, NaN tests,
/// one-element changes.
struct Fill {
  Word data, elements, seed, spike_at;
  double low, high, spike_value;
  int dtype, kind, family, variant;
};

/// Of judge_guards.
struct GuardZones {
  Word at[16];
};

/// Of judge_compare: `data` with a masked float64 reference (key 0 = not masked). `largest` is the
/// type's largest finite number: a reference beyond it must have become infinite or that number,
/// but for what an error within `element_bound` decides. With `poison_counts`, elements that hold
/// the poison pattern are counted as unwritten and skipped. `rounding` is a relative error that is
/// no rounding of a result any more.
struct Comparison {
  Word data, reference, elements, key, choices, partial;
  double scale, largest, element_bound, rounding;
  int dtype, poison_counts, choice_slots, unused;
};

/// What one block of judge_compare found.
struct Partial {
  double squared_difference;
  double squared_reference;
  double sum_reference;
  double squared_reference_second_half;
  double fourth_difference;  // sum of (y - r)⁴
  double along_reference;    // sum of (y - r) · r: what the result is too large by, all in all
  double squared_along;      // sum of ((y - r) · r)²
  double worst;              // largest |y - r| / (|r| + scale)
  Word finite;               // elements compared numerically
  Word unwritten;            // still the judge's poison
  Word lost_nan;             // reference NaN, output not
  Word new_nonfinite;        // output NaN or infinite, reference representable
  Word beyond;               // elements whose error exceeds `element_bound`
  Word unsure;               // surely normal numbers that err by more than `rounding`
  Word lost;                 // those of them of which not even the first two bits are right
  // elements that may be further from the reference than the bound, because of a choice
  Word undetermined;
  // smallest index of an element that is wrong or beyond the bound, or ~0
  Word first_bad;
};

}  // namespace judge

#endif  // ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_
