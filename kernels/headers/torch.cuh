// PyTorch's headers, as far as kernels of its extensions use them: the types of 16 bits, and a few
// macros.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
namespace c10 {
typedef __half Half;
typedef __nv_bfloat16 BFloat16;
}  // namespace c10
namespace at {
using c10::BFloat16, c10::Half;
template <class _T>
using opmath_type = std::conditional_t<sizeof(_T) == 2 && !std::is_integral<_T>::value, float, _T>;
template <class _T, bool>
using acc_type = opmath_type<_T>;
}  // namespace at
#define C10_DEVICE __device__
#define C10_HOST_DEVICE __host__ __device__
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define CUDA_KERNEL_ASSERT(condition) \
  if (!(condition)) __trap()
#define CUDA_KERNEL_LOOP_TYPE(i, n, Index)                              \
  for (Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (Index)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
