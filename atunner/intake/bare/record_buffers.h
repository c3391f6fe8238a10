// Arrays of structures with members of several types, e.g. rows of quantised weights or particles
// with flags. They are passed as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

struct Record {
  int64_t bytes = 0;
  /// Fill of the array's bytes as an expression of the index `i` that makes every float finite
  std::string fill;
};

/// nullopt for a type that is not a structure of numbers or has an unusual layout.
std::optional<Record> RecordOf(const CudaSyntax& syntax, const std::string& type);

/// The type to which `const void* name` is cast, in the kernel or else anywhere, e.g. "block_q4_0"
/// or "float"; "" if there is no cast.
std::string CastOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
                   const std::string& name);

}  // namespace atunner
