// The sort of work that a kernel does, told from its name.
#pragma once

#include <cstdint>
#include <string_view>

namespace atunner::trace {

enum class KernelClass : uint8_t {
  kMatmul,
  kConvolution,
  kAttention,
  kCommunication,
  kElementwise,
  kReduction,
  kNormalization,
  kSoftmax,
  kLayout,  ///< transposes, conversions between NCHW and NHWC, concatenations
  kIndexing,
  kOptimizer,
  kOther,
};

std::string_view Name(KernelClass value);

/// Names as cuBLAS, cuDNN, CUTLASS, PyTorch, Triton, NCCL and FlashAttention give them.
KernelClass ClassOfKernel(std::string_view name);

/// True if the class can use tensor cores at all.
bool CanUseTensorCores(KernelClass value);
/// True if the name is one of a kernel that uses them.
bool UsesTensorCores(std::string_view name);
/// True for kernels of NVIDIA's libraries, which have no source that could be tuned.
bool IsLibraryKernel(std::string_view name);
/// True if the kernel computes in float64.
bool IsDoublePrecision(std::string_view name);
/// True if the kernel converts between NCHW and NHWC.
bool IsFormatConversion(std::string_view name);

}  // namespace atunner::trace
