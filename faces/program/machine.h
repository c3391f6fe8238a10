// The one virtual GPU of a program, and all that its CUDA calls made: modules, memory, findings.
// Not thread-safe: the calls of the two interfaces hold `mutex`.
#pragma once

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

/// Numbers that CUDA's runtime and driver interfaces share.
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

/// Device code as it came with the program; loaded when something of it is first used.
class Module {
 public:
  explicit Module(std::string ptx) : ptx_(std::move(ptx)) {}
  /// The reason is kept: of a module that cannot be loaded every use fails.
  explicit Module(Error refused) : refused_(std::move(refused)) {}

 private:
  friend class Machine;
  std::string ptx_;
  int arch_ = 0;
  std::optional<Error> refused_;
  std::unique_ptr<LoadedModule> loaded_;
};

struct Kernel {
  Module* module = nullptr;
  std::string name;  ///< mangled
};

class Machine {
 public:
  /// What the order in the environment says; an A100 with all checks without one.
  static Machine& Get();
  std::mutex mutex;

  const DeviceProfile& profile() const { return order_.profile; }
  int arch() const { return profile().cc_major * 10 + profile().cc_minor; }
  vgpu::VirtualGpu& gpu() { return gpu_; }

  /// A fat binary, or a text of PTX. `linked`: of what it was linked from, when it was, null at the
  /// end.
  Module* AddModule(const char* image, const char* const* linked = nullptr);
  void RemoveModule(Module* module);
  /// Null when it cannot be loaded, which is told once.
  LoadedModule* Load(Module& module);
  /// Null when there is none, or its module cannot be loaded.
  const ptx::Function* FindEntry(const Kernel& kernel);
  /// Compute capability that the module was compiled for: 75, 90.
  int PtxArch(Module& module);
  /// That an SM holds at once, whatever their registers, which PTX does not tell.
  int BlocksPerSm(const ptx::Function& entry, const LaunchShape& shape) const;
  std::optional<std::pair<uint64_t, uint64_t>> FindSymbol(Module& module, const std::string& name);

  /// `params`: one address for each parameter. What goes wrong while it runs is found later, as on
  /// a GPU: by TakeFault.
  Code Launch(const Kernel& kernel, const LaunchShape& shape, void** params);
  /// Of the launches since it was asked last.
  Code TakeFault();

  /// Null when memory is used up. `host`: that the host writes to as well, so that all of it counts
  /// as written.
  void* Allocate(uint64_t bytes, bool host);
  Code Free(void* address, const char* call);
  /// Memory that the host has allocated, for kernels to use from now on.
  Code Register(void* address, uint64_t bytes);
  Code Unregister(void* address);
  bool IsHostMemory(const void* address) const { return host_memory_.contains(address); }
  /// Rows of either side, of the host's memory or the device's.
  struct Rows {
    char* at = nullptr;
    uint64_t pitch = 0;
  };
  Code Copy(const char* call, Rows to, Rows from, uint64_t width, uint64_t height);
  Code Copy(const char* call, void* to, const void* from, uint64_t bytes) {
    return Copy(call, {static_cast<char*>(to), bytes},
                {static_cast<char*>(const_cast<void*>(from)), bytes}, bytes, 1);
  }
  /// `value` repeated: of 1, 2 or 4 bytes.
  Code Fill(const char* call, Rows to, uint32_t value, uint64_t value_bytes, uint64_t width,
            uint64_t height);

  /// Called before each launch, and after it.
  void OnLaunch(std::function<void()> before, std::function<void()> after) {
    before_launch_ = std::move(before);
    after_launch_ = std::move(after);
  }

  /// A call that was wrong, or that nothing here answers: told in the report.
  Code Misuse(Code code, const std::string& what);

  /// Leaks, and the last report. Further calls are answered still.
  void End();

 private:
  explicit Machine(Order order);
  Code CheckRange(const char* call, uint64_t address, uint64_t bytes);
  void Report();

  Order order_;
  vgpu::VirtualGpu gpu_;
  std::set<std::unique_ptr<Module>> modules_;
  std::map<void*, std::unique_ptr<Buffer>> buffers_;
  std::map<void*, std::unique_ptr<Buffer>> registered_;  ///< memory of the host's
  std::set<const void*> host_memory_;
  std::function<void()> before_launch_, after_launch_;
  Findings findings_;
  Code fault_ = kSuccess;
};

}  // namespace atunner::program
