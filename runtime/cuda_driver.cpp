#include "runtime/cuda_driver.h"

#include <array>
#include <cstdlib>

#include "atunner/base/dylib.h"

namespace atunner::loader {
namespace {

Status BindAll(const DynamicLibrary& library, DriverFunctions& f) {
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.init, "cuInit"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.error_name, "cuGetErrorName"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.error_string, "cuGetErrorString"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.device_count, "cuDeviceGetCount"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.device, "cuDeviceGet"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.device_name, "cuDeviceGetName"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.device_attribute, "cuDeviceGetAttribute"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.retain_primary, "cuDevicePrimaryCtxRetain"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.release_primary, "cuDevicePrimaryCtxRelease_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.current_context, "cuCtxGetCurrent"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.context_device, "cuCtxGetDevice"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.push_context, "cuCtxPushCurrent_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.pop_context, "cuCtxPopCurrent_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.load, "cuModuleLoadDataEx"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.unload, "cuModuleUnload"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.function, "cuModuleGetFunction"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.global, "cuModuleGetGlobal_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.set_function, "cuFuncSetAttribute"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.copy_within, "cuMemcpyDtoDAsync_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.memory.allocate, "cuMemAlloc_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.memory.free, "cuMemFree_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.memory.upload, "cuMemcpyHtoD_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.memory.download, "cuMemcpyDtoH_v2"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.memory.synchronize, "cuStreamSynchronize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(f.launch, "cuLaunchKernel"));
  f.encode_tiled = reinterpret_cast<cuda::EncodeTiled>(library.Find("cuTensorMapEncodeTiled"));
  f.launch_extended = reinterpret_cast<decltype(f.launch_extended)>(
      library.Find("cuLaunchKernelEx"));
  f.memory.allocate_async = reinterpret_cast<decltype(f.memory.allocate_async)>(
      library.Find("cuMemAllocAsync"));
  f.memory.free_async = reinterpret_cast<decltype(f.memory.free_async)>(
      library.Find("cuMemFreeAsync"));
  return {};
}

/// All of the functions, or none.
GraphFunctions FindGraphFunctions(const DynamicLibrary& library) {
  GraphFunctions found;
  const bool complete = library.Bind(found.create_stream, "cuStreamCreate") &&
                        library.Bind(found.destroy_stream, "cuStreamDestroy_v2") &&
                        library.Bind(found.is_capturing, "cuStreamIsCapturing") &&
                        library.Bind(found.begin_capture, "cuStreamBeginCapture_v2") &&
                        library.Bind(found.end_capture, "cuStreamEndCapture") &&
                        library.Bind(found.instantiate, "cuGraphInstantiateWithFlags") &&
                        library.Bind(found.launch, "cuGraphLaunch") &&
                        library.Bind(found.destroy_exec, "cuGraphExecDestroy") &&
                        library.Bind(found.destroy_graph, "cuGraphDestroy");
  return complete ? found : GraphFunctions{};
}

/// The library named, or the machine's own.
Result<DynamicLibrary> OpenLibrary(const std::string& path) {
  const char* variable = std::getenv("ATUNNER_LIBCUDA");
  const std::string named = !path.empty() ? path : variable != nullptr ? variable : "";
  if (!named.empty()) return DynamicLibrary::Open(std::array{named});
  return DynamicLibrary::Open(std::array{std::string("libcuda.so.1")}, CudaLibraryFolders());
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::Open(const std::string& path) {
  const auto library = OpenLibrary(path);
  if (!library) {
    return Fail(ErrorCode::kUnavailable, "there is no NVIDIA driver: " + library.error().what, "",
                "install the driver, or name the library with ATUNNER_LIBCUDA");
  }
  auto driver = std::make_shared<Driver>();
  ATUNNER_RETURN_IF_ERROR(BindAll(*library, driver->functions_));
  driver->functions_.graphs = FindGraphFunctions(*library);
  ATUNNER_RETURN_IF_ERROR(driver->Check(driver->cu().init(0), "start the NVIDIA driver"));
  return driver;
}

Status Driver::Check(cuda::Result code, const std::string& action) const {
  if (code == cuda::kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  functions_.error_name(code, &name);
  functions_.error_string(code, &text);
  return Fail(ErrorCode::kUnavailable, "cannot " + action + ": " +
                                           (name ? name : "error " + std::to_string(code)) +
                                           (text ? std::string(" (") + text + ")" : ""));
}

Result<std::shared_ptr<const ContextOwner>> ContextOwner::Primary(
    std::shared_ptr<const Driver> driver, int ordinal) {
  const DriverFunctions& cu = driver->cu();
  int count = 0;
  ATUNNER_RETURN_IF_ERROR(driver->Check(cu.device_count(&count), "count the GPUs"));
  if (ordinal < 0 || ordinal >= count) {
    return Invalid("there is no GPU " + std::to_string(ordinal) + ", this machine has " +
                   std::to_string(count));
  }
  cuda::Device device = 0;
  ATUNNER_RETURN_IF_ERROR(driver->Check(cu.device(&device, ordinal), "find the GPU"));
  std::shared_ptr<ContextOwner> owner(new ContextOwner(std::move(driver), device));
  ATUNNER_RETURN_IF_ERROR(
      owner->driver_->Check(cu.retain_primary(&owner->handle_, device), "open the GPU's context"));
  owner->retained_ = true;
  ATUNNER_RETURN_IF_ERROR(owner->ReadFacts());
  return owner;
}

Result<std::shared_ptr<const ContextOwner>> ContextOwner::Current(
    std::shared_ptr<const Driver> driver) {
  const DriverFunctions& cu = driver->cu();
  cuda::Context handle = nullptr;
  ATUNNER_RETURN_IF_ERROR(
      driver->Check(cu.current_context(&handle), "ask for the current context"));
  if (handle == nullptr) {
    return Invalid("this thread has no current CUDA context", "",
                   "make one current, or name the GPU by its number");
  }
  cuda::Device device = 0;
  ATUNNER_RETURN_IF_ERROR(driver->Check(cu.context_device(&device), "ask for the current GPU"));
  std::shared_ptr<ContextOwner> owner(new ContextOwner(std::move(driver), device));
  owner->handle_ = handle;
  ATUNNER_RETURN_IF_ERROR(owner->ReadFacts());
  return owner;
}

ContextOwner::~ContextOwner() {
  if (retained_) driver_->cu().release_primary(device_);
}

Status ContextOwner::ReadFacts() {
  const DriverFunctions& cu = driver_->cu();
  char name[256] = {};
  ATUNNER_RETURN_IF_ERROR(
      driver_->Check(cu.device_name(name, sizeof name, device_), "ask for the GPU's name"));
  facts_.name = name;
  const std::pair<int, int*> attributes[] = {
      {cuda::kComputeCapabilityMajor, &facts_.cc_major},
      {cuda::kComputeCapabilityMinor, &facts_.cc_minor},
      {cuda::kMaxSharedPerBlockOptin, &facts_.shared_per_block}};
  for (const auto& [which, slot] : attributes) {
    ATUNNER_RETURN_IF_ERROR(
        driver_->Check(cu.device_attribute(slot, which, device_), "ask for the GPU's properties"));
  }
  return {};
}

ContextScope::ContextScope(const ContextOwner& context)
    : context_(context), code_(context.driver().cu().push_context(context.handle())) {}

ContextScope::~ContextScope() {
  cuda::Context popped = nullptr;
  if (code_ == cuda::kSuccess) context_.driver().cu().pop_context(&popped);
}

Status ContextScope::status() const {
  return context_.driver().Check(code_, "use the kernel's CUDA context");
}

Result<std::shared_ptr<const ModuleOwner>> ModuleOwner::Load(
    std::shared_ptr<const ContextOwner> context, const std::string& image) {
  std::shared_ptr<ModuleOwner> owner(new ModuleOwner(std::move(context)));
  const ContextScope scope(owner->context());
  ATUNNER_RETURN_IF_ERROR(scope.status());
  std::array<char, 4096> log{};
  int options[] = {cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBufferBytes};
  void* bytes = reinterpret_cast<void*>(
      uintptr_t{log.size()});  // NOLINT(performance-no-int-to-ptr): a number
  void* values[] = {log.data(), bytes};
  const cuda::Result code = owner->context().driver().cu().load(&owner->handle_, image.c_str(), 2,
                                                                options, values);
  if (code == cuda::kSuccess) return owner;
  Status status = owner->context().driver().Check(code, "load the kernel");
  if (log[0] != '\0') status.error().what += std::string(": ") + log.data();
  if (code == cuda::kNoBinaryForGpu || code == cuda::kInvalidPtx)
    status.error().code = ErrorCode::kUnsupported;
  return std::unexpected(status.error());
}

Status ModuleOwner::AllowShared(cuda::Function function, uint32_t bytes,
                                const std::string& name) const {
  const std::lock_guard lock(mutex_);
  uint32_t& allowed = shared_[function];
  if (bytes <= allowed) return {};
  const Driver& driver = context_->driver();
  ATUNNER_RETURN_IF_ERROR(driver.Check(
      driver.cu().set_function(function, cuda::kFuncMaxDynamicShared, static_cast<int>(bytes)),
      "give '" + name + "' " + std::to_string(bytes) + " bytes of shared memory"));
  allowed = bytes;
  return {};
}

ModuleOwner::~ModuleOwner() {
  if (handle_ == nullptr) return;
  const ContextScope scope(*context_);
  if (scope.status()) context_->driver().cu().unload(handle_);
}

}  // namespace atunner::loader
