// What CUDA 13 no longer has, for programs that were written for earlier versions.
#pragma once
#include <cuda_runtime.h>

#include <cstring>

#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
#define cudaThreadGetLimit cudaDeviceGetLimit
#define cudaThreadSetLimit cudaDeviceSetLimit
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig

#ifdef __CUDACC__
// Warp intrinsics without a mask: of all threads that are there.
template <class T>
__device__ T __shfl(T value, int lane, int width = 32) {
  return __shfl_sync(__activemask(), value, lane, width);
}
template <class T>
__device__ T __shfl_up(T value, unsigned delta, int width = 32) {
  return __shfl_up_sync(__activemask(), value, delta, width);
}
template <class T>
__device__ T __shfl_down(T value, unsigned delta, int width = 32) {
  return __shfl_down_sync(__activemask(), value, delta, width);
}
template <class T>
__device__ T __shfl_xor(T value, int mask, int width = 32) {
  return __shfl_xor_sync(__activemask(), value, mask, width);
}
__device__ inline int __any(int predicate) { return __any_sync(__activemask(), predicate); }
__device__ inline int __all(int predicate) { return __all_sync(__activemask(), predicate); }
__device__ inline unsigned __ballot(int predicate) {
  return __ballot_sync(__activemask(), predicate);
}
#endif

// Members of cudaDeviceProp that were removed. They describe the device to its user, so that
// another member of the same type stands for each.
#define clockRate multiProcessorCount
#define memoryClockRate memoryBusWidth
#define deviceOverlap asyncEngineCount
#define kernelExecTimeoutEnabled integrated
#define computeMode integrated
