// The functions of CUDA's driver that serve memory, opened when the first tensor is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atunner::memory {

using Stream = void*;
using Event = void*;
using CudaContext = void*;
using PageHandle = unsigned long long;
using Address = uint64_t;

/// Results of the driver: 0 is success.
inline constexpr int kOutOfMemory = 2;

/// CUmemAllocationProp of CUDA 12 and 13: memory of one GPU.
struct AllocationProperties {
  int type = 1;  ///< pinned
  int handle_types = 0;
  int location_type = 1;  ///< a device
  int location_id = 0;
  void* meta_data = nullptr;
  unsigned char flags[8] = {};
};
static_assert(sizeof(AllocationProperties) == 32);

/// CUmemAccessDesc: one GPU may read and write.
struct AccessDescription {
  int location_type = 1;
  int location_id = 0;
  int flags = 3;
};
static_assert(sizeof(AccessDescription) == 12);

/// Tests replace the functions.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*retain_context)(CudaContext*, int device) = nullptr;
  int (*push_context)(CudaContext) = nullptr;
  int (*pop_context)(CudaContext*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*memory_info)(size_t* free, size_t* total) = nullptr;
  int (*reserve)(Address*, size_t bytes, size_t alignment, Address hint, uint64_t flags) = nullptr;
  int (*create)(PageHandle*, size_t bytes, const AllocationProperties*, uint64_t flags) = nullptr;
  int (*release)(PageHandle) = nullptr;
  int (*map)(Address, size_t bytes, size_t offset, PageHandle, uint64_t flags) = nullptr;
  int (*unmap)(Address, size_t bytes) = nullptr;
  int (*set_access)(Address, size_t bytes, const AccessDescription*, size_t count) = nullptr;
  int (*create_event)(Event*, unsigned flags) = nullptr;
  int (*destroy_event)(Event) = nullptr;
  int (*record)(Event, Stream) = nullptr;
  int (*wait)(Stream, Event, unsigned flags) = nullptr;
};

/// The driver of this machine; nullptr if libcuda.so.1 or one of the functions is missing.
const Driver* LoadedDriver();

}  // namespace atunner::memory
