// The one instruction whose text names each accumulator, so that no template of CUDA C++ can hold it.
#pragma once

#include <cstdint>
#include <string>

namespace atunner {

struct WgmmaFunction {
  std::string name;
  int64_t columns = 64;         ///< of b and the sums: a multiple of 8 up to 256
  bool a_in_registers = false;  ///< else described, as b always is
  bool accumulates = true;      ///< else earlier sums are overwritten
  std::string b_transposed;     ///< constant expression: 0 = b is [columns][depth] in memory, 1 = [depth][columns]
};

/// A device function that starts d[64, columns] (+)= a[64, 16] · b[16, columns], for kernels/families/wgmma_common.cuh.
std::string WgmmaText(const WgmmaFunction& function);

}  // namespace atunner
