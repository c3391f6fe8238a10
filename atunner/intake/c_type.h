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

/// Parses "float", "unsigned long long", "uint8_t", "__half2", "float4", "std::size_t", … in any
/// spacing, without const or volatile. nullopt if the text is not an element type.
std::optional<CType> ParseCType(std::string_view text);

}  // namespace atunner
