#include "runtime/testing/virtual_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "atunner/base/cuda_abi.h"
#include "atunner/device/profiles.h"
#include "atunner/ptx/module.h"
#include "atunner/vgpu/instructions/tensor_map.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {
namespace {

using cuda::Result;

/// A kernel of a loaded image.
struct VirtualFunction {
  std::string name;
  LoadedModule* module = nullptr;     ///< null: a cubin's, recorded only
  std::vector<uint32_t> param_bytes;  ///< empty for a cubin's
};

struct VirtualImage {
  std::unique_ptr<LoadedModule> module;
  std::map<std::string, std::vector<uint32_t>> params;
  std::map<std::string, std::unique_ptr<VirtualFunction>> functions;
};

/// A captured stream: what its operations do when the graph is launched.
struct VirtualGraph {
  std::vector<std::function<Result()>> operations;
};

/// The one GPU and everything that lives on it. A driver is global by nature.
struct Machine {
  std::mutex mutex;
  DeviceProfile profile;
  std::unique_ptr<vgpu::VirtualGpu> gpu;
  std::map<cuda::DevicePointer, std::unique_ptr<Buffer>> buffers;
  std::map<VirtualImage*, std::unique_ptr<VirtualImage>> images;
  std::map<cuda::Stream, std::unique_ptr<VirtualGraph>> capturing;
  std::map<VirtualGraph*, std::unique_ptr<VirtualGraph>> graphs;
  std::string log;
  std::string fail_function;
  int fail_code = 0;
  bool accept_cubins = false;
  int primary_references = 0;

  Machine() {
    const char* name = std::getenv("ATUNNER_VIRTUAL_CUDA_GPU");
    Play(name != nullptr ? name : "A100");
  }
  bool Play(const char* name) {
    const auto found = FindProfile(name);
    if (!found) return false;
    profile = *found;
    // Memory survives a change of name, so that a test may play several GPUs; only the first makes
    // the device.
    if (!gpu) gpu = std::make_unique<vgpu::VirtualGpu>(profile);
    return true;
  }
  /// Records a call; the code it must fail with, if a test asked for that.
  template <class... Args>
  Result Record(const char* function, fmt::format_string<Args...> format, Args&&... args) {
    log += std::string(function) + fmt::format(format, std::forward<Args>(args)...) + "\n";
    if (fail_function != function) return cuda::kSuccess;
    fail_function.clear();
    return fail_code;
  }
};

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

std::vector<cuda::Context>& ContextStack() {
  thread_local std::vector<cuda::Context> stack;
  return stack;
}

// NOLINTBEGIN(performance-no-int-to-ptr): handles are numbers.
cuda::Context PrimaryContext() { return reinterpret_cast<cuda::Context>(uintptr_t{0xc0}); }
cuda::Stream OnlyStream() { return reinterpret_cast<cuda::Stream>(uintptr_t{0x57}); }
// NOLINTEND(performance-no-int-to-ptr)

Result CodeOf(const Status& status) { return status ? cuda::kSuccess : cuda::kInvalidValue; }

Result LoadImage(Machine& machine, VirtualImage& image, const char* bytes) {
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return machine.accept_cubins ? cuda::kSuccess : cuda::kNoBinaryForGpu;
  const auto parsed = ptx::Parse(bytes);
  if (!parsed) return cuda::kInvalidPtx;
  CompiledModule module;
  module.ptx = bytes;
  auto loaded = machine.gpu->Load(module);
  if (!loaded) return cuda::kInvalidPtx;
  image.module = *std::move(loaded);
  for (const ptx::Function& function : parsed->functions()) {
    auto& sizes = image.params[function.name];
    for (const ptx::Variable& param : function.params)
      sizes.push_back(static_cast<uint32_t>(param.bytes));
  }
  return cuda::kSuccess;
}

std::vector<KernelArg> ReadArgs(const VirtualFunction& function, void** params) {
  std::vector<KernelArg> args;
  for (size_t i = 0; i < function.param_bytes.size(); ++i) {
    args.push_back(
        KernelArg::Value({static_cast<const std::byte*>(params[i]), function.param_bytes[i]}));
  }
  return args;
}

std::string Hex(const std::vector<KernelArg>& args) {
  std::string text;
  for (const KernelArg& arg : args) {
    uint64_t value = 0;
    std::memcpy(&value, arg.bytes.data(), std::min<size_t>(arg.size, sizeof value));
    text += fmt::format("{}{:x}", text.empty() ? "" : ",", value);
  }
  return text;
}

/// Executes an operation, or keeps it for the graph where the stream is being captured.
Result Do(Machine& machine, cuda::Stream stream, std::function<Result()> operation) {
  const auto captured = machine.capturing.find(stream);
  if (captured == machine.capturing.end()) return operation();
  captured->second->operations.push_back(std::move(operation));
  return cuda::kSuccess;
}

Result Execute(Machine& machine, const VirtualFunction& function, const LaunchShape& shape,
               const std::vector<KernelArg>& args) {
  const auto outcome = machine.gpu->Launch(*function.module, function.name, shape, args, {});
  if (outcome && outcome->completed()) return cuda::kSuccess;
  machine.log += "  failed: " + (outcome ? outcome->message : outcome.error().what) + "\n";
  for (const Hazard& hazard : outcome ? outcome->hazards : std::vector<Hazard>())
    machine.log += "  " + std::string(Name(hazard.kind)) + ": " + hazard.detail + "\n";
  return cuda::kIllegalAddress;
}

Result Launch(Machine& machine, const char* call, const LaunchShape& shape, cuda::Stream stream,
              const VirtualFunction& function, void** params) {
  const std::vector<KernelArg> args = ReadArgs(function, params);
  const auto extent = [](const Dim3& d) { return fmt::format("{},{},{}", d.x, d.y, d.z); };
  const Result asked = machine.Record(
      call, " {} grid={} block={} cluster={} shared={} stream={} args={}{}", function.name,
      extent(shape.grid), extent(shape.block), extent(shape.cluster), shape.dynamic_shared_bytes,
      static_cast<void*>(stream), Hex(args), shape.programmatic ? " programmatic" : "");
  if (asked != cuda::kSuccess || function.module == nullptr) return asked;
  return Do(machine, stream,
            [&machine, &function, shape, args] { return Execute(machine, function, shape, args); });
}

Result Allocate(Machine& machine, cuda::DevicePointer* address, size_t bytes) {
  auto buffer = machine.gpu->Allocate(bytes);
  if (!buffer) return cuda::kOutOfMemory;
  *address = (*buffer)->address();
  machine.buffers[*address] = *std::move(buffer);
  return cuda::kSuccess;
}

int Attribute(const DeviceProfile& profile, int which) {
  switch (which) {
    case cuda::kComputeCapabilityMajor:
      return profile.cc_major;
    case cuda::kComputeCapabilityMinor:
      return profile.cc_minor;
    case cuda::kMaxSharedPerBlockOptin:
      return profile.shared_per_block;
    case cuda::kMultiprocessorCount:
      return profile.sms;
    default:
      return 0;
  }
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace
}  // namespace atunner

// NOLINTBEGIN(readability-identifier-naming): the driver's names.
using namespace atunner;  // a file of C functions

/// A driver function: its machine is locked, the call recorded, and a failure that a test asked for
/// returned.
#define VIRTUAL_CUDA_CALL(...)                                                        \
  Machine& machine = TheMachine();                                                    \
  const Lock lock(machine.mutex);                                                     \
  if (const cuda::Result asked = machine.Record(__func__, __VA_ARGS__)) return asked; \
  static_assert(true)

extern "C" {

const char* virtual_cuda_log() {
  static std::string copy;
  const Lock lock(TheMachine().mutex);
  copy = TheMachine().log;
  return copy.c_str();
}
void virtual_cuda_reset_log() {
  const Lock lock(TheMachine().mutex);
  TheMachine().log.clear();
}
int virtual_cuda_play(const char* gpu) { return TheMachine().Play(gpu) ? 0 : 1; }
void virtual_cuda_accept_cubins(int accept) { TheMachine().accept_cubins = accept != 0; }
void virtual_cuda_fail_next(const char* function, int code) {
  TheMachine().fail_function = function;
  TheMachine().fail_code = code;
}
int virtual_cuda_context_depth() { return static_cast<int>(ContextStack().size()); }

int cuInit(unsigned flags) {
  VIRTUAL_CUDA_CALL(" {}", flags);
  return cuda::kSuccess;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == cuda::kNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == cuda::kOutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
                                        : "CUDA_ERROR_OF_THE_VIRTUAL_DRIVER";
  return cuda::kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "as the virtual driver says";
  return cuda::kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return cuda::kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? cuda::kSuccess : cuda::kInvalidValue;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, TheMachine().profile.full_name.c_str(), static_cast<size_t>(bytes) - 1);
  return cuda::kSuccess;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  *value = Attribute(TheMachine().profile, which);
  return cuda::kSuccess;
}
int cuDevicePrimaryCtxRetain(cuda::Context* context, int device) {
  VIRTUAL_CUDA_CALL(" {}", device);
  ++machine.primary_references;
  *context = PrimaryContext();
  return cuda::kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  VIRTUAL_CUDA_CALL(" {}", device);
  return --machine.primary_references < 0 ? cuda::kInvalidContext : cuda::kSuccess;
}
int cuCtxGetCurrent(cuda::Context* context) {
  *context = ContextStack().empty() ? nullptr : ContextStack().back();
  return cuda::kSuccess;
}
int cuCtxSetCurrent(cuda::Context context) {
  if (!ContextStack().empty()) ContextStack().pop_back();
  if (context != nullptr) ContextStack().push_back(context);
  return cuda::kSuccess;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return ContextStack().empty() ? cuda::kInvalidContext : cuda::kSuccess;
}
int cuCtxPushCurrent_v2(cuda::Context context) {
  if (context == nullptr) return cuda::kInvalidContext;
  ContextStack().push_back(context);
  return cuda::kSuccess;
}
int cuCtxPopCurrent_v2(cuda::Context* context) {
  if (ContextStack().empty()) return cuda::kInvalidContext;
  *context = ContextStack().back();
  ContextStack().pop_back();
  return cuda::kSuccess;
}

int cuModuleLoadDataEx(cuda::Module* module, const void* bytes, unsigned, int*, void**) {
  if (ContextStack().empty()) return cuda::kInvalidContext;
  const auto* text = static_cast<const char*>(bytes);
  VIRTUAL_CUDA_CALL(" {}", text[0] == '\x7f' ? "cubin" : "ptx");
  auto image = std::make_unique<VirtualImage>();
  if (const cuda::Result code = LoadImage(machine, *image, text)) return code;
  *module = reinterpret_cast<cuda::Module>(image.get());
  machine.images[image.get()] = std::move(image);
  return cuda::kSuccess;
}
int cuModuleUnload(cuda::Module module) {
  VIRTUAL_CUDA_CALL("{}", "");
  return machine.images.erase(reinterpret_cast<VirtualImage*>(module)) == 1 ? cuda::kSuccess
                                                                            : cuda::kInvalidHandle;
}
int cuModuleGetFunction(cuda::Function* function, cuda::Module module, const char* name) {
  VIRTUAL_CUDA_CALL(" {}", name);
  auto* image = reinterpret_cast<VirtualImage*>(module);
  if (image->module && !image->params.contains(name)) return cuda::kNotFound;
  auto& slot = image->functions[name];
  if (!slot)
    slot = std::make_unique<VirtualFunction>(
        VirtualFunction{name, image->module.get(), image->params[name]});
  *function = reinterpret_cast<cuda::Function>(slot.get());
  return cuda::kSuccess;
}
int cuModuleGetGlobal_v2(cuda::DevicePointer* address, size_t* bytes, cuda::Module module,
                         const char* name) {
  VIRTUAL_CUDA_CALL(" {}", name);
  auto* image = reinterpret_cast<VirtualImage*>(module);
  if (!image->module) return cuda::kNotFound;
  const auto found = machine.gpu->FindSymbol(*image->module, name);
  if (!found) return cuda::kNotFound;
  *address = found->first;
  *bytes = found->second;
  return cuda::kSuccess;
}
int cuFuncSetAttribute(cuda::Function function, int which, int value) {
  VIRTUAL_CUDA_CALL(" {} {}={}", reinterpret_cast<VirtualFunction*>(function)->name, which, value);
  return cuda::kSuccess;
}

int cuLaunchKernel(cuda::Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, cuda::Stream stream, void** params,
                   void**) {
  if (ContextStack().empty()) return cuda::kInvalidContext;
  const Lock lock(TheMachine().mutex);
  return Launch(TheMachine(), __func__, {{gx, gy, gz}, {bx, by, bz}, {}, shared}, stream,
                *reinterpret_cast<VirtualFunction*>(function), params);
}
int cuLaunchKernelEx(const cuda::LaunchConfig* config, cuda::Function function, void** params,
                     void**) {
  if (ContextStack().empty()) return cuda::kInvalidContext;
  LaunchShape shape{{config->grid_x, config->grid_y, config->grid_z},
                    {config->block_x, config->block_y, config->block_z},
                    {},
                    config->shared_bytes};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const auto& cluster = config->attributes[i].value.cluster;
    if (config->attributes[i].id == cuda::kLaunchAttributeClusterDimension)
      shape.cluster = {cluster.x, cluster.y, cluster.z};
    if (config->attributes[i].id == cuda::kLaunchAttributeCooperative)
      shape.cooperative = config->attributes[i].value.enabled != 0;
    if (config->attributes[i].id == cuda::kLaunchAttributeProgrammatic)
      shape.programmatic = config->attributes[i].value.enabled != 0;
  }
  const Lock lock(TheMachine().mutex);
  return Launch(TheMachine(), __func__, shape, config->stream,
                *reinterpret_cast<VirtualFunction*>(function), params);
}

int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int,
                           int swizzle, int, int fill) {
  VIRTUAL_CUDA_CALL(" {} rank={}", type, rank);
  TensorMapSpec spec;
  for (const DType dtype :
       {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
        DType::kUInt64, DType::kInt32, DType::kUInt32, DType::kUInt16, DType::kUInt8}) {
    if (TensorMapType(dtype) == type) spec.dtype = dtype;
  }
  spec.address = reinterpret_cast<uint64_t>(address);
  spec.dims.assign(dims, dims + rank);
  spec.strides.assign(strides, strides + rank - 1);
  spec.box.assign(box, box + rank);
  spec.element_strides.assign(steps, steps + rank);
  spec.swizzle_bytes = swizzle == 0 ? 0 : 16 << swizzle;
  spec.fill_nan = fill != 0;
  if (!Check(spec)) return cuda::kInvalidValue;
  const TensorMap encoded = vgpu::EncodeTensorMap(spec);
  std::memcpy(map, encoded.bytes.data(), encoded.bytes.size());
  return cuda::kSuccess;
}

int cuMemAlloc_v2(cuda::DevicePointer* address, size_t bytes) {
  VIRTUAL_CUDA_CALL(" {}", bytes);
  return Allocate(machine, address, bytes);
}
int cuMemFree_v2(cuda::DevicePointer address) {
  VIRTUAL_CUDA_CALL("{}", "");
  return machine.buffers.erase(address) == 1 ? cuda::kSuccess : cuda::kInvalidValue;
}
int cuMemAllocAsync(cuda::DevicePointer* address, size_t bytes, cuda::Stream stream) {
  VIRTUAL_CUDA_CALL(" {} stream={}", bytes, static_cast<void*>(stream));
  return Allocate(machine, address, bytes);
}
int cuMemFreeAsync(cuda::DevicePointer address, cuda::Stream stream) {
  VIRTUAL_CUDA_CALL(" stream={}", static_cast<void*>(stream));
  return machine.buffers.erase(address) == 1 ? cuda::kSuccess : cuda::kInvalidValue;
}
int cuMemcpyHtoD_v2(cuda::DevicePointer to, const void* from, size_t bytes) {
  VIRTUAL_CUDA_CALL(" {}", bytes);
  return CodeOf(machine.gpu->CopyIn(to, {static_cast<const std::byte*>(from), bytes}));
}
int cuMemcpyDtoH_v2(void* to, cuda::DevicePointer from, size_t bytes) {
  VIRTUAL_CUDA_CALL(" {}", bytes);
  return CodeOf(machine.gpu->CopyOut({static_cast<std::byte*>(to), bytes}, from));
}
int cuMemcpyDtoDAsync_v2(cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes,
                         cuda::Stream stream) {
  VIRTUAL_CUDA_CALL(" {} stream={}", bytes, static_cast<void*>(stream));
  return Do(machine, stream, [&machine, to, from, bytes] {
    return CodeOf(machine.gpu->CopyWithin(to, from, bytes));
  });
}
int cuStreamCreate(cuda::Stream* stream, unsigned flags) {
  // A stream that waits for no other one gets a handle of its own, for captures.
  *stream = flags == 0 ? OnlyStream() : reinterpret_cast<cuda::Stream>(uintptr_t{0x58});
  return cuda::kSuccess;
}
int cuStreamIsCapturing(cuda::Stream stream, int* capturing) {
  const Lock lock(TheMachine().mutex);
  *capturing = TheMachine().capturing.contains(stream) ? 1 : 0;
  return cuda::kSuccess;
}
int cuStreamBeginCapture_v2(cuda::Stream stream, int mode) {
  VIRTUAL_CUDA_CALL(" {}", mode);
  machine.capturing[stream] = std::make_unique<VirtualGraph>();
  return cuda::kSuccess;
}
int cuStreamEndCapture(cuda::Stream stream, VirtualGraph** graph) {
  VIRTUAL_CUDA_CALL("{}", "");
  auto captured = machine.capturing.extract(stream);
  if (captured.empty()) return cuda::kInvalidValue;
  *graph = captured.mapped().get();
  machine.graphs[*graph] = std::move(captured.mapped());
  return cuda::kSuccess;
}
int cuGraphInstantiateWithFlags(VirtualGraph** executable, VirtualGraph* graph,
                                unsigned long long flags) {
  VIRTUAL_CUDA_CALL(" {}", flags);
  auto copy = std::make_unique<VirtualGraph>(*graph);
  *executable = copy.get();
  machine.graphs[*executable] = std::move(copy);
  return cuda::kSuccess;
}
int cuGraphLaunch(VirtualGraph* executable, cuda::Stream stream) {
  VIRTUAL_CUDA_CALL(" operations={} stream={}", executable->operations.size(),
                    static_cast<void*>(stream));
  for (const auto& operation : executable->operations) {
    if (const cuda::Result code = operation()) return code;
  }
  return cuda::kSuccess;
}
int cuGraphDestroy(VirtualGraph* graph) {
  VIRTUAL_CUDA_CALL("{}", "");
  return machine.graphs.erase(graph) == 1 ? cuda::kSuccess : cuda::kInvalidHandle;
}
int cuGraphExecDestroy(VirtualGraph* executable) {
  VIRTUAL_CUDA_CALL("{}", "");
  return machine.graphs.erase(executable) == 1 ? cuda::kSuccess : cuda::kInvalidHandle;
}
int cuStreamSynchronize(cuda::Stream) { return cuda::kSuccess; }
int cuStreamDestroy_v2(cuda::Stream) { return cuda::kSuccess; }
}
// NOLINTEND(readability-identifier-naming)
