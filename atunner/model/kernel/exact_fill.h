// Fills whose very values the program promises.
#pragma once

#include <string_view>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// True for fills of stated values: constants, zeros, and 0, 1, 2, ….
constexpr bool StatesValues(Fill::Kind kind) {
  return kind == Fill::Kind::kZeros || kind == Fill::Kind::kConstant || kind == Fill::Kind::kIota;
}

/// The promise stands in Fill::path, which such fills do not use otherwise. So the stored form and
/// the digest of all other tasks stay as they were.
inline constexpr std::string_view kExactFill = "exact";
/// The same of captured contents, in Fill::low: their path is needed.
inline constexpr double kExactBlob = 1;

/// True if kernels may rely on the values. Otherwise one instance of the inputs has others.
inline bool IsExact(const Fill& fill) {
  if (fill.kind == Fill::Kind::kBlob) return fill.low == kExactBlob;
  return StatesValues(fill.kind) && fill.path == kExactFill;
}

/// For fills that state values, and captured ones.
inline void PromiseExactly(Fill& fill) {
  if (fill.kind == Fill::Kind::kBlob)
    fill.low = kExactBlob;
  else
    fill.path = kExactFill;
}

}  // namespace atunner
