// Variables of the device that a program's host side fills: __constant__ float c[9]; …
// cudaMemcpyToSymbol(c, h, bytes).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

struct DeviceVariable {
  std::string name;
  std::string symbol;               ///< as the module has it
  std::string type;                 ///< without qualifiers
  std::vector<TokenRange> extents;  ///< none for a scalar
  bool constant = false;            ///< __constant__
  bool initialised = false;
};

/// Those that the kernel may use: named outside of the host's functions and of other kernels.
std::vector<DeviceVariable> VariablesOf(const CudaSyntax& syntax, const KernelDefinition& kernel);

struct HostCopy {
  TokenRange source;
  size_t function = 0;  ///< of the call
  size_t token = 0;
};
/// The first cudaMemcpyToSymbol of that variable.
std::optional<HostCopy> CopyTo(const CudaSyntax& syntax, std::string_view variable);

}  // namespace atunner
