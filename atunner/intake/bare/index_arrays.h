// Finds the integer arrays of a kernel whose values are indices into its other arrays: row offsets
// and column indices of a sparse matrix, lists of vertices. They must be filled with valid indices,
// since random integers would address memory out of bounds.
//
// Example: y[row] += value[i] * x[column[i]] in a loop from offset[row] to offset[row + 1]. The
// values of column address x, and offset has neighbours i and i + 1 that bound a loop, so offset is
// filled with ascending offsets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// An array that is addressed by a value v of an index array, at (v - minus) * scale + plus or,
/// with other terms, at more.
struct AddressedArray {
  std::string array;
  std::vector<std::string> scale;  ///< factors, numbers and names; {"?"} = not understood
  /// Factors of another term, e.g. {"width"} of array[r * width + v]: v is a column index, below
  /// width
  std::vector<std::string> row;
  int64_t plus = 0;
  int64_t minus = 0;
};

struct IndexArray {
  bool offsets = false;  ///< elements i and i + 1 are the bounds of segment i
  std::vector<AddressedArray> into;
};

/// The index arrays among the parameters `integers`: their values address other parameters or, as
/// offsets, bound loops. Values are followed through local variables and arrays, not through
/// functions.
std::map<std::string, IndexArray> FindIndexArrays(const CudaSyntax& syntax,
                                                  const KernelDefinition& kernel,
                                                  const std::vector<std::string>& integers);

}  // namespace atunner
