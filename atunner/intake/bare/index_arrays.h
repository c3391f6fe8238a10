// Which integer arrays of a kernel hold places in its other arrays: row offsets, column indices,
// lists of vertices.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// An array that is addressed by values of another one: with `(v - minus) * scale + plus`, beside
/// what the index adds otherwise.
struct AddressedArray {
  std::string array;
  std::vector<std::string> scale;  ///< factors, numbers and names; {"?"} = not understood
  /// Factors of what is added beside v: v is a column of such rows
  std::vector<std::string> row;
  int64_t plus = 0;
  int64_t minus = 0;
};

struct IndexArray {
  bool offsets = false;  ///< elements i and i + 1 enclose what belongs to i
  std::vector<AddressedArray> into;
};

/// Of the parameters `integers`, those whose values address parameters or, as offsets, bound loops.
/// Values are followed through local variables and arrays, not through functions.
std::map<std::string, IndexArray> FindIndexArrays(const CudaSyntax& syntax,
                                                  const KernelDefinition& kernel,
                                                  const std::vector<std::string>& integers);

}  // namespace atunner
