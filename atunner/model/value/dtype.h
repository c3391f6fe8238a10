// Element types. One table (`dtype.def`) lists them; whatever enumerates types expands it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atunner {

enum class DType : uint8_t {
#define ATUNNER_DTYPE(id, name, cuda, bytes, kind, digits) id,
#include "atunner/model/value/dtype.def"
#undef ATUNNER_DTYPE
};

enum class DTypeKind : uint8_t { kFloat, kSigned, kUnsigned, kBool };

/// Bytes of one element.
size_t SizeOf(DType dtype);
/// "float32", as PyTorch says it.
std::string_view Name(DType dtype);
/// "float", as CUDA C++ says it.
std::string_view CudaName(DType dtype);
DTypeKind KindOf(DType dtype);
inline bool IsFloat(DType dtype) { return KindOf(dtype) == DTypeKind::kFloat; }
/// Unit roundoff of a float type (half the distance from 1 to the next value), 0 for integers.
double UnitRoundoff(DType dtype);
/// Largest finite number of a float type; of float64 for integers.
double LargestFinite(DType dtype);
/// Accepts "float32", "f32", "float", "fp32", "half", "bf16", "int32_t", …
std::optional<DType> ParseDType(std::string_view text);
/// Every name ParseDType prefers, for messages: "float64, float32, …".
std::string DTypeNames();

/// Element `index` of a packed array, widened; exact for every type but (u)int64 above 2^53.
double LoadElement(DType dtype, const void* data, size_t index);
/// Rounds to nearest even (floats) or truncates (integers).
void StoreElement(DType dtype, void* data, size_t index, double value);

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

}  // namespace atunner
