#include "atunner/model/value/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace atunner {
namespace {

struct Row {
  std::string_view name;
  std::string_view cuda;
  size_t bytes;
  DTypeKind kind;
  int digits;
};

constexpr Row kRows[] = {
#define ATUNNER_DTYPE(id, name, cuda, bytes, kind, digits) \
  {name, cuda, bytes, DTypeKind::kind, digits},
#include "atunner/model/value/dtype.def"
#undef ATUNNER_DTYPE
};

constexpr std::pair<std::string_view, DType> kAliases[] = {
    {"double", DType::kFloat64},
    {"fp64", DType::kFloat64},
    {"f64", DType::kFloat64},
    {"float", DType::kFloat32},
    {"fp32", DType::kFloat32},
    {"f32", DType::kFloat32},
    {"half", DType::kFloat16},
    {"__half", DType::kFloat16},
    {"fp16", DType::kFloat16},
    {"f16", DType::kFloat16},
    {"bf16", DType::kBFloat16},
    {"__nv_bfloat16", DType::kBFloat16},
    {"nv_bfloat16", DType::kBFloat16},
    {"char", DType::kInt8},
    {"int8_t", DType::kInt8},
    {"i8", DType::kInt8},
    {"s8", DType::kInt8},
    {"short", DType::kInt16},
    {"int16_t", DType::kInt16},
    {"i16", DType::kInt16},
    {"s16", DType::kInt16},
    {"int", DType::kInt32},
    {"int32_t", DType::kInt32},
    {"i32", DType::kInt32},
    {"s32", DType::kInt32},
    {"long long", DType::kInt64},
    {"long", DType::kInt64},
    {"int64_t", DType::kInt64},
    {"i64", DType::kInt64},
    {"s64", DType::kInt64},
    {"unsigned char", DType::kUInt8},
    {"uint8_t", DType::kUInt8},
    {"u8", DType::kUInt8},
    {"uchar", DType::kUInt8},
    {"unsigned short", DType::kUInt16},
    {"uint16_t", DType::kUInt16},
    {"u16", DType::kUInt16},
    {"unsigned", DType::kUInt32},
    {"unsigned int", DType::kUInt32},
    {"uint", DType::kUInt32},
    {"uint32_t", DType::kUInt32},
    {"u32", DType::kUInt32},
    {"unsigned long long", DType::kUInt64},
    {"unsigned long", DType::kUInt64},
    {"size_t", DType::kUInt64},
    {"uint64_t", DType::kUInt64},
    {"u64", DType::kUInt64},
    {"float8_e4m3fn", DType::kFloat8E4M3},
    {"fp8_e4m3", DType::kFloat8E4M3},
    {"e4m3", DType::kFloat8E4M3},
    {"fp8_e5m2", DType::kFloat8E5M2},
    {"e5m2", DType::kFloat8E5M2},
};

const Row& RowOf(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

template <class T>
double LoadAs(const void* data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

template <class T>
void StoreAs(void* data, size_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &value, sizeof(T));
}

/// float64 -> 16-bit float through float32 would round twice; rounding to odd first makes the
/// second step exact.
float RoundToOddFloat(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest))
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool rounded_away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  if (rounded_away) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace

size_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }
std::string_view Name(DType dtype) { return RowOf(dtype).name; }
std::string_view CudaName(DType dtype) { return RowOf(dtype).cuda; }
DTypeKind KindOf(DType dtype) { return RowOf(dtype).kind; }
double UnitRoundoff(DType dtype) {
  return IsFloat(dtype) ? std::ldexp(1.0, -RowOf(dtype).digits) : 0.0;
}

double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504.0;
    case DType::kBFloat16:
      return 0x1.fep127;
    case DType::kFloat32:
      return std::numeric_limits<float>::max();
    case DType::kFloat8E4M3:
      return 448.0;
    case DType::kFloat8E5M2:
      return 57344.0;
    default:
      return std::numeric_limits<double>::max();
  }
}

std::optional<DType> ParseDType(std::string_view text) {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].name == text) return static_cast<DType>(i);
  }
  for (const auto& [alias, dtype] : kAliases) {
    if (alias == text) return dtype;
  }
  return std::nullopt;
}

std::string DTypeNames() {
  std::string names;
  for (const Row& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t fraction = bits & 1023u;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // the canonical NaN, as the hardware converts; never all ones
  if (magnitude > 0x7f800000u) return 0x7fff;
  // rounds to 65536 or above
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  // subnormal or zero result
  if (magnitude < 0x38800000u) {
    const float scaled = std::fabs(value) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

namespace {

/// An 8-bit float's layout: sign, exponent, `fraction` bits of significand.
struct Layout8 {
  int fraction;
  int bias;
  uint8_t largest;  ///< bits of the largest finite value
  uint8_t beyond;   ///< bits of what is larger: infinity, or NaN where there is none
  uint8_t nan;
};
constexpr Layout8 kE4M3{3, 7, 0x7e, 0x7f, 0x7f};
constexpr Layout8 kE5M2{2, 15, 0x7b, 0x7c, 0x7f};

double Magnitude8(uint8_t bits, const Layout8& layout) {
  const int exponent = bits >> layout.fraction;
  const int fraction = bits & ((1 << layout.fraction) - 1);
  const int significand = exponent == 0 ? fraction : fraction | (1 << layout.fraction);
  return std::ldexp(significand, std::max(exponent, 1) - layout.bias - layout.fraction);
}

double Float8ToDouble(uint8_t bits, const Layout8& layout) {
  const auto magnitude = static_cast<uint8_t>(bits & 0x7f);
  double value = NAN;
  if (magnitude <= layout.largest)
    value = Magnitude8(magnitude, layout);
  else if (magnitude == layout.beyond && layout.beyond != layout.nan)
    value = INFINITY;
  return bits & 0x80 ? -value : value;
}

uint8_t DoubleToFloat8(double value, const Layout8& layout) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | layout.nan);
  if (std::isinf(value)) return static_cast<uint8_t>(sign | layout.beyond);
  int exponent = 0;
  std::frexp(value, &exponent);  // value = f · 2^exponent, f in [1/2, 1)
  const int unit = std::max(exponent - 1, 1 - layout.bias) - layout.fraction;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(std::fabs(value), -unit)), unit);
  if (rounded > Magnitude8(layout.largest, layout))
    return static_cast<uint8_t>(sign | layout.beyond);
  uint8_t bits = 0;  // codes are ordered as values are
  for (int step = 64; step > 0; step /= 2) {
    const auto next = static_cast<uint8_t>(bits + step);
    if (next <= layout.largest && Magnitude8(next, layout) <= rounded) bits = next;
  }
  return static_cast<uint8_t>(sign | bits);
}

}  // namespace

double LoadElement(DType dtype, const void* data, size_t index) {
  switch (dtype) {
    case DType::kFloat64:
      return LoadAs<double>(data, index);
    case DType::kFloat32:
      return LoadAs<float>(data, index);
    case DType::kFloat16:
      return HalfToFloat(static_cast<uint16_t>(LoadAs<uint16_t>(data, index)));
    case DType::kBFloat16:
      return BFloat16ToFloat(static_cast<uint16_t>(LoadAs<uint16_t>(data, index)));
    case DType::kInt8:
      return LoadAs<int8_t>(data, index);
    case DType::kInt16:
      return LoadAs<int16_t>(data, index);
    case DType::kInt32:
      return LoadAs<int32_t>(data, index);
    case DType::kInt64:
      return LoadAs<int64_t>(data, index);
    case DType::kUInt8:
    case DType::kBool:
      return LoadAs<uint8_t>(data, index);
    case DType::kUInt16:
      return LoadAs<uint16_t>(data, index);
    case DType::kUInt32:
      return LoadAs<uint32_t>(data, index);
    case DType::kUInt64:
      return LoadAs<uint64_t>(data, index);
    case DType::kFloat8E4M3:
      return Float8ToDouble(static_cast<uint8_t>(LoadAs<uint8_t>(data, index)), kE4M3);
    case DType::kFloat8E5M2:
      return Float8ToDouble(static_cast<uint8_t>(LoadAs<uint8_t>(data, index)), kE5M2);
  }
  return 0;
}

void StoreElement(DType dtype, void* data, size_t index, double value) {
  switch (dtype) {
    case DType::kFloat64:
      return StoreAs(data, index, value);
    case DType::kFloat32:
      return StoreAs(data, index, static_cast<float>(value));
    case DType::kFloat16:
      return StoreAs(data, index, FloatToHalf(RoundToOddFloat(value)));
    case DType::kBFloat16:
      return StoreAs(data, index, FloatToBFloat16(RoundToOddFloat(value)));
    case DType::kInt8:
      return StoreAs(data, index, static_cast<int8_t>(value));
    case DType::kInt16:
      return StoreAs(data, index, static_cast<int16_t>(value));
    case DType::kInt32:
      return StoreAs(data, index, static_cast<int32_t>(value));
    case DType::kInt64:
      return StoreAs(data, index, static_cast<int64_t>(value));
    case DType::kUInt8:
      return StoreAs(data, index, static_cast<uint8_t>(value));
    case DType::kBool:
      return StoreAs(data, index, static_cast<uint8_t>(value != 0));
    case DType::kUInt16:
      return StoreAs(data, index, static_cast<uint16_t>(value));
    case DType::kUInt32:
      return StoreAs(data, index, static_cast<uint32_t>(value));
    case DType::kUInt64:
      return StoreAs(data, index, static_cast<uint64_t>(value));
    case DType::kFloat8E4M3:
      return StoreAs(data, index, DoubleToFloat8(value, kE4M3));
    case DType::kFloat8E5M2:
      return StoreAs(data, index, DoubleToFloat8(value, kE5M2));
  }
}

}  // namespace atunner
