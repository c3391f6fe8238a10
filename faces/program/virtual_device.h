// The virtual GPU of a process, with everything that the process made by CUDA calls: modules,
// memory, findings. Not thread-safe: the functions of the runtime and of the driver interface lock
// `mutex`.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/vgpu/virtual_gpu.h"
#include "faces/program/fat_binary.h"
#include "faces/program/findings.h"

namespace atunner::program {

/// Error codes that CUDA's runtime and driver interfaces share.
enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kNoKernelImage = 209,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kMisalignedAddress = 716,
  kLaunchFailure = 719,
  kCooperativeTooLarge = 720,
  kNotSupported = 801,
};

/// Device code of the program. It is loaded when one of its kernels or variables is first used.
class Module {
 public:
  explicit Module(std::string ptx) : ptx_(std::move(ptx)) {}
  /// A module that cannot be loaded. Every use of it fails for this reason.
  explicit Module(Error refused) : refused_(std::move(refused)) {}

 private:
  friend class VirtualDevice;
  std::string ptx_;
  int arch_ = 0;
  std::optional<Error> refused_;
  std::unique_ptr<LoadedModule> loaded_;
};

struct Kernel {
  Module* module = nullptr;
  std::string name;  ///< mangled
};

class Applier;
class Recorder;

class VirtualDevice {
 public:
  /// The device that the order in the environment describes; without an order, an A100 with all
  /// checks.
  static VirtualDevice& Get();
  std::mutex mutex;

  const DeviceProfile& profile() const { return order_.profile; }
  int arch() const { return profile().cc_major * 10 + profile().cc_minor; }
  vgpu::VirtualGpu& gpu() { return gpu_; }

  /// Adds a fat binary or a PTX text. `linked`: the fat binaries that it was linked from, with
  /// nullptr at the end; nullptr if it was not linked.
  Module* AddModule(const char* image, const char* const* linked = nullptr);
  void RemoveModule(Module* module);
  /// nullptr when it cannot be loaded, which is reported once.
  LoadedModule* Load(Module& module);
  /// nullptr when there is no such kernel, or its module cannot be loaded.
  const ptx::Function* FindEntry(const Kernel& kernel);
  /// Compute capability that the module was compiled for: 75, 90.
  int PtxArch(Module& module);
  /// Blocks that an SM can hold at once. Registers are not considered, because PTX does not say how
  /// many a thread needs.
  int BlocksPerSm(const ptx::Function& entry, const LaunchShape& shape) const;
  std::optional<std::pair<uint64_t, uint64_t>> FindSymbol(Module& module, const std::string& name);

  /// `params`: one address per parameter. Errors while the kernel runs are returned later, by
  /// TakeFault, as on a GPU.
  Code Launch(const Kernel& kernel, const LaunchShape& shape, void** params);
  /// The first error of the launches since the last call.
  Code TakeFault();

  /// nullptr when memory is used up. `host`: the host writes to it as well, so that all of it
  /// counts as written.
  void* Allocate(uint64_t bytes, bool host);
  Code Free(void* address, const char* call);
  /// Lets kernels use memory that the host has allocated.
  Code Register(void* address, uint64_t bytes);
  Code Unregister(void* address);
  bool IsHostMemory(const void* address) const { return host_memory_.contains(address); }
  /// Rows of one side of a copy, in host or device memory.
  struct Rows {
    char* at = nullptr;
    uint64_t pitch = 0;
  };
  Code Copy(const char* call, Rows to, Rows from, uint64_t width, uint64_t height);
  Code Copy(const char* call, void* to, const void* from, uint64_t bytes) {
    return Copy(call, {static_cast<char*>(to), bytes},
                {static_cast<char*>(const_cast<void*>(from)), bytes}, bytes, 1);
  }
  /// Repeats `value`, which has 1, 2 or 4 bytes.
  Code Fill(const char* call, Rows to, uint32_t value, uint64_t value_bytes, uint64_t width,
            uint64_t height);

  /// Functions to call before and after each launch.
  void OnLaunch(std::function<void()> before, std::function<void()> after) {
    before_launch_ = std::move(before);
    after_launch_ = std::move(after);
  }

  /// Reports a wrong or unsupported call. Returns `code`.
  Code Misuse(Code code, const std::string& what);

  /// Reports leaks, and writes the last report. Further calls are still answered.
  void End();

 private:
  explicit VirtualDevice(Order order);
  ~VirtualDevice();
  /// The PTX of a fat binary or of a text, see AddModule.
  Result<std::string> PtxOf(const char* image, const char* const* linked) const;
  LaunchOptions OptionsOfLaunches() const;
  /// The launch itself, recorded or replaced where that was ordered.
  Result<LaunchOutcome> Execute(const Kernel& kernel, const ptx::Function& entry,
                                const LaunchShape& shape, void** params);
  double SecondsSinceStart() const;
  /// True when a program that is recorded has run long enough.
  bool IsLongEnough() const;
  /// Ends the program, which takes too long to be recorded whole.
  [[noreturn]] void Abandon();
  /// Adds the hazards of a launch to the findings, and prints its output.
  void AddFindings(const std::string& kernel, const LaunchOutcome& outcome);
  Code CheckRange(const char* call, uint64_t address, uint64_t bytes);
  void Report();

  Order order_;
  vgpu::VirtualGpu gpu_;
  std::unique_ptr<Recorder> recorder_;  ///< nullptr: nothing is recorded
  std::unique_ptr<Applier> applier_;    ///< nullptr: no launch is replaced
  std::set<std::unique_ptr<Module>> modules_;
  std::map<void*, std::unique_ptr<Buffer>> buffers_;
  std::map<void*, std::unique_ptr<Buffer>> registered_;  ///< host memory
  std::set<const void*> host_memory_;
  std::function<void()> before_launch_, after_launch_;
  Findings findings_;
  Code fault_ = kSuccess;
  double recorded_at_ = 0;  ///< seconds since the start, of the last launch with its memory
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace atunner::program
