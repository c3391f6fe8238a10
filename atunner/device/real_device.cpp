#include "atunner/device/real_device.h"

#include <algorithm>
#include <bit>
#include <map>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/dylib.h"
#include "atunner/device/nvml.h"
#include "atunner/device/profiles.h"
#include "atunner/device/texture_driver.h"
#include "atunner/model/value/capabilities.h"

namespace atunner {
namespace {

// The functions of the driver API, by subject. Bind looks them up in the library; kUnavailable
// names a missing one.

struct DeviceCalls {
  cuda::Result (*init)(unsigned) = nullptr;
  cuda::Result (*version)(int*) = nullptr;
  cuda::Result (*count)(int*) = nullptr;
  cuda::Result (*get)(cuda::Device*, int) = nullptr;
  cuda::Result (*name)(char*, int, cuda::Device) = nullptr;
  cuda::Result (*total_memory)(size_t*, cuda::Device) = nullptr;
  cuda::Result (*attribute)(int*, int, cuda::Device) = nullptr;
  cuda::Result (*retain)(cuda::Context*, cuda::Device) = nullptr;
  cuda::Result (*set_current)(cuda::Context) = nullptr;
  cuda::Result (*error_name)(cuda::Result, const char**) = nullptr;
  cuda::Result (*error_string)(cuda::Result, const char**) = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(init, "cuInit"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(version, "cuDriverGetVersion"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(count, "cuDeviceGetCount"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(get, "cuDeviceGet"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(name, "cuDeviceGetName"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(total_memory, "cuDeviceTotalMem_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(attribute, "cuDeviceGetAttribute"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(retain, "cuDevicePrimaryCtxRetain"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(set_current, "cuCtxSetCurrent"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(error_name, "cuGetErrorName"));
    return library.Bind(error_string, "cuGetErrorString");
  }
};

struct MemoryCalls {
  cuda::Result (*alloc)(cuda::DevicePointer*, size_t) = nullptr;
  cuda::Result (*free)(cuda::DevicePointer) = nullptr;
  cuda::Result (*memory_info)(size_t*, size_t*) = nullptr;
  cuda::Result (*to_device)(cuda::DevicePointer, const void*, size_t) = nullptr;
  cuda::Result (*to_host)(void*, cuda::DevicePointer, size_t) = nullptr;
  cuda::Result (*within)(cuda::DevicePointer, cuda::DevicePointer, size_t, cuda::Stream) = nullptr;
  cuda::Result (*fill)(cuda::DevicePointer, unsigned char, size_t, cuda::Stream) = nullptr;
  cuda::Result (*reset_persisting)() = nullptr;
  cuda::EncodeTiled encode_tiled = nullptr;    ///< nullptr in drivers before CUDA 12
  cuda::EncodeIm2col encode_im2col = nullptr;  ///< nullptr in drivers before CUDA 12
  TextureDriver textures;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(alloc, "cuMemAlloc_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(free, "cuMemFree_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(memory_info, "cuMemGetInfo_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(to_device, "cuMemcpyHtoD_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(to_host, "cuMemcpyDtoH_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(within, "cuMemcpyDtoDAsync_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(fill, "cuMemsetD8Async"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(reset_persisting, "cuCtxResetPersistingL2Cache"));
    (void)library.Bind(encode_tiled, "cuTensorMapEncodeTiled");
    (void)library.Bind(encode_im2col, "cuTensorMapEncodeIm2col");
    textures.Bind(library);
    return {};
  }
};

struct ModuleCalls {
  cuda::Result (*load)(cuda::Module*, const void*) = nullptr;
  cuda::Result (*unload)(cuda::Module) = nullptr;
  cuda::Result (*function)(cuda::Function*, cuda::Module, const char*) = nullptr;
  cuda::Result (*global)(cuda::DevicePointer*, size_t*, cuda::Module, const char*) = nullptr;
  cuda::Result (*set_function)(cuda::Function, int, int) = nullptr;
  /// nullptr in drivers before CUDA 12.4
  cuda::Result (*parameter)(cuda::Function, size_t, size_t*, size_t*) = nullptr;
  cuda::Result (*launch)(const cuda::LaunchConfig*, cuda::Function, void**, void**) = nullptr;
  cuda::Result (*occupancy)(int*, cuda::Function, int, size_t) = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(load, "cuModuleLoadData"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(unload, "cuModuleUnload"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(function, "cuModuleGetFunction"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(global, "cuModuleGetGlobal_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(set_function, "cuFuncSetAttribute"));
    (void)library.Bind(parameter, "cuFuncGetParamInfo");
    ATUNNER_RETURN_IF_ERROR(library.Bind(launch, "cuLaunchKernelEx"));
    return library.Bind(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }
};

struct StreamCalls {
  cuda::Result (*stream_create)(cuda::Stream*, unsigned) = nullptr;
  cuda::Result (*stream_wait)(cuda::Stream) = nullptr;
  cuda::Result (*event_create)(cuda::Event*, unsigned) = nullptr;
  cuda::Result (*event_destroy)(cuda::Event) = nullptr;
  cuda::Result (*event_record)(cuda::Event, cuda::Stream) = nullptr;
  cuda::Result (*event_wait)(cuda::Event) = nullptr;
  cuda::Result (*event_elapsed)(float*, cuda::Event, cuda::Event) = nullptr;

  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(library.Bind(stream_create, "cuStreamCreate"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(stream_wait, "cuStreamSynchronize"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_create, "cuEventCreate"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_destroy, "cuEventDestroy_v2"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_record, "cuEventRecord"));
    ATUNNER_RETURN_IF_ERROR(library.Bind(event_wait, "cuEventSynchronize"));
    return library.Bind(event_elapsed, "cuEventElapsedTime");
  }
};

struct Driver : DeviceCalls, MemoryCalls, ModuleCalls, StreamCalls {
  Status Bind(const DynamicLibrary& library) {
    ATUNNER_RETURN_IF_ERROR(DeviceCalls::Bind(library));
    ATUNNER_RETURN_IF_ERROR(MemoryCalls::Bind(library));
    ATUNNER_RETURN_IF_ERROR(ModuleCalls::Bind(library));
    return StreamCalls::Bind(library);
  }
  std::string Text(cuda::Result code) const {
    const char* short_name = nullptr;
    const char* text = nullptr;
    error_name(code, &short_name);
    error_string(code, &text);
    return std::string(short_name ? short_name : "unknown error") +
           (text ? std::string(": ") + text : "");
  }
};

Result<Driver> OpenDriver() {
  auto library = OpenCudaLibrary(CudaLibrary::kDriver);
  if (!library) {
    return Fail(ErrorCode::kUnavailable,
                "there is no NVIDIA driver on this machine (libcuda.so.1 was not found)", "",
                "install the driver, or name a GPU with request.target to get predictions");
  }
  Driver driver;
  ATUNNER_RETURN_IF_ERROR(driver.Bind(*library));
  if (const cuda::Result code = driver.init(0); code != cuda::kSuccess) {
    return Fail(ErrorCode::kUnavailable, "the NVIDIA driver does not start: " + driver.Text(code),
                library->path());
  }
  return driver;
}

const Result<Driver>& SharedDriver() {
  static const Result<Driver> driver = OpenDriver();
  return driver;
}

class RealBuffer : public Buffer {
 public:
  RealBuffer(const Driver& driver, cuda::DevicePointer address, uint64_t bytes)
      : driver_(driver), address_(address), bytes_(bytes) {}
  ~RealBuffer() override { driver_.free(address_); }
  DeviceAddress address() const override { return address_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  const Driver& driver_;
  cuda::DevicePointer address_;
  uint64_t bytes_;
};

struct RealModule : LoadedModule {
  const Driver* driver = nullptr;
  cuda::Module handle = nullptr;
  std::vector<std::pair<std::string, std::string>> names;
  struct Entry {
    cuda::Function handle = nullptr;
    std::optional<std::vector<size_t>> parameters;  ///< sizes in bytes, where the driver tells them
  };
  std::map<std::string, Entry> entries;
  ~RealModule() override {
    if (handle) driver->unload(handle);
  }
  std::string Mangled(const std::string& entry) const {
    for (const auto& [name, mangled] : names) {
      if (name == entry) return mangled;
    }
    return entry;
  }
};

struct RealEvent : Event {
  const Driver* driver = nullptr;
  cuda::Event handle = nullptr;
  ~RealEvent() override { driver->event_destroy(handle); }
};

DeviceProfile ProfileOf(const Driver& driver, cuda::Device device, const std::string& name,
                        uint64_t memory) {
  const auto attribute = [&](int which) {
    int value = 0;
    driver.attribute(&value, which, device);
    return value;
  };
  const int major = attribute(cuda::kComputeCapabilityMajor);
  const int minor = attribute(cuda::kComputeCapabilityMinor);
  DeviceProfile profile;
  if (const DeviceProfile* known = MatchDriverName(name)) {
    profile = *known;
  } else {
    // the nearest relative of the same architecture
    for (const DeviceProfile& each : KnownProfiles()) {
      if (each.cc_major == major && (profile.name.empty() || each.cc_minor <= minor))
        profile = each;
    }
    profile.name = name;
    profile.source = "driver attributes, the rest from a relative of compute capability " +
                     std::to_string(major) + "." + std::to_string(minor);
  }
  profile.full_name = name;
  profile.cc_major = major;
  profile.cc_minor = minor;
  profile.sms = attribute(cuda::kMultiprocessorCount);
  profile.shared_per_block = attribute(cuda::kMaxSharedPerBlockOptin);
  profile.shared_per_sm = attribute(cuda::kMaxSharedPerMultiprocessor);
  profile.shared_reserved_per_block = attribute(cuda::kReservedSharedPerBlock);
  profile.l2_bytes = attribute(cuda::kL2CacheSize);
  profile.dram_bytes = static_cast<int64_t>(memory);
  if (const int khz = attribute(cuda::kClockRateKhz); khz > 0) profile.clock_ghz = khz * 1e-6;
  return profile;
}

class RealDevice : public TimedDevice {
 public:
  RealDevice(const Driver& driver, RealDeviceInfo info, cuda::Stream stream)
      : driver_(driver), info_(std::move(info)), stream_(stream), nvml_(Nvml::Open(info_.index)) {}

  const DeviceProfile& profile() const override { return info_.profile; }
  Evidence evidence() const override { return Evidence::kMeasured; }
  std::string arch() const override { return info_.profile.Arch(); }

  Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) override {
    cuda::DevicePointer address = 0;
    const cuda::Result code = driver_.alloc(&address, std::max<uint64_t>(bytes, 1));
    if (code == cuda::kOutOfMemory)
      return Fail(ErrorCode::kUnavailable,
                  "out of device memory: " + std::to_string(bytes) + " bytes asked for");
    ATUNNER_RETURN_IF_ERROR(Check(code, "allocate"));
    return std::make_unique<RealBuffer>(driver_, address, bytes);
  }
  Status CopyIn(DeviceAddress to, std::span<const std::byte> from) override {
    return Check(driver_.to_device(to, from.data(), from.size()), "copy to the device");
  }
  Status CopyOut(std::span<std::byte> to, DeviceAddress from) override {
    return Check(driver_.to_host(to.data(), from, to.size()), "copy from the device");
  }
  Status CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) override {
    return Check(driver_.within(to, from, bytes, stream_), "copy on the device");
  }
  Status Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) override {
    return EnqueueFill(to, byte, bytes);
  }
  Result<uint64_t> FreeBytes() override {
    size_t free_bytes = 0;
    size_t total = 0;
    ATUNNER_RETURN_IF_ERROR(Check(driver_.memory_info(&free_bytes, &total), "ask for free memory"));
    return free_bytes;
  }

  Result<TensorMap> EncodeTensorMap(const TensorMapSpec& spec) override {
    const bool missing = spec.im2col ? driver_.encode_im2col == nullptr
                                     : driver_.encode_tiled == nullptr;
    if (missing || !CapabilitiesOf(info_.profile).tma) return Device::EncodeTensorMap(spec);
    ATUNNER_RETURN_IF_ERROR(atunner::Check(spec));
    TensorMap map;
    ATUNNER_RETURN_IF_ERROR(Check(spec.im2col ? Encode(driver_.encode_im2col, spec, map)
                                              : Encode(driver_.encode_tiled, spec, map),
                                  "encode a tensor map"));
    return map;
  }

  Result<std::unique_ptr<Texture>> CreateTexture(const TextureSpec& spec,
                                                 std::span<const std::byte> texels) override {
    if (!driver_.textures.available()) return Device::CreateTexture(spec, texels);
    ATUNNER_RETURN_IF_ERROR(atunner::Check(spec));
    if (texels.size() != spec.Bytes())
      return Invalid("a texture needs " + std::to_string(spec.Bytes()) + " bytes");
    std::unique_ptr<Texture> texture;
    ATUNNER_RETURN_IF_ERROR(
        Check(driver_.textures.Create(spec, texels, texture), "create a texture"));
    return texture;
  }

  Result<std::unique_ptr<LoadedModule>> Load(const CompiledModule& module) override {
    auto loaded = std::make_unique<RealModule>();
    loaded->driver = &driver_;
    const std::string& image = module.cubin.empty() ? module.ptx : module.cubin;
    ATUNNER_RETURN_IF_ERROR(Check(driver_.load(&loaded->handle, image.c_str()), "load the module"));
    for (const KernelResources& kernel : module.kernels)
      loaded->names.emplace_back(kernel.entry, kernel.mangled);
    return loaded;
  }

  Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule& module,
                                                        const std::string& symbol) override {
    cuda::DevicePointer address = 0;
    size_t bytes = 0;
    if (driver_.global(&address, &bytes, static_cast<RealModule&>(module).handle, symbol.c_str()) !=
        cuda::kSuccess) {
      return Fail(ErrorCode::kNotFound, "the module has no symbol '" + symbol + "'");
    }
    return std::pair<DeviceAddress, uint64_t>(address, bytes);
  }

  Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry,
                               const LaunchShape& shape, std::span<const KernelArg> args,
                               const LaunchOptions&) override {
    LaunchOutcome outcome = Enqueue(module, entry, shape, args);
    if (outcome.completed()) outcome = Synchronize();
    if (outcome.completed()) outcome.blocks_executed = shape.grid.Count();
    return outcome;
  }

  Result<LaunchOutcome> Post(LoadedModule& module, const std::string& entry,
                             const LaunchShape& shape, std::span<const KernelArg> args,
                             const LaunchOptions&) override {
    return Enqueue(module, entry, shape, args);
  }

  LaunchOutcome Enqueue(LoadedModule& module, const std::string& entry, const LaunchShape& shape,
                        std::span<const KernelArg> args) override {
    auto& loaded = static_cast<RealModule&>(module);
    const auto found = Find(loaded, entry);
    if (!found) return {LaunchOutcome::Kind::kRefused, found.error().what, {}, 0};
    const cuda::Function function = (*found)->handle;
    if (std::string impossible = ImpossibleSizes(shape); !impossible.empty())
      return {LaunchOutcome::Kind::kRefused, std::move(impossible), {}, 0};
    if (const auto& parameters = (*found)->parameters) {
      std::string misfit = Misfit(entry, *parameters, args);
      if (!misfit.empty()) return {LaunchOutcome::Kind::kRefused, std::move(misfit), {}, 0};
    }
    // With what the kernel declares, less than 48 KiB can already be more than is allowed unasked.
    if (shape.dynamic_shared_bytes > 0) {
      if (const auto code = driver_.set_function(function, cuda::kFuncMaxDynamicShared,
                                                 static_cast<int>(shape.dynamic_shared_bytes));
          code != cuda::kSuccess) {
        return {LaunchOutcome::Kind::kRefused, "shared memory: " + driver_.Text(code), {}, 0};
      }
    }
    cuda::LaunchAttributes attributes(shape.cooperative, shape.programmatic);
    if (shape.cluster.Count() > 1)
      attributes.SetCluster(shape.cluster.x, shape.cluster.y, shape.cluster.z);
    if (shape.cluster.Count() > 8) driver_.set_function(function, cuda::kFuncNonPortableCluster, 1);
    const cuda::LaunchConfig config{shape.grid.x,
                                    shape.grid.y,
                                    shape.grid.z,
                                    shape.block.x,
                                    shape.block.y,
                                    shape.block.z,
                                    shape.dynamic_shared_bytes,
                                    stream_,
                                    attributes.list.data(),
                                    attributes.count};
    std::vector<void*> pointers;  // of what the driver copies
    for (const KernelArg& arg : args) pointers.push_back(const_cast<std::byte*>(arg.data()));
    const cuda::Result code = driver_.launch(&config, function, pointers.data(), nullptr);
    if (code != cuda::kSuccess) return {LaunchOutcome::Kind::kRefused, driver_.Text(code), {}, 0};
    return {};
  }

  LaunchOutcome Synchronize() override {
    const cuda::Result code = driver_.stream_wait(stream_);
    if (code == cuda::kSuccess) return {};
    return {LaunchOutcome::Kind::kFaulted, driver_.Text(code), {}, 0};
  }

  Result<std::unique_ptr<Event>> CreateEvent() override {
    auto event = std::make_unique<RealEvent>();
    event->driver = &driver_;
    ATUNNER_RETURN_IF_ERROR(Check(driver_.event_create(&event->handle, 0), "make an event"));
    return event;
  }
  Status Record(Event& event) override {
    return Check(driver_.event_record(static_cast<RealEvent&>(event).handle, stream_),
                 "record an event");
  }
  Result<double> ElapsedNs(Event& start, Event& end) override {
    ATUNNER_RETURN_IF_ERROR(
        Check(driver_.event_wait(static_cast<RealEvent&>(end).handle), "wait for an event"));
    float ms = 0;
    ATUNNER_RETURN_IF_ERROR(Check(driver_.event_elapsed(&ms, static_cast<RealEvent&>(start).handle,
                                                        static_cast<RealEvent&>(end).handle),
                                  "read a time"));
    return static_cast<double>(ms) * 1e6;
  }
  Status EnqueueFill(DeviceAddress to, uint8_t byte, uint64_t bytes) override {
    return Check(driver_.fill(to, byte, bytes, stream_), "fill");
  }
  Status ResetPersistingL2() override {
    driver_.reset_persisting();  // devices without persisting lines refuse, and need nothing
    return {};
  }
  void* stream() override { return stream_; }
  ClockState Clocks() override { return nvml_ ? nvml_->Read() : ClockState{}; }
  Result<double> EnergyJoules() override {
    const auto joules = nvml_ ? nvml_->EnergyJoules() : std::nullopt;
    if (joules) return *joules;
    return Fail(ErrorCode::kUnsupported, "this GPU counts no energy (NVML's total energy counter)",
                info_.name,
                "leave energy out of request.objective; GPUs from Volta on count it where the "
                "driver lets them");
  }
  std::string DriverVersion() const override {
    int version = 0;
    driver_.version(&version);
    return (nvml_ ? nvml_->DriverVersion() + ", " : std::string()) + "CUDA " +
           std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  Result<int> DriverOccupancy(LoadedModule& module, const std::string& entry,
                              const LaunchShape& shape) override {
    ATUNNER_TRY(const RealModule::Entry* found, Find(static_cast<RealModule&>(module), entry));
    const cuda::Function function = found->handle;
    if (shape.dynamic_shared_bytes > 0)
      driver_.set_function(function, cuda::kFuncMaxDynamicShared,
                           static_cast<int>(shape.dynamic_shared_bytes));
    int blocks = 0;
    ATUNNER_RETURN_IF_ERROR(
        Check(driver_.occupancy(&blocks, function, static_cast<int>(shape.block.Count()),
                                shape.dynamic_shared_bytes),
              "compute occupancy"));
    return blocks;
  }

 private:
  Status Check(cuda::Result code, const char* action) const {
    if (code == cuda::kSuccess) return {};
    return Fail(ErrorCode::kUnavailable,
                std::string("the device cannot ") + action + ": " + driver_.Text(code), info_.name);
  }
  Result<const RealModule::Entry*> Find(RealModule& module, const std::string& name) {
    if (const auto found = module.entries.find(name); found != module.entries.end())
      return &found->second;
    RealModule::Entry entry;
    if (driver_.function(&entry.handle, module.handle, module.Mangled(name).c_str()) !=
        cuda::kSuccess)
      return Invalid("there is no kernel '" + name + "'");
    if (driver_.parameter != nullptr) {
      size_t offset = 0;
      size_t bytes = 0;
      entry.parameters.emplace();
      while (driver_.parameter(entry.handle, entry.parameters->size(), &offset, &bytes) ==
             cuda::kSuccess)
        entry.parameters->push_back(bytes);
    }
    return &(module.entries[name] = std::move(entry));
  }

  const Driver& driver_;
  RealDeviceInfo info_;
  cuda::Stream stream_;
  std::unique_ptr<Nvml> nvml_;
};

Result<RealDeviceInfo> Describe(const Driver& driver, int index) {
  cuda::Device device = 0;
  char name[256] = "";
  size_t memory = 0;
  if (driver.get(&device, index) != cuda::kSuccess ||
      driver.name(name, sizeof name, device) != cuda::kSuccess ||
      driver.total_memory(&memory, device) != cuda::kSuccess) {
    return Fail(ErrorCode::kNotFound, "there is no GPU number " + std::to_string(index));
  }
  return RealDeviceInfo{index, name, ProfileOf(driver, device, name, memory), memory};
}

}  // namespace

Result<std::vector<RealDeviceInfo>> ListRealDevices() {
  const Result<Driver>& driver = SharedDriver();
  if (!driver) return std::unexpected(driver.error());
  int count = 0;
  driver->count(&count);
  if (count == 0) return Fail(ErrorCode::kUnavailable, "the driver finds no GPU");
  std::vector<RealDeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    ATUNNER_TRY(RealDeviceInfo info, Describe(*driver, i));
    devices.push_back(std::move(info));
  }
  return devices;
}

Result<std::unique_ptr<TimedDevice>> OpenRealDevice(int index) {
  const Result<Driver>& driver = SharedDriver();
  if (!driver) return std::unexpected(driver.error());
  ATUNNER_TRY(RealDeviceInfo info, Describe(*driver, index));
  cuda::Device device = 0;
  driver->get(&device, index);
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::Result code = driver->retain(&context, device);
  if (code == cuda::kSuccess) code = driver->set_current(context);
  if (code == cuda::kSuccess) code = driver->stream_create(&stream, 0);
  if (code != cuda::kSuccess)
    return Fail(ErrorCode::kUnavailable, "cannot use the GPU: " + driver->Text(code), info.name);
  return std::make_unique<RealDevice>(*driver, std::move(info), stream);
}

}  // namespace atunner
