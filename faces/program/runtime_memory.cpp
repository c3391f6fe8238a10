// CUDA's runtime interface: memory.
#include <cstring>

#include "faces/program/runtime_state.h"

using namespace atunner::program;  // a file of C functions

namespace {

int Allocate(void** pointer, size_t bytes, bool host) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  if (pointer == nullptr) return Remember(kInvalidValue);
  *pointer = virtual_device.Allocate(bytes, host);
  return *pointer != nullptr ? kSuccess : Remember(kOutOfMemory);
}

int Free(void* pointer, const char* call) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const int code = virtual_device.Free(pointer, call);
  const int fault = virtual_device.TakeFault();
  return Remember(code != kSuccess ? code : fault);
}

/// Copies in the order of the stream, or at once without one, which then also returns errors of
/// earlier kernels.
int CopyRows(const char* call, VirtualDevice::Rows to, VirtualDevice::Rows from, size_t width,
             size_t height, void* stream, bool waits) {
  return DoIn(stream, Node::kCopy, [=]() -> int {
    VirtualDevice& virtual_device = VirtualDevice::Get();
    const int code = virtual_device.Copy(call, to, from, width, height);
    const int fault = waits ? virtual_device.TakeFault() : kSuccess;
    return code != kSuccess ? code : fault;
  });
}

int CopyBytes(const char* call, void* to, const void* from, size_t bytes, void* stream,
              bool waits) {
  auto* source = static_cast<char*>(const_cast<void*>(from));
  return CopyRows(call, {static_cast<char*>(to), bytes}, {source, bytes}, bytes, 1, stream, waits);
}

int FillRows(const char* call, void* at, size_t pitch, int value, size_t width, size_t height,
             void* stream) {
  return DoIn(stream, Node::kFill, [=]() -> int {
    return VirtualDevice::Get().Fill(call, {static_cast<char*>(at), pitch},
                                     static_cast<uint32_t>(value & 0xff), 1, width, height);
  });
}

constexpr size_t kPitch = 512;
size_t Pitch(size_t width) { return (width + kPitch - 1) / kPitch * kPitch; }

}  // namespace

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cudaMalloc(void** pointer, size_t bytes) { return Allocate(pointer, bytes, false); }
int cudaMallocAsync(void** pointer, size_t bytes, void*) { return Allocate(pointer, bytes, false); }
int cudaMallocFromPoolAsync(void** pointer, size_t bytes, void*, void*) {
  return Allocate(pointer, bytes, false);
}
int cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return Allocate(pointer, bytes, true);
}
int cudaMallocHost(void** pointer, size_t bytes) { return Allocate(pointer, bytes, true); }
int cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return Allocate(pointer, bytes, true); }
int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = Pitch(width);
  return Allocate(pointer, *pitch * height, false);
}
int cudaMalloc3D(abi::PitchedPointer* pointer, abi::Extent extent) {
  *pointer = {nullptr, Pitch(extent.width), extent.width, extent.height};
  return Allocate(&pointer->at, pointer->pitch * extent.height * extent.depth, false);
}
int cudaFree(void* pointer) { return Free(pointer, "cudaFree"); }
int cudaFreeAsync(void* pointer, void*) { return Free(pointer, "cudaFreeAsync"); }
int cudaFreeHost(void* pointer) { return Free(pointer, "cudaFreeHost"); }
int cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  return Remember(virtual_device.Register(pointer, bytes));
}
int cudaHostUnregister(void* pointer) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  return Remember(virtual_device.Unregister(pointer));
}
int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
int cudaHostGetFlags(unsigned* flags, void*) {
  *flags = 2;  // mapped
  return kSuccess;
}
int cudaMemGetInfo(size_t* free, size_t* total) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  *free = virtual_device.gpu().FreeBytes().value_or(0);
  *total = static_cast<size_t>(virtual_device.profile().dram_bytes);
  return kSuccess;
}
int cudaPointerGetAttributes(abi::PointerAttributes* attributes, const void* pointer) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  *attributes = {};
  attributes->host_pointer = const_cast<void*>(pointer);
  if (const auto range = virtual_device.gpu().memory().Find(reinterpret_cast<uint64_t>(pointer))) {
    const bool host = virtual_device.IsHostMemory(reinterpret_cast<const void*>(range->base));
    attributes->type = host ? 1 : 2;
    attributes->device_pointer = const_cast<void*>(pointer);
    if (!host) attributes->host_pointer = nullptr;
  }
  return kSuccess;
}

int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return CopyBytes(__func__, to, from, bytes, nullptr, true);
}
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, void* stream) {
  return CopyBytes(__func__, to, from, bytes, stream, false);
}
int cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return CopyBytes(__func__, to, from, bytes, nullptr, true);
}
int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, void* stream) {
  return CopyBytes(__func__, to, from, bytes, stream, false);
}
int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                 size_t height, int) {
  return CopyRows(__func__, {static_cast<char*>(to), to_pitch},
                  {static_cast<char*>(const_cast<void*>(from)), from_pitch}, width, height, nullptr,
                  true);
}
int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int, void* stream) {
  return CopyRows(__func__, {static_cast<char*>(to), to_pitch},
                  {static_cast<char*>(const_cast<void*>(from)), from_pitch}, width, height, stream,
                  false);
}

int cudaMemset(void* at, int value, size_t bytes) {
  return FillRows(__func__, at, bytes, value, bytes, 1, nullptr);
}
int cudaMemsetAsync(void* at, int value, size_t bytes, void* stream) {
  return FillRows(__func__, at, bytes, value, bytes, 1, stream);
}
int cudaMemset2D(void* at, size_t pitch, int value, size_t width, size_t height) {
  return FillRows(__func__, at, pitch, value, width, height, nullptr);
}
int cudaMemset2DAsync(void* at, size_t pitch, int value, size_t width, size_t height,
                      void* stream) {
  return FillRows(__func__, at, pitch, value, width, height, stream);
}
int cudaMemset3DAsync(abi::PitchedPointer to, int value, abi::Extent extent, void* stream) {
  auto* at = static_cast<char*>(to.at);
  for (size_t plane = 0; plane < extent.depth; ++plane, at += to.pitch * to.height) {
    if (const int code = FillRows(__func__, at, to.pitch, value, extent.width, extent.height,
                                  stream))
      return code;
  }
  return kSuccess;
}
int cudaMemset3D(abi::PitchedPointer to, int value, abi::Extent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}

int cudaGetSymbolAddress(void** pointer, const void* variable) {
  const Lock lock(VirtualDevice::Get().mutex);
  const auto symbol = SymbolOf(variable);
  if (!symbol) return Remember(kInvalidSymbol);
  *pointer = reinterpret_cast<void*>(symbol->first);
  return kSuccess;
}
int cudaGetSymbolSize(size_t* bytes, const void* variable) {
  const Lock lock(VirtualDevice::Get().mutex);
  const auto symbol = SymbolOf(variable);
  if (!symbol) return Remember(kInvalidSymbol);
  *bytes = symbol->second;
  return kSuccess;
}
int cudaMemcpyToSymbolAsync(const void* variable, const void* from, size_t bytes, size_t offset,
                            int, void* stream) {
  void* at = nullptr;
  if (const int code = cudaGetSymbolAddress(&at, variable)) return code;
  return CopyBytes("cudaMemcpyToSymbol", static_cast<char*>(at) + offset, from, bytes, stream,
                   false);
}
int cudaMemcpyToSymbol(const void* variable, const void* from, size_t bytes, size_t offset,
                       int direction) {
  return cudaMemcpyToSymbolAsync(variable, from, bytes, offset, direction, nullptr);
}
int cudaMemcpyFromSymbolAsync(void* to, const void* variable, size_t bytes, size_t offset, int,
                              void* stream) {
  void* at = nullptr;
  if (const int code = cudaGetSymbolAddress(&at, variable)) return code;
  return CopyBytes("cudaMemcpyFromSymbol", to, static_cast<char*>(at) + offset, bytes, stream,
                   stream == nullptr);
}
int cudaMemcpyFromSymbol(void* to, const void* variable, size_t bytes, size_t offset,
                         int direction) {
  return cudaMemcpyFromSymbolAsync(to, variable, bytes, offset, direction, nullptr);
}

int cudaMemPrefetchAsync(const void*, size_t, int, void*) { return kSuccess; }
int cudaMemPrefetchAsync_v2(const void*, size_t, int, void*) { return kSuccess; }
int cudaMemAdvise(const void*, size_t, int, int) { return kSuccess; }
int cudaMemAdvise_v2(const void*, size_t, int, int) { return kSuccess; }
/// Queries of cudaMemAdvise: no advice is recorded, because host and device share memory.
int cudaMemRangeGetAttribute(void* data, size_t bytes, int, const void*, size_t) {
  std::memset(data, 0, bytes);
  return kSuccess;
}
int cudaStreamAttachMemAsync(void*, void*, size_t, unsigned) { return kSuccess; }
int cudaDeviceGetDefaultMemPool(void** pool, int) {
  static int the_pool;
  *pool = &the_pool;
  return kSuccess;
}
int cudaDeviceGetMemPool(void** pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
int cudaDeviceSetMemPool(int, void*) { return kSuccess; }
/// All pools allocate from the same memory and cache nothing.
int cudaMemPoolCreate(void** pool, const void*) { return cudaDeviceGetDefaultMemPool(pool, 0); }
int cudaMemPoolDestroy(void*) { return kSuccess; }
int cudaMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
int cudaMemPoolGetAccess(int* access, void*, const void*) {
  *access = 3;  // reads and writes
  return kSuccess;
}
int cudaMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
int cudaMemPoolGetAttribute(void*, int attribute, void* value) {
  constexpr int kLastFlag = 3;  // attributes up to this one are ints, the others have 64 bits
  std::memset(value, 0, attribute <= kLastFlag ? sizeof(int) : sizeof(uint64_t));
  return kSuccess;
}
int cudaMemPoolTrimTo(void*, size_t) { return kSuccess; }
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
