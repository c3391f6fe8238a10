// CUDA C++ spellings of element types, vector types included.
#pragma once

#include <optional>
#include <string_view>

#include "atunner/model/value/dtype.h"

namespace atunner {

struct CType {
  DType dtype = DType::kFloat32;
  int lanes = 1;  ///< float4: 4

  int64_t bytes() const { return static_cast<int64_t>(SizeOf(dtype)) * lanes; }
};

/// "float", "unsigned long long", "uint8_t", "__half2", "float4", "std::size_t" … in any spacing;
/// qualifiers are the caller's. nullopt for what is no element type.
std::optional<CType> ParseCType(std::string_view text);

}  // namespace atunner
