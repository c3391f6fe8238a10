// The arguments and results of the judge's larger kernels. Both compilers read this file, so that
// the two sides cannot differ. Addresses are integers, and wide members come first, so that there
// is no padding.
#ifndef ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_
#define ATUNNER_KERNELS_JUDGE_JUDGE_ARGUMENTS_H_

namespace judge {

typedef unsigned long long Word;

/// How judge_fill draws an element: from a float family, `low`, the index, from [low, high) as the
/// family has it and at most `last`, from an integer family over the whole type, or the indices
/// permuted: (i · low + high) mod elements.
enum FillKind { kFillFamily, kFillConstant, kFillIota, kFillUniform, kFillInteger, kFillPermuted };

/// Arguments of judge_fill. Some elements are values from `mined`, `mined_count` elements' bits in
/// 64-bit words. Element `spike_at` (if < elements) becomes `spike_value` afterwards: needles, NaN
/// tests, one-element changes.
struct Fill {
  Word data, elements, seed, spike_at, mined;
  double low, high, last, spike_value;
  int dtype, kind, family, variant, mined_count, unused;
};

/// Arguments of judge_guards.
struct GuardZones {
  Word at[16];
};

/// A stream of random numbers that fill memory before a launch. The flipped one differs in every
/// element.
struct Poison {
  Word key;
  int flipped, unused;
};

/// Arguments of judge_same: an output of two runs on equal inputs. With `poisoned`, each was filled
/// with its poison before the run.
struct TwoRuns {
  Word first, second, elements;
  Poison first_poison, second_poison;
  int dtype, poisoned;
};

/// Arguments of judge_compare: `data` with a masked float64 reference (key 0 = not masked).
/// `largest` is the type's largest finite number: a result whose reference is beyond it must be
/// infinite or that number, unless an error within `element_bound` decides. With `poisoned`,
/// elements that hold the poison are counted as unwritten and skipped. `rounding` is a relative
/// error that is too large for a rounding of the result. `integers` is the type's code where the
/// reference holds 64-bit integers, else 0. With `nan_for_infinite` a NaN meets an infinity.
struct Comparison {
  Word data, reference, elements, key, choices, partial;
  Word first, total;  // number of the first element of `data` in the output of `total` elements
  Poison poison;
  double scale, largest, element_bound, rounding;
  int dtype, poisoned, choice_slots, integers;
  int nan_for_infinite, unused;
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
  Word unwritten;            // still the poison, and not by chance a result
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
