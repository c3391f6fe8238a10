// Arrays of structures whose members are of several types: rows of quantised weights, particles
// with flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

struct Record {
  int64_t bytes = 0;
  /// Of the bytes of an array: an expression of the index `i`, with which every float is finite
  std::string fill;
};

/// Nothing for what is no structure of numbers, or for one whose layout has rules of its own.
std::optional<Record> RecordOf(const CudaSyntax& syntax, const std::string& type);

/// What `const void* name` is cast to, in the kernel or else anywhere: "block_q4_0", "float"; empty
/// where nothing says so.
std::string CastOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
                   const std::string& name);

}  // namespace atunner
