// Stands for the CUDA runtime that nvcc links into programs: where there is no GPU every call
// fails.
#include <cstddef>

namespace {
constexpr int kInsufficientDriver = 35;
volatile int calls = 0;  // so that no function is the same as another
}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's names.
extern "C" {
void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) { calls = 1; }
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*) {
  calls = 2;
}
int cudaMalloc(void**, size_t) {
  calls = 3;
  return kInsufficientDriver;
}
int cudaMemcpy(void*, const void*, size_t, int) {
  calls = 4;
  return kInsufficientDriver;
}
int cudaFree(void*) {
  calls = 5;
  return kInsufficientDriver;
}
struct Extent {
  unsigned x, y, z;
};
int cudaLaunchKernel(const void*, Extent, Extent, void**, size_t, void*) {
  calls = 6;
  return kInsufficientDriver;
}
int cudaDeviceSynchronize() {
  calls = 7;
  return kInsufficientDriver;
}
int cudaIpcGetMemHandle(void*, void*) {
  calls = 8;
  return kInsufficientDriver;
}
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
