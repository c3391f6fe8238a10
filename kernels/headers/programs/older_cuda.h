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
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
#define __any(predicate) __any_sync(__activemask(), predicate)
#define __all(predicate) __all_sync(__activemask(), predicate)
#define __ballot(predicate) __ballot_sync(__activemask(), predicate)
#endif

// Members of cudaDeviceProp that were removed. They describe the device to its user, so that
// another member of the same type stands for each.
#define clockRate multiProcessorCount
#define memoryClockRate memoryBusWidth
#define deviceOverlap asyncEngineCount
#define kernelExecTimeoutEnabled integrated
#define computeMode integrated
