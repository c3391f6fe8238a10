// The compiler's result for a SourceUnit and one architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/digest.h"

namespace atunner {

/// Resources of one kernel, from the cubin.
struct KernelResources {
  std::string entry;       ///< as the LaunchPlan names it
  std::string mangled;     ///< symbol in the module
  uint32_t registers = 0;  ///< per thread
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;  ///< stack frame per thread
  uint32_t spill_store_bytes = 0;
  uint32_t spill_load_bytes = 0;
  uint32_t constant_bytes = 0;
  uint32_t max_threads = 1024;  ///< per block, from registers and launch bounds
};

struct CompiledModule {
  Digest source;  ///< hash of source, options, architecture and compiler version: the cache key
  /// Hash of the cubin, or of the PTX without a cubin: equal for candidates that compile to equal
  /// code.
  Digest binary;
  std::string arch;      ///< "sm_90a"
  std::string compiler;  ///< "NVRTC 13.0"
  std::string ptx;       ///< empty when the candidate came as a cubin
  /// ELF bytes; empty when the architecture has none (V100 is modelled from compute_75 PTX)
  std::string cubin;
  std::vector<KernelResources> kernels;
  std::string log;  ///< warnings
  double compile_seconds = 0;
  bool from_cache = false;

  const KernelResources* Find(std::string_view entry) const {
    for (const KernelResources& kernel : kernels) {
      if (kernel.entry == entry || kernel.mangled == entry) return &kernel;
    }
    return nullptr;
  }
};

}  // namespace atunner
