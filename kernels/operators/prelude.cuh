// Types of the baseline kernels. The host defines T (inputs), ACC (arithmetic) and OUT (outputs):
// with ACC = float and OUT = T a kernel is the plain algorithm in the task's precision, with ACC =
// OUT = double it is the reference.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ double widen(double v) { return v; }
__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ float widen(__half v) { return __half2float(v); }
__device__ __forceinline__ float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
template <class To>
struct Narrow {
  static __device__ __forceinline__ To of(ACC v) { return To((float)v); }
};
template <>
struct Narrow<double> {
  static __device__ __forceinline__ double of(ACC v) { return v; }
};
template <>
struct Narrow<float> {
  static __device__ __forceinline__ float of(ACC v) { return (float)v; }
};

#define IN(v) ((ACC)widen(v))
#define RESULT(v) (Narrow<OUT>::of(v))
#define THREADS 256

__device__ ACC block_sum(ACC v) {
  __shared__ ACC part[THREADS];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  v = part[0];
  __syncthreads();
  return v;
}

// A maximum must return NaN if an operand is NaN, or it would lose the input's NaN.
__device__ ACC block_max(ACC v) {
  __shared__ ACC part[THREADS];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      ACC a = part[threadIdx.x], b = part[threadIdx.x + half];
      part[threadIdx.x] = (a != a || a > b) ? a : b;
    }
    __syncthreads();
  }
  v = part[0];
  __syncthreads();
  return v;
}
