// CUDA's driver interface: virtual memory management, and what else the runtime interface has too.
//
// A reserved range is an allocation of its size, in which physical memory is mapped without further
// ado: the virtual GPU has one kind of memory, which is never shared between two ranges.
#include <algorithm>
#include <cstdint>

#include "atunner/base/cuda_abi.h"
#include "faces/program/runtime_calls.h"
#include "faces/program/runtime_state.h"

using namespace atunner::program;  // a file of C functions
using atunner::cuda::DevicePointer;

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  *bytes = size_t{2} << 20;  // as GPUs have it
  return kSuccess;
}
int cuMemAddressReserve(DevicePointer* address, size_t bytes, size_t, DevicePointer, uint64_t) {
  return cudaMalloc(reinterpret_cast<void**>(address), bytes);
}
int cuMemAddressFree(DevicePointer address, size_t) {
  return cudaFree(reinterpret_cast<void*>(address));
}
int cuMemCreate(uint64_t* handle, size_t bytes, const void*, uint64_t) {
  *handle = std::max<uint64_t>(bytes, 1);  // the handle says how much memory it stands for
  return kSuccess;
}
int cuMemRelease(uint64_t) { return kSuccess; }
int cuMemMap(DevicePointer address, size_t bytes, size_t offset, uint64_t handle, uint64_t) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const auto range = virtual_device.gpu().memory().Find(address);
  if (!range || !range->Contains(address, address + bytes))
    return virtual_device.Misuse(kInvalidValue, "cuMemMap: the range is not reserved");
  if (offset + bytes > handle)
    return virtual_device.Misuse(kInvalidValue, "cuMemMap: more memory than was created");
  return kSuccess;
}
int cuMemUnmap(DevicePointer, size_t) { return kSuccess; }
int cuMemSetAccess(DevicePointer, size_t, const void*, size_t) { return kSuccess; }

int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return cudaStreamCreateWithPriority(stream, flags, priority);
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return cudaDeviceGetStreamPriorityRange(least, greatest);
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return cudaLaunchHostFunc(stream, function, argument);
}
int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* argument,
                        unsigned flags) {
  return cudaStreamAddCallback(stream, function, argument, flags);
}
int cuCtxGetLimit(size_t* value, int limit) { return cudaDeviceGetLimit(value, limit); }
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  return cudaDeviceGetPCIBusId(text, bytes, device);
}
int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return cudaDeviceCanAccessPeer(can, device, peer);
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
