// CUDA's runtime interface: registration of kernels and variables by nvcc's code, and launches.
#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "faces/program/runtime_state.h"

namespace atunner::program {
namespace {

struct Variable {
  Module* module = nullptr;
  std::string name;
};

struct Code {
  std::unordered_map<const void*, Kernel> kernels;  ///< by address of the host's stub
  std::unordered_map<const void*, Variable> variables;
  std::vector<std::pair<Variable, void**>>
      managed;  ///< variables whose host pointers are not set yet
};
Code& TheCode() {
  static auto* code = new Code;
  return *code;
}

/// Launch configurations <<<…>>> whose kernels have not been called yet.
struct Configuration {
  abi::Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

atunner::Dim3 Extent(const abi::Dim3& dim) { return {dim.x, dim.y, dim.z}; }

int LaunchOrRecord(const void* function, const LaunchShape& shape, void** params, void* stream) {
  Work work;
  {
    const Lock lock(VirtualDevice::Get().mutex);
    const Kernel* kernel = KernelOf(function);
    if (kernel == nullptr) return Remember(kInvalidDeviceFunction);
    work = LaunchOf(*kernel, shape, params);
  }
  return DoIn(stream, Node::kKernel, std::move(work));
}

}  // namespace

const Kernel* KernelOf(const void* function) {
  const auto found = TheCode().kernels.find(function);
  return found == TheCode().kernels.end() ? nullptr : &found->second;
}

std::optional<std::pair<uint64_t, uint64_t>> SymbolOf(const void* variable) {
  const auto found = TheCode().variables.find(variable);
  if (found == TheCode().variables.end()) return std::nullopt;
  return VirtualDevice::Get().FindSymbol(*found->second.module, found->second.name);
}

std::vector<std::vector<std::byte>> ValuesOf(const Kernel& kernel, void** params) {
  const ptx::Function* entry = VirtualDevice::Get().FindEntry(kernel);
  std::vector<std::vector<std::byte>> values;
  for (size_t i = 0; entry != nullptr && i < entry->params.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(params[i]);
    values.emplace_back(bytes, bytes + entry->params[i].bytes);
  }
  return values;
}

Work LaunchOf(const Kernel& kernel, const LaunchShape& shape, void** params) {
  return [kernel, shape, values = ValuesOf(kernel, params)]() mutable -> int {
    std::vector<void*> addresses;
    for (auto& value : values) addresses.push_back(value.data());
    return VirtualDevice::Get().Launch(kernel, shape, addresses.data());
  };
}

}  // namespace atunner::program

using namespace atunner::program;  // a file of C functions

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming,bugprone-reserved-identifier):
// CUDA's names.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const auto& fat = *static_cast<const abi::FatBinaryWrapper*>(wrapper);
  return reinterpret_cast<void**>(virtual_device.AddModule(
      fat.image, fat.version == 2 ? static_cast<const char* const*>(fat.linked) : nullptr));
}
/// Sets the host pointers of `__managed__` variables.
void __cudaRegisterFatBinaryEnd(void** handle) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  std::erase_if(TheCode().managed, [&](const std::pair<Variable, void**>& managed) {
    if (managed.first.module != reinterpret_cast<Module*>(handle)) return false;
    if (const auto symbol = virtual_device.FindSymbol(*managed.first.module, managed.first.name)) {
      virtual_device.gpu().MarkContents(symbol->first, symbol->second, true);
      *managed.second = reinterpret_cast<void*>(symbol->first);
    }
    return true;
  });
}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** module, const char* function, char*, const char* name, int,
                            void*, void*, void*, void*, int*) {
  const Lock lock(VirtualDevice::Get().mutex);
  TheCode().kernels[function] = {reinterpret_cast<Module*>(module), name};
}
void __cudaRegisterVar(void** module, char* variable, char*, const char* name, int, size_t, int,
                       int) {
  const Lock lock(VirtualDevice::Get().mutex);
  TheCode().variables[variable] = {reinterpret_cast<Module*>(module), name};
}
void __cudaRegisterManagedVar(void** module, void** pointer, char*, const char* name, int, size_t,
                              int, int) {
  const Lock lock(VirtualDevice::Get().mutex);
  TheCode().variables[static_cast<const void*>(pointer)] = {reinterpret_cast<Module*>(module),
                                                            name};
  TheCode().managed.emplace_back(Variable{reinterpret_cast<Module*>(module), name}, pointer);
}

unsigned __cudaPushCallConfiguration(abi::Dim3 grid, abi::Dim3 block, size_t shared_bytes,
                                     void* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
int __cudaPopCallConfiguration(abi::Dim3* grid, abi::Dim3* block, size_t* shared_bytes,
                               void* stream) {
  if (configurations.empty()) return kInvalidConfiguration;
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<void**>(stream) = last.stream;
  return kSuccess;
}

int cudaLaunchKernel(const void* function, abi::Dim3 grid, abi::Dim3 block, void** params,
                     size_t shared_bytes, void* stream) {
  return LaunchOrRecord(function,
                        {Extent(grid), Extent(block), {}, static_cast<uint32_t>(shared_bytes)},
                        params, stream);
}
int cudaLaunchCooperativeKernel(const void* function, abi::Dim3 grid, abi::Dim3 block,
                                void** params, size_t shared_bytes, void* stream) {
  return LaunchOrRecord(
      function, {Extent(grid), Extent(block), {}, static_cast<uint32_t>(shared_bytes), true},
      params, stream);
}
int cudaLaunchKernelExC(const abi::LaunchConfig* config, const void* function, void** params) {
  atunner::LaunchShape shape{
      Extent(config->grid), Extent(config->block), {}, static_cast<uint32_t>(config->shared_bytes)};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const abi::LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == abi::kClusterDimension) shape.cluster = Extent(attribute.value.cluster);
    if (attribute.id == abi::kCooperative) shape.cooperative = attribute.value.enabled != 0;
    if (attribute.id == abi::kProgrammatic) shape.programmatic = attribute.value.enabled != 0;
  }
  return LaunchOrRecord(function, shape, params, config->stream);
}
/// A kernel's handle is the address of the host's stub.
int __cudaGetKernel(const void** kernel, const void* function) {
  *kernel = function;
  return kSuccess;
}
int cudaGetKernel(const void** kernel, const void* function) {
  return __cudaGetKernel(kernel, function);
}
/// The driver's handle, for cuLaunchKernel.
int cudaGetFuncBySymbol(const void** driver_function, const void* function) {
  const Lock lock(VirtualDevice::Get().mutex);
  *driver_function = KernelOf(function);
  return *driver_function != nullptr ? kSuccess : Remember(kInvalidDeviceFunction);
}
int __cudaLaunchKernel(const void* kernel, abi::Dim3 grid, abi::Dim3 block, void** params,
                       size_t shared_bytes, void* stream) {
  return cudaLaunchKernel(kernel, grid, block, params, shared_bytes, stream);
}

int cudaFuncGetAttributes(abi::FunctionAttributes* attributes, const void* function) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const Kernel* kernel = KernelOf(function);
  const atunner::ptx::Function* entry = kernel == nullptr ? nullptr
                                                          : virtual_device.FindEntry(*kernel);
  if (entry == nullptr) return Remember(kInvalidDeviceFunction);
  *attributes = {};
  attributes->shared_bytes = entry->shared_bytes;
  attributes->local_bytes = entry->local_bytes;
  attributes->max_threads = 1024;
  attributes->registers = 32;  // an assumption: PTX does not say it
  attributes->ptx_version = virtual_device.PtxArch(*kernel->module);
  attributes->binary_version = virtual_device.arch();
  attributes->max_dynamic_shared_bytes = virtual_device.profile().shared_per_block -
                                         static_cast<int>(entry->shared_bytes);
  attributes->carveout = -1;
  attributes->non_portable_cluster = 1;
  return kSuccess;
}
int cudaFuncSetAttribute(const void* function, int, int) {
  const Lock lock(VirtualDevice::Get().mutex);
  return KernelOf(function) != nullptr ? kSuccess : Remember(kInvalidDeviceFunction);
}
int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
int cudaFuncSetSharedMemConfig(const void*, int) { return kSuccess; }
int cudaFuncGetName(const char** name, const void* function) {
  const Lock lock(VirtualDevice::Get().mutex);
  const Kernel* kernel = KernelOf(function);
  if (kernel == nullptr) return Remember(kInvalidDeviceFunction);
  *name = kernel->name.c_str();
  return kSuccess;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                           int threads, size_t shared_bytes,
                                                           unsigned) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const Kernel* kernel = KernelOf(function);
  const atunner::ptx::Function* entry = kernel == nullptr ? nullptr
                                                          : virtual_device.FindEntry(*kernel);
  if (entry == nullptr) return Remember(kInvalidDeviceFunction);
  atunner::LaunchShape shape{
      {}, {static_cast<uint32_t>(threads)}, {}, static_cast<uint32_t>(shared_bytes)};
  *blocks = virtual_device.BlocksPerSm(*entry, shape);
  return kSuccess;
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                  size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                shared_bytes, 0);
}
int cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                              int) {
  VirtualDevice& virtual_device = VirtualDevice::Get();
  const Lock lock(virtual_device.mutex);
  const Kernel* kernel = KernelOf(function);
  const atunner::ptx::Function* entry = kernel == nullptr ? nullptr
                                                          : virtual_device.FindEntry(*kernel);
  if (entry == nullptr || blocks < 1)
    return Remember(entry == nullptr ? kInvalidDeviceFunction : kInvalidValue);
  const atunner::DeviceProfile& profile = virtual_device.profile();
  const auto each = std::min(
      static_cast<int64_t>(profile.shared_per_sm) / blocks - profile.shared_reserved_per_block,
      static_cast<int64_t>(profile.shared_per_block));
  *bytes = static_cast<size_t>(
      std::max<int64_t>(each - static_cast<int64_t>(entry->shared_bytes), 0));
  return kSuccess;
}
int cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                         const abi::LaunchConfig*) {
  const Lock lock(VirtualDevice::Get().mutex);
  if (KernelOf(function) == nullptr) return Remember(kInvalidDeviceFunction);
  *size = 8;  // the portable cluster size, which every launch may ask for
  return kSuccess;
}
int cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                   const abi::LaunchConfig* config) {
  int blocks = 0;
  const abi::Dim3& block = config->block;
  const int code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function, static_cast<int>(block.x * block.y * block.z), config->shared_bytes);
  uint64_t size = 1;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == abi::kClusterDimension)
      size = Extent(config->attributes[i].value.cluster).Count();
  }
  const auto all = static_cast<uint64_t>(blocks) *
                   static_cast<uint64_t>(VirtualDevice::Get().profile().sms);
  *clusters = static_cast<int>(all / std::max<uint64_t>(size, 1));
  return code;
}
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming,bugprone-reserved-identifier)
