// Error checks and the choice of a device, under the names that CUDA's sample programs use.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "helper_string.h"

#ifndef MAX
#define MAX(a, b) (a > b ? a : b)
#endif
#ifndef MIN
#define MIN(a, b) (a < b ? a : b)
#endif
#define DEVICE_RESET cudaDeviceReset();

inline const char* _cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }
/// The same for statuses of libraries, e.g. cublasStatus_t.
template <class Status>
const char* _cudaGetErrorEnum(Status) {
  return "an error of a library";
}

template <class Status>
void check(Status result, const char* call, const char* file, int line) {
  if (!result) return;
  fprintf(stderr, "CUDA error at %s:%d code=%u(%s) \"%s\"\n", file, line,
          static_cast<unsigned>(result), _cudaGetErrorEnum(result), call);
  exit(EXIT_FAILURE);
}
#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)

inline void __getLastCudaError(const char* message, const char* file, int line) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s(%i) : %s : (%d) %s.\n", file, line, message, static_cast<int>(error),
          cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)
#define printLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)

inline int ftoi(float value) {
  return value >= 0 ? static_cast<int>(value + 0.5) : static_cast<int>(value - 0.5);
}

/// Lanes for float32 of a multiprocessor.
inline int _ConvertSMVer2Cores(int major, int minor) {
  if (major <= 3) return 192;
  if (major == 6 && minor == 0) return 64;
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return 128;
}
inline const char* _ConvertSMVer2ArchName(int major, int) {
  return major == 7 ? "Volta" : major == 8 ? "Ampere" : major == 9 ? "Hopper" : "GPU";
}

inline int gpuDeviceInit(int device) {
  int count = 0;
  checkCudaErrors(cudaGetDeviceCount(&count));
  if (count == 0) {
    fprintf(stderr, "no CUDA device\n");
    exit(EXIT_FAILURE);
  }
  if (device < 0) device = 0;
  if (device >= count) return -device;
  checkCudaErrors(cudaSetDevice(device));
  return device;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }

inline int findCudaDevice(int argc, const char** argv) {
  int device = gpuGetMaxGflopsDeviceId();
  if (checkCmdLineFlag(argc, argv, "device")) device = getCmdLineArgumentInt(argc, argv, "device");
  device = gpuDeviceInit(device);
  if (device < 0) {
    printf("there is no such device\n");
    exit(EXIT_FAILURE);
  }
  int major = 0, minor = 0;
  checkCudaErrors(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  checkCudaErrors(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  printf("GPU Device %d: \"%s\" with compute capability %d.%d\n\n", device,
         _ConvertSMVer2ArchName(major, minor), major, minor);
  return device;
}

inline int findIntegratedGPU() { return -1; }

inline bool checkCudaCapabilities(int major_needed, int minor_needed) {
  int device = 0, major = 0, minor = 0;
  checkCudaErrors(cudaGetDevice(&device));
  checkCudaErrors(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  checkCudaErrors(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major > major_needed || (major == major_needed && minor >= minor_needed);
}
