// Structures of a source whose members are numbers: for buffers of structures.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

struct Structure {
  struct Number {
    DType dtype = DType::kFloat32;
    int64_t offset = 0;  ///< bytes
  };
  std::vector<Number> numbers;  ///< of all members, arrays and nested structures included
  int64_t bytes = 0;
  int64_t alignment = 1;
};

/// The structure of that name, without namespaces; nullopt if the source does not define it or if
/// it has other members than numbers, vectors like float4, arrays of known extent and structures of
/// these. Templates, base classes, unions, bit fields and stated alignments are not supported.
std::optional<Structure> StructureOf(const CudaSyntax& syntax, std::string_view type);

/// A structure of floats of one type as a vector type, e.g. {float32, 3 lanes} of struct { float x,
/// y, z; }; nullopt for others.
std::optional<CType> FloatsOf(const CudaSyntax& syntax, std::string_view type);

}  // namespace atunner
