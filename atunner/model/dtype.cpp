#include "atunner/model/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
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
#define ATUNNER_DTYPE(id, name, cuda, bytes, kind, digits) {name, cuda, bytes, DTypeKind::kind, digits},
#include "atunner/model/dtype.def"
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
    {"short", DType::kInt16},
    {"int16_t", DType::kInt16},
    {"int", DType::kInt32},
    {"int32_t", DType::kInt32},
    {"i32", DType::kInt32},
    {"long long", DType::kInt64},
    {"long", DType::kInt64},
    {"int64_t", DType::kInt64},
    {"i64", DType::kInt64},
    {"unsigned char", DType::kUInt8},
    {"uint8_t", DType::kUInt8},
    {"u8", DType::kUInt8},
    {"uchar", DType::kUInt8},
    {"unsigned short", DType::kUInt16},
    {"uint16_t", DType::kUInt16},
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

/// float64 -> 16-bit float through float32 would round twice; rounding to odd first makes the second step exact.
float RoundToOddFloat(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest)) return nearest;
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
double UnitRoundoff(DType dtype) { return IsFloat(dtype) ? std::ldexp(1.0, -RowOf(dtype).digits) : 0.0; }

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
  if (magnitude > 0x7f800000u) return 0x7fff;  // the canonical NaN, as the hardware converts; never all ones
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or above
  if (magnitude < 0x38800000u) {                                               // subnormal or zero result
    const float scaled = std::fabs(value) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

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
  }
}

}  // namespace atunner
