// CUDA's driver interface, for programs that load modules themselves. Functions that the runtime
// interface has too are forwarded to it.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/files.h"
#include "atunner/vgpu/instructions/tensor_map.h"
#include "faces/program/device_attributes.h"
#include "faces/program/runtime_calls.h"
#include "faces/program/runtime_state.h"

using namespace atunner::program;  // a file of C functions
using atunner::cuda::DevicePointer;

namespace {

thread_local std::vector<void*> contexts;
void* TheContext() {
  return reinterpret_cast<void*>(uintptr_t{0xc0});
}  // NOLINT(performance-no-int-to-ptr)

void* At(DevicePointer address) {
  return reinterpret_cast<void*>(address);
}  // NOLINT(performance-no-int-to-ptr)

int LoadModule(void** module, const void* image) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  Module* added = virtual_device.AddModule(static_cast<const char*>(image));
  *module = added;
  return virtual_device.Load(*added) != nullptr ? kSuccess : kInvalidPtx;
}

/// Kernel handles stay valid as long as the process.
int FindKernel(void** function, void* module, const char* name) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const Kernel kernel{static_cast<Module*>(module), name};
  if (virtual_device.FindEntry(kernel) == nullptr) return kNotFound;
  *function = new Kernel(kernel);
  return kSuccess;
}

/// Addresses of the parameters, which are given one by one or packed in one buffer.
int Launch(void* function, const atunner::LaunchShape& shape, void* stream, void** params,
           void** extra) {
  Work work;
  {
    VirtualDevice& virtual_device = VirtualDevice::Get();
    const Lock lock(virtual_device.mutex);
    const auto& kernel = *static_cast<const Kernel*>(function);
    const atunner::ptx::Function* entry = virtual_device.FindEntry(kernel);
    if (entry == nullptr) return kInvalidHandle;
    std::vector<void*> unpacked;
    for (void** item = extra; params == nullptr && item != nullptr && *item != nullptr; item += 2) {
      if (reinterpret_cast<uintptr_t>(*item) != 1)
        continue;  // 1 = the buffer follows; 2 = its size
      for (const auto& param : entry->params)
        unpacked.push_back(static_cast<char*>(item[1]) + param.offset);
    }
    work = LaunchOf(kernel, shape, params != nullptr ? params : unpacked.data());
  }
  return DoIn(stream, Node::kKernel, std::move(work));
}

int Fill(DevicePointer to, size_t pitch, uint32_t value, uint64_t value_bytes, size_t width,
         size_t height) {
  return DoIn(nullptr, Node::kFill, [=]() -> int {
    return VirtualDevice::Get().Fill("cuMemset", {static_cast<char*>(At(to)), pitch}, value,
                                     value_bytes, width * value_bytes, height);
  });
}

/// The dtype of a CUtensorMapDataType.
std::optional<atunner::DType> TypeOfMap(int type) {
  using atunner::DType;
  for (const DType dtype :
       {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
        DType::kUInt64, DType::kInt32, DType::kUInt32, DType::kUInt16, DType::kUInt8}) {
    if (atunner::TensorMapType(dtype) == type) return dtype;
  }
  constexpr int kFlushed = 10, kTf32 = 11, kFlushedTf32 = 12;
  if (type == kFlushed || type == kTf32 || type == kFlushedTf32) return DType::kFloat32;
  return std::nullopt;
}

struct MapOptions {
  int interleave, swizzle, fill;
};
int EncodeMap(void* map, int type, atunner::TensorMapSpec spec, const MapOptions& options) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const auto dtype = TypeOfMap(type);
  if (!dtype || options.interleave != 0 || options.swizzle > 3)
    return virtual_device.Misuse(kNotSupported, "the virtual GPU has no such tensor map");
  spec.dtype = *dtype;
  spec.swizzle_bytes = options.swizzle == 0 ? 0 : 16 << options.swizzle;
  spec.fill_nan = options.fill != 0;
  const auto encoded = virtual_device.gpu().EncodeTensorMap(spec);
  if (!encoded)
    return virtual_device.Misuse(kInvalidValue, "cuTensorMapEncode: " + encoded.error().ToString());
  std::memcpy(map, encoded->bytes.data(), encoded->bytes.size());
  return kSuccess;
}

atunner::TensorMapSpec SpecOf(uint32_t rank, void* address, const uint64_t* dims,
                              const uint64_t* strides, const uint32_t* steps) {
  atunner::TensorMapSpec spec;
  rank = std::clamp(rank, 1U, 5U);
  spec.address = reinterpret_cast<uint64_t>(address);
  spec.dims.assign(dims, dims + rank);
  spec.strides.assign(strides, strides + rank - 1);
  spec.element_strides.assign(steps, steps + rank);
  return spec;
}

}  // namespace

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming): CUDA's names.
extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
int cuGetErrorName(int code, const char** name) {
  *name = code == kSuccess ? "CUDA_SUCCESS" : "CUDA_ERROR";
  return kSuccess;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kSuccess ? "no error" : "an error: atunner's report says more";
  return kSuccess;
}
int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* found) {
  *function = DriverFunction(name);
  if (found != nullptr) *found = *function == nullptr;
  return *function != nullptr ? kSuccess : kNotFound;
}
int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

/// Undocumented function tables. NVRTC asks for one, and works without it.
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

int cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidDevice;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, VirtualDevice::Get().profile().full_name.c_str(), static_cast<size_t>(bytes));
  if (bytes > 0) name[bytes - 1] = '\0';
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}
int cuDeviceComputeCapability(int* major, int* minor, int) {
  *major = VirtualDevice::Get().profile().cc_major;
  *minor = VirtualDevice::Get().profile().cc_minor;
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  size_t free = 0;
  return cudaMemGetInfo(&free, bytes);
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = TheContext();
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuDevicePrimaryCtxReset_v2(int) { return kSuccess; }
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return kSuccess; }
int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(context);
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  if (context != nullptr) *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
int cuCtxCreate_v4(void** context, void*, unsigned, int) {
  *context = TheContext();
  return cuCtxPushCurrent_v2(*context);
}
int cuCtxCreate_v2(void** context, unsigned, int device) {
  return cuCtxCreate_v4(context, nullptr, 0, device);
}
int cuCtxDestroy_v2(void*) {
  if (!contexts.empty()) contexts.pop_back();
  return kSuccess;
}
int cuCtxGetCurrent(void** context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  if (!contexts.empty()) contexts.pop_back();
  return context != nullptr ? cuCtxPushCurrent_v2(context) : kSuccess;
}
int cuCtxGetDevice(int* device) { return cudaGetDevice(device); }
int cuCtxSynchronize() { return cudaDeviceSynchronize(); }
int cuCtxSetLimit(int, size_t) { return kSuccess; }
int cuCtxSetCacheConfig(int) { return kSuccess; }

int cuModuleLoadData(void** module, const void* image) { return LoadModule(module, image); }
int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return LoadModule(module, image);
}
int cuModuleLoadFatBinary(void** module, const void* image) { return LoadModule(module, image); }
int cuModuleLoad(void** module, const char* file) {
  const auto text = atunner::ReadFile(file);
  return text ? LoadModule(module, text->c_str()) : 301;  // CUDA_ERROR_FILE_NOT_FOUND
}
int cuModuleUnload(void* module) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  virtual_device.RemoveModule(static_cast<Module*>(module));
  return kSuccess;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return FindKernel(function, module, name);
}
int cuModuleGetGlobal_v2(DevicePointer* address, size_t* bytes, void* module, const char* name) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const auto symbol = virtual_device.FindSymbol(*static_cast<Module*>(module), name);
  if (!symbol) return kNotFound;
  if (address != nullptr) *address = symbol->first;
  if (bytes != nullptr) *bytes = symbol->second;
  return kSuccess;
}
int cuLibraryLoadData(void** library, const void* image, int*, void**, unsigned, int*, void**,
                      unsigned) {
  return LoadModule(library, image);
}
int cuLibraryUnload(void* library) { return cuModuleUnload(library); }
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return FindKernel(kernel, library, name);
}
int cuLibraryGetModule(void** module, void* library) {
  *module = library;
  return kSuccess;
}
int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
int cuLibraryGetGlobal(DevicePointer* address, size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const atunner::ptx::Function* entry = virtual_device.FindEntry(
      *static_cast<const Kernel*>(function));
  if (entry == nullptr) return kInvalidHandle;
  const int values[] = {1024, static_cast<int>(entry->shared_bytes), 0,
                        static_cast<int>(entry->local_bytes), 32};
  *value = attribute >= 0 && attribute < 5 ? values[attribute] : 0;
  return kSuccess;
}
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
int cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
int cuFuncSetCacheConfig(void*, int) { return kSuccess; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared_bytes) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const atunner::ptx::Function* entry = virtual_device.FindEntry(
      *static_cast<const Kernel*>(function));
  if (entry == nullptr) return kInvalidHandle;
  *blocks = virtual_device.BlocksPerSm(
      *entry, {{}, {static_cast<uint32_t>(threads)}, {}, static_cast<uint32_t>(shared_bytes)});
  return kSuccess;
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, void* stream, void** params, void** extra) {
  return Launch(function, {{gx, gy, gz}, {bx, by, bz}, {}, shared_bytes}, stream, params, extra);
}
int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared_bytes, void* stream,
                              void** params) {
  return Launch(function, {{gx, gy, gz}, {bx, by, bz}, {}, shared_bytes, true}, stream, params,
                nullptr);
}
int cuLaunchKernelEx(const atunner::cuda::LaunchConfig* config, void* function, void** params,
                     void** extra) {
  atunner::LaunchShape shape{{config->grid_x, config->grid_y, config->grid_z},
                             {config->block_x, config->block_y, config->block_z},
                             {},
                             config->shared_bytes};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const auto& attribute = config->attributes[i];
    const auto& cluster = attribute.value.cluster;
    if (attribute.id == abi::kClusterDimension) shape.cluster = {cluster.x, cluster.y, cluster.z};
    if (attribute.id == abi::kCooperative) shape.cooperative = attribute.value.enabled != 0;
    if (attribute.id == abi::kProgrammatic) shape.programmatic = attribute.value.enabled != 0;
  }
  return Launch(function, shape, config->stream, params, extra);
}

int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                           int interleave, int swizzle, int, int fill) {
  atunner::TensorMapSpec spec = SpecOf(rank, address, dims, strides, steps);
  spec.box.assign(box, box + spec.dims.size());
  return EncodeMap(map, type, std::move(spec), {interleave, swizzle, fill});
}
int cuTensorMapEncodeIm2col(void* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                            const uint64_t* strides, const int* lower, const int* upper,
                            uint32_t channels, uint32_t pixels, const uint32_t* steps,
                            int interleave, int swizzle, int, int fill) {
  atunner::TensorMapSpec spec = SpecOf(std::max(rank, 3U), address, dims, strides, steps);
  spec.box = {channels, pixels};
  const size_t corners = spec.dims.size() - 2;
  spec.im2col = atunner::PixelCorners{{lower, lower + corners}, {upper, upper + corners}};
  return EncodeMap(map, type, std::move(spec), {interleave, swizzle, fill});
}

int cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(address), bytes);
}
int cuMemAllocAsync(DevicePointer* address, size_t bytes, void*) {
  return cuMemAlloc_v2(address, bytes);
}
int cuMemAllocManaged(DevicePointer* address, size_t bytes, unsigned flags) {
  return cudaMallocManaged(reinterpret_cast<void**>(address), bytes, flags);
}
int cuMemAllocPitch_v2(DevicePointer* address, size_t* pitch, size_t width, size_t height,
                       unsigned) {
  return cudaMallocPitch(reinterpret_cast<void**>(address), pitch, width, height);
}
int cuMemAllocHost_v2(void** pointer, size_t bytes) { return cudaMallocHost(pointer, bytes); }
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
int cuMemHostGetDevicePointer_v2(DevicePointer* address, void* pointer, unsigned) {
  *address = reinterpret_cast<DevicePointer>(pointer);
  return kSuccess;
}
int cuMemFree_v2(DevicePointer address) { return cudaFree(At(address)); }
int cuMemFreeAsync(DevicePointer address, void*) { return cudaFree(At(address)); }
int cuMemFreeHost(void* pointer) { return cudaFreeHost(pointer); }
int cuMemGetInfo_v2(size_t* free, size_t* total) { return cudaMemGetInfo(free, total); }
int cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return cudaMemcpy(At(to), At(from), bytes, 4);
}
int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return cudaMemcpyAsync(At(to), At(from), bytes, 4, stream);
}
int cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return cudaMemcpy(At(to), from, bytes, 1);
}
int cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return cudaMemcpy(to, At(from), bytes, 2);
}
int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return cudaMemcpy(At(to), At(from), bytes, 3);
}
int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, void* stream) {
  return cudaMemcpyAsync(At(to), from, bytes, 1, stream);
}
int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, void* stream) {
  return cudaMemcpyAsync(to, At(from), bytes, 2, stream);
}
int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return cudaMemcpyAsync(At(to), At(from), bytes, 3, stream);
}
int cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t count) {
  return Fill(to, count, value, 1, count, 1);
}
int cuMemsetD16_v2(DevicePointer to, unsigned short value, size_t count) {
  return Fill(to, 2 * count, value, 2, count, 1);
}
int cuMemsetD32_v2(DevicePointer to, unsigned value, size_t count) {
  return Fill(to, 4 * count, value, 4, count, 1);
}
int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, void*) {
  return Fill(to, count, value, 1, count, 1);
}
int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, void*) {
  return Fill(to, 4 * count, value, 4, count, 1);
}

int cuStreamCreate(void** stream, unsigned) { return cudaStreamCreate(stream); }
int cuStreamDestroy_v2(void* stream) { return cudaStreamDestroy(stream); }
int cuStreamSynchronize(void* stream) { return cudaStreamSynchronize(stream); }
int cuStreamQuery(void* stream) { return cudaStreamQuery(stream); }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
int cuEventCreate(void** event, unsigned flags) { return cudaEventCreateWithFlags(event, flags); }
int cuEventDestroy_v2(void* event) { return cudaEventDestroy(event); }
int cuEventRecord(void* event, void* stream) { return cudaEventRecord(event, stream); }
int cuEventSynchronize(void* event) { return cudaEventSynchronize(event); }
int cuEventQuery(void* event) { return cudaEventQuery(event); }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}
int cuEventElapsedTime_v2(float* milliseconds, void* begin, void* end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}

int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                     unsigned long long, int* found) {
  *function = DriverFunction(name);
  if (found != nullptr) *found = *function == nullptr;
  return *function != nullptr ? kSuccess : Remember(kNotFound);
}
int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                            int* found) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, found);
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)

namespace atunner::program {

void* DriverFunction(const char* name) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&cuInit), &self) == 0) return nullptr;
  void* ours = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (ours == nullptr) return nullptr;
  for (const char* version : {"_v4", "_v2", ""}) {  // the newest that there is
    const std::string whole = std::string(name) + version;
    if (!IsDriverFunctionAnswered(whole)) continue;
    if (void* function = dlsym(ours, whole.c_str())) return function;
  }
  return nullptr;
}

}  // namespace atunner::program
