#include "atunner/capture/comparison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

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

/// "float4" is four floats.
std::string_view WithoutCount(std::string_view type) {
  constexpr std::string_view kCounted[] = {"char", "short", "int", "long", "float", "double"};
  const std::string_view scalar = type.substr(0, type.empty() ? 0 : type.size() - 1);
  const std::string_view plain = scalar.starts_with('u') ? scalar.substr(1) : scalar;
  const bool counted = !type.empty() && type.back() >= '1' && type.back() <= '4' &&
                       std::ranges::find(kCounted, plain) != std::end(kCounted);
  return counted ? plain : type;
}

Element TypeOf(std::string_view type) {
  constexpr std::pair<std::string_view, Element> kTypes[] = {
      {"float", Element::kFloat},
      {"double", Element::kDouble},
      {"__half", Element::kHalf},
      {"__half2", Element::kHalf},
      {"__nv_bfloat16", Element::kBFloat16},
      {"__nv_bfloat162", Element::kBFloat16},
      {"bool", Element::kExact},
      {"char", Element::kExact},
      {"signed char", Element::kExact},
      {"unsigned char", Element::kExact},
      {"short", Element::kExact},
      {"unsigned short", Element::kExact},
      {"int", Element::kExact},
      {"unsigned int", Element::kExact},
      {"long", Element::kExact},
      {"unsigned long", Element::kExact},
      {"long long", Element::kExact},
      {"unsigned long long", Element::kExact},
  };
  type = WithoutCount(type);
  for (const auto& [name, element] : kTypes) {
    if (name == type) return element;
  }
  return Element::kUnknown;
}

/// The type that "float const*" points to.
Element PointedType(std::string_view parameter) {
  const size_t star = parameter.rfind('*');
  if (star == std::string_view::npos || star + 1 != parameter.size()) return Element::kUnknown;
  std::string_view type = parameter.substr(0, star);
  for (const std::string_view word : {" const", " volatile", " const"}) {
    if (type.ends_with(word)) type.remove_suffix(word.size());
  }
  return TypeOf(type);
}

/// Position of the bracket that opens the list which ends with the last one.
std::optional<size_t> BeginOfList(std::string_view readable) {
  int depth = 0;
  for (size_t i = readable.size(); i-- > 0;) {
    if (readable[i] == ')') ++depth;
    if (readable[i] == '(' && --depth == 0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Element> PointedTypes(std::string_view readable) {
  std::vector<Element> types;
  if (!readable.ends_with(')')) return types;
  const auto begin = BeginOfList(readable);
  if (!begin) return types;
  const std::string_view list = readable.substr(*begin + 1, readable.size() - *begin - 2);
  int depth = 0;
  for (size_t i = 0, from = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '(' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '>' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    types.push_back(PointedType(list.substr(from, i - from)));
    from = std::min(i + 2, list.size());  // ", " separates them
  }
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
