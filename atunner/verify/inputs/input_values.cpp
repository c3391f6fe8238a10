#include "atunner/verify/inputs/input_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "atunner/base/random.h"
#include "atunner/model/kernel/exact_fill.h"
#include "atunner/verify/code/element_bits.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/inputs/host_fill.h"

namespace atunner {
namespace {

constexpr double kSpike = 24.0;  // large against unit noise, and 24² still fits float16

struct Spike {
  uint64_t at = ~uint64_t{0};
  double value = 0;
};

/// Needles, NaNs and one-element changes all set one element, whose index the seed chooses.
Spike SpikeOf(const InputInstance& instance, uint64_t elements, size_t position) {
  Random random(Mix64(instance.seed ^ 0x5b1ce) + position);
  const uint64_t at = random.Below(elements);
  if (instance.family == InputFamily::kNan)
    return {position == (instance.mutated ? 1 : 0) ? at : ~uint64_t{0}, std::nan("")};
  if (instance.mutated) return {at, -3.0 * kSpike / 8.0};
  if (instance.family == InputFamily::kNeedle) return {at, kSpike};
  return {};
}

/// True if the family says what integers of an unstated range are.
bool SpeaksOfIntegers(InputFamily family) {
  using enum InputFamily;
  switch (family) {
    case kTies:
    case kDecades:
    case kZeros:
    case kMonotone:
    case kFalling:
    case kWide:
    case kEdges:
      return true;
    default:
      return false;
  }
}

/// A fill's kind for the kernel, and its range.
struct Drawing {
  judge::FillKind kind = judge::kFillFamily;
  double low = 0;
  double high = 0;
};

Drawing Uniform(double low, double high) { return {judge::kFillUniform, low, high}; }

constexpr double kMostOrdinary = 9;  // exclusive
double LeastOrdinary(DType dtype) { return KindOf(dtype) == DTypeKind::kSigned ? -8 : 0; }

/// Integers without a stated range.
Drawing OpenIntegers(DType dtype, InputFamily family) {
  if (dtype == DType::kBool && family != InputFamily::kZeros) return Uniform(0, 2);
  if (SpeaksOfIntegers(family)) return {judge::kFillInteger};
  // The range is none that is promised: mined values need not keep to it.
  if (family == InputFamily::kMined && dtype != DType::kBool) return {judge::kFillInteger};
  return Uniform(LeastOrdinary(dtype), kMostOrdinary);
}

/// A step that reaches every index: coprime to the number of elements, and so small that its
/// product with an index fits 64 bits.
uint64_t PermutingStep(uint64_t elements, uint64_t seed) {
  Random random(seed);
  for (;;) {
    const uint64_t step = 3 + random.Below(uint64_t{1} << 20);
    if (std::gcd(step, elements) == 1) return step;
  }
}

Drawing Permuted(uint64_t elements, uint64_t seed) {
  Random random(Mix64(seed));
  return {judge::kFillPermuted, static_cast<double>(PermutingStep(elements, seed)),
          static_cast<double>(random.Below(elements))};
}

Drawing DrawingOf(const ArgSpec& arg, uint64_t elements, uint64_t seed, InputFamily family) {
  const bool varied = family == InputFamily::kVariedFill && CanVary(arg);
  const Fill fill = varied ? VariedFill(arg) : arg.fill;
  switch (fill.kind) {
    case Fill::Kind::kZeros:
      return {judge::kFillConstant, 0, 0};
    case Fill::Kind::kConstant:
      return {judge::kFillConstant, fill.low, 0};
    case Fill::Kind::kIota:
      return varied ? Permuted(elements, seed) : Drawing{judge::kFillIota};
    case Fill::Kind::kUniform:
      return Uniform(fill.low, fill.high);
    default:
      return IsFloat(arg.dtype) ? Drawing{} : OpenIntegers(arg.dtype, family);
  }
}

}  // namespace

bool CanVary(const ArgSpec& arg) {
  if (arg.role == Role::kOutput || arg.role == Role::kScalar) return false;
  if (IsExact(arg.fill)) return false;
  return StatesValues(arg.fill.kind) || (arg.fill.kind == Fill::Kind::kBlob && IsFloat(arg.dtype));
}

Fill OrdinaryIntegers(const ArgSpec& arg) {
  Fill fill;
  fill.kind = Fill::Kind::kUniform;
  fill.low = LeastOrdinary(arg.dtype);
  fill.high = arg.dtype == DType::kBool ? 2 : kMostOrdinary;
  return fill;
}

Fill VariedFill(const ArgSpec& arg) {
  if (arg.fill.kind == Fill::Kind::kIota) return arg.fill;
  const double value = arg.fill.kind == Fill::Kind::kZeros ? 0 : arg.fill.low;
  const double half = std::fabs(value) / 2;
  Fill fill;
  fill.kind = Fill::Kind::kUniform;
  if (IsFloat(arg.dtype)) {
    const double reach = half > 0 ? half : 2;
    fill.low = value - reach;
    fill.high = value + reach;
    return fill;
  }
  const double reach = std::max(2.0, std::floor(half));
  const bool no_sign = value > 0 || KindOf(arg.dtype) != DTypeKind::kSigned;
  fill.low = no_sign ? std::max(0.0, value - reach) : value - reach;
  fill.high = arg.dtype == DType::kBool ? 2 : value + reach + 1;
  return fill;
}

judge::Fill FillOf(const ArgSpec& arg, uint64_t elements, size_t position,
                   const InputInstance& instance) {
  const uint64_t seed = Mix64(instance.seed * 1315423911u + position);
  const Drawing drawing = DrawingOf(arg, elements, seed, instance.family);
  Spike spike = SpikeOf(instance, elements, position);
  // A stated fill is a promise to the kernel, e.g. of a range of indices: no spike breaks it.
  if (drawing.kind != judge::kFillFamily) spike = {};
  return {.data = 0,
          .elements = elements,
          .seed = seed,
          .spike_at = spike.at,
          .mined = 0,
          .low = drawing.low,
          .high = drawing.high,
          .last = drawing.kind == judge::kFillUniform ? LargestBelow(arg.dtype, drawing.high) : 0,
          .spike_value = spike.value,
          .dtype = static_cast<int32_t>(arg.dtype),
          .kind = drawing.kind,
          .family = static_cast<int32_t>(instance.family),
          .variant = static_cast<int32_t>(position),
          .mined_count = 0,
          .unused = 0};
}

std::vector<uint64_t> MinedBitsFor(const MinedValues& values, DType dtype,
                                   const judge::Fill& fill) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  switch (fill.kind) {
    case judge::kFillFamily:
    case judge::kFillInteger:
      return MinedBits(values, dtype, -kAny, kAny);
    case judge::kFillUniform:
      return MinedBits(values, dtype, fill.low, fill.last);
    default:
      return {};
  }
}

bool AnyMined(const MinedValues& values, const KernelSpec& spec, const Dims& dims) {
  const InputInstance mined{InputFamily::kMined, 1, false, {}};
  return std::ranges::any_of(spec.args, [&](const ArgSpec& arg) {
    if (arg.role != Role::kInput && arg.role != Role::kInOut) return false;
    const auto fill = BindFill(arg, spec, dims, 1);
    if (!fill || FillsFromHost(*fill)) return false;
    ArgSpec bound = arg;
    bound.fill = *fill;
    return !MinedBitsFor(values, arg.dtype, FillOf(bound, 1, 0, mined)).empty();
  });
}

}  // namespace atunner
