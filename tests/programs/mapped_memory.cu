// Memory that is reserved, created and mapped by CUDA's driver interface.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                             \
  do {                                          \
    if (const CUresult code = call) {           \
      const char* text = nullptr;               \
      cuGetErrorString(code, &text);            \
      fprintf(stderr, "%s: %s\n", #call, text); \
      exit(1);                                  \
    }                                           \
  } while (0)

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

CUdeviceptr Map(size_t bytes, const CUmemAllocationProp& kind) {
  CUdeviceptr address;
  CUmemGenericAllocationHandle memory;
  CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
  CHECK(cuMemCreate(&memory, bytes, &kind, 0));
  CHECK(cuMemMap(address, bytes, 0, memory, 0));
  CHECK(cuMemRelease(memory));
  CUmemAccessDesc access{};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemSetAccess(address, bytes, &access, 1));
  return address;
}

int main() {
  constexpr int kCount = 10000;
  CHECK(cuInit(0));
  cudaFree(nullptr);
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t unit = 0;
  CHECK(cuMemGetAllocationGranularity(&unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const size_t bytes = (kCount * sizeof(float) + unit - 1) / unit * unit;
  CUdeviceptr buffers[3];
  for (CUdeviceptr& buffer : buffers) buffer = Map(bytes, kind);
  std::vector<float> host(kCount, 1.5f);
  CHECK(cuMemcpyHtoD(buffers[0], host.data(), kCount * sizeof(float)));
  CHECK(cuMemcpyHtoD(buffers[1], host.data(), kCount * sizeof(float)));
  add<<<(kCount + 255) / 256, 256>>>((float*)buffers[0], (float*)buffers[1], (float*)buffers[2],
                                     kCount);
  CHECK(cuMemcpyDtoH(host.data(), buffers[2], kCount * sizeof(float)));
  printf("last %.1f\n", host[kCount - 1]);
  for (const CUdeviceptr buffer : buffers) {
    CHECK(cuMemUnmap(buffer, bytes));
    CHECK(cuMemAddressFree(buffer, bytes));
  }
}
