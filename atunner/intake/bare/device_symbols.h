// Device variables that the host fills: __constant__ float c[9] with cudaMemcpyToSymbol(c, h,
// bytes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

struct DeviceVariable {
  std::string name;
  std::string symbol;               ///< mangled, as in the module
  std::string type;                 ///< without qualifiers
  std::vector<TokenRange> extents;  ///< none for a scalar
  bool constant = false;            ///< __constant__
  bool initialised = false;
};

/// The device variables that the kernel may use: those named outside of host functions and of other
/// kernels.
std::vector<DeviceVariable> VariablesOf(const CudaSyntax& syntax, const KernelDefinition& kernel);

}  // namespace atunner
