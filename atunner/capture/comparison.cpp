#include "atunner/capture/comparison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "atunner/capture/signature.h"

namespace atunner::capture {
namespace {

double ValueOf(float value) { return static_cast<double>(value); }
double ValueOf(double value) { return value; }

struct BFloat16 {
  uint16_t bits;
};
double ValueOf(BFloat16 value) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16));
}

struct Half {
  uint16_t bits;
};
double ValueOf(Half value) {
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  const double sign = value.bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

template <class T>
T At(std::string_view bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

/// Numbers that a kernel wrote, as far as it changed them.
struct Written {
  double largest = 0;     ///< finite magnitude of the original's
  double difference = 0;  ///< infinite if only one of two is finite
  size_t numbers = 0, ordinary = 0;
};

double DifferenceOf(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b ? 0 : INFINITY;
  return std::abs(a - b);
}

bool IsOrdinary(double value) {
  return value == 0 || (std::abs(value) > 1e-18 && std::abs(value) < 1e18);
}

template <class T>
Written Examine(const Contents& contents) {
  Written written;
  for (size_t i = 0; (i + 1) * sizeof(T) <= contents.original.size(); ++i) {
    const size_t at = i * sizeof(T);
    const bool same = std::memcmp(&contents.original[at], &contents.tuned[at], sizeof(T)) == 0;
    if (same && std::memcmp(&contents.original[at], &contents.before[at], sizeof(T)) == 0) continue;
    const double a = ValueOf(At<T>(contents.original, i)), b = ValueOf(At<T>(contents.tuned, i));
    if (std::isfinite(a)) written.largest = std::max(written.largest, std::abs(a));
    if (!same) written.difference = std::max(written.difference, DifferenceOf(a, b));
    ++written.numbers;
    written.ordinary += IsOrdinary(a) && IsOrdinary(b) ? 1 : 0;
  }
  return written;
}

template <class T>
Comparison As(const Contents& contents, double tolerance, bool must_be_ordinary) {
  const Written written = Examine<T>(contents);
  Comparison result{.equal = false};
  if (written.difference > 0)
    result.error = written.largest > 0 ? written.difference / written.largest : INFINITY;
  result.accepted = result.error <= tolerance;
  constexpr size_t kNearlyAll = 20;  // all but one of twenty
  if (must_be_ordinary && (written.numbers - written.ordinary) * kNearlyAll > written.numbers)
    result.accepted = false;
  // A rest of bytes behind the last number has to be equal.
  const size_t whole = contents.original.size() / sizeof(T) * sizeof(T);
  if (contents.original.substr(whole) != contents.tuned.substr(whole)) result.accepted = false;
  return result;
}

Comparison OfUnknownType(const Contents& contents, double tolerance) {
  const Comparison floats = As<float>(contents, tolerance, true);
  if (floats.accepted) return floats;
  const Comparison doubles = As<double>(contents, tolerance, true);
  return doubles.accepted ? doubles : floats;
}

Comparison OfType(const Contents& contents, Element element, double tolerance) {
  constexpr double kTwoHalfUnits = 0x1p-10, kTwoBFloat16Units = 0x1p-7;
  switch (element) {
    case Element::kHalf:
      return As<Half>(contents, std::max(tolerance, kTwoHalfUnits), false);
    case Element::kBFloat16:
      return As<BFloat16>(contents, std::max(tolerance, kTwoBFloat16Units), false);
    case Element::kFloat:
      return As<float>(contents, tolerance, false);
    case Element::kDouble:
      return As<double>(contents, tolerance, false);
    case Element::kExact:
      return {.equal = false, .accepted = false, .error = INFINITY};
    case Element::kUnknown:
      break;
  }
  return OfUnknownType(contents, tolerance);
}

Element ElementOf(std::optional<DType> type) {
  if (!type) return Element::kUnknown;
  switch (*type) {
    case DType::kFloat16:
      return Element::kHalf;
    case DType::kBFloat16:
      return Element::kBFloat16;
    case DType::kFloat32:
      return Element::kFloat;
    case DType::kFloat64:
      return Element::kDouble;
    default:
      return Element::kExact;
  }
}

}  // namespace

std::vector<Element> PointedTypes(std::string_view readable) {
  std::vector<Element> types;
  for (const std::string& parameter : ParseSignature(readable).parameters)
    types.push_back(ElementOf(PointeeOf(parameter)));
  return types;
}

Comparison Compare(const Contents& contents, Element element, double tolerance) {
  const auto [first, second] = std::ranges::mismatch(contents.original, contents.tuned);
  if (first == contents.original.end()) return {};
  Comparison result = OfType(contents, element, tolerance);
  result.at = static_cast<uint64_t>(first - contents.original.begin());
  return result;
}

}  // namespace atunner::capture
