// The few functions of the CUDA driver that loading and launching need, opened at run time;
// contexts and modules with owners.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/result.h"

namespace atunner::loader {

/// Device memory, and copies from and to the host.
struct MemoryFunctions {
  cuda::Result (*allocate)(cuda::DevicePointer*, size_t) = nullptr;
  cuda::Result (*free)(cuda::DevicePointer) = nullptr;
  cuda::Result (*upload)(cuda::DevicePointer, const void*, size_t) = nullptr;
  cuda::Result (*download)(void*, cuda::DevicePointer, size_t) = nullptr;
  cuda::Result (*synchronize)(cuda::Stream) = nullptr;
  // 11.2; nullptr in older drivers.
  cuda::Result (*allocate_async)(cuda::DevicePointer*, size_t, cuda::Stream) = nullptr;
  cuda::Result (*free_async)(cuda::DevicePointer, cuda::Stream) = nullptr;
};

using Graph = struct GraphTag*;          ///< CUgraph
using GraphExec = struct GraphExecTag*;  ///< CUgraphExec
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureThreadLocal = 1;  ///< CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

/// Recording streams as CUDA graphs: CUDA 11.4. All are nullptr where the driver lacks one.
struct GraphFunctions {
  cuda::Result (*create_stream)(cuda::Stream*, unsigned) = nullptr;
  cuda::Result (*destroy_stream)(cuda::Stream) = nullptr;
  cuda::Result (*is_capturing)(cuda::Stream, int*) = nullptr;
  cuda::Result (*begin_capture)(cuda::Stream, int) = nullptr;
  cuda::Result (*end_capture)(cuda::Stream, Graph*) = nullptr;
  cuda::Result (*instantiate)(GraphExec*, Graph, unsigned long long) = nullptr;
  cuda::Result (*launch)(GraphExec, cuda::Stream) = nullptr;
  cuda::Result (*destroy_exec)(GraphExec) = nullptr;
  cuda::Result (*destroy_graph)(Graph) = nullptr;
  bool Complete() const { return create_stream != nullptr; }
};

struct DriverFunctions {
  MemoryFunctions memory;
  GraphFunctions graphs;
  cuda::Result (*init)(unsigned) = nullptr;
  cuda::Result (*error_name)(cuda::Result, const char**) = nullptr;
  cuda::Result (*error_string)(cuda::Result, const char**) = nullptr;
  cuda::Result (*device_count)(int*) = nullptr;
  cuda::Result (*device)(cuda::Device*, int) = nullptr;
  cuda::Result (*device_name)(char*, int, cuda::Device) = nullptr;
  cuda::Result (*device_attribute)(int*, int, cuda::Device) = nullptr;
  cuda::Result (*retain_primary)(cuda::Context*, cuda::Device) = nullptr;
  cuda::Result (*release_primary)(cuda::Device) = nullptr;
  cuda::Result (*current_context)(cuda::Context*) = nullptr;
  cuda::Result (*context_device)(cuda::Device*) = nullptr;
  cuda::Result (*push_context)(cuda::Context) = nullptr;
  cuda::Result (*pop_context)(cuda::Context*) = nullptr;
  cuda::Result (*load)(cuda::Module*, const void*, unsigned, int*, void**) = nullptr;
  cuda::Result (*unload)(cuda::Module) = nullptr;
  cuda::Result (*function)(cuda::Function*, cuda::Module, const char*) = nullptr;
  cuda::Result (*global)(cuda::DevicePointer*, size_t*, cuda::Module, const char*) = nullptr;
  cuda::Result (*set_function)(cuda::Function, int, int) = nullptr;
  cuda::Result (*copy_within)(cuda::DevicePointer, cuda::DevicePointer, size_t,
                              cuda::Stream) = nullptr;
  cuda::Result (*launch)(cuda::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, cuda::Stream, void**, void**) = nullptr;
  // Functions that older drivers lack; nullptr then.
  // 11.8
  cuda::Result (*launch_extended)(const cuda::LaunchConfig*, cuda::Function, void**,
                                  void**) = nullptr;
  // 12.0
  cuda::EncodeTiled encode_tiled = nullptr;
};

class Driver {
 public:
  /// `path` "": $ATUNNER_LIBCUDA, else libcuda.so.1. kUnavailable when there is none or it does not
  /// start.
  static Result<std::shared_ptr<const Driver>> Open(const std::string& path);

  const DriverFunctions& cu() const { return functions_; }
  /// kUnavailable with the driver's own words; success for kSuccess.
  Status Check(cuda::Result code, const std::string& action) const;

 private:
  DriverFunctions functions_;
};

/// Properties of a GPU that decide which kernel fits.
struct DeviceFacts {
  std::string name;
  int cc_major = 0;
  int cc_minor = 0;
  int shared_per_block = 0;  ///< bytes, opt-in limit
};

/// A context that modules live in: the primary one of a device (held while this object lives) or
/// the caller's own.
class ContextOwner {
 public:
  static Result<std::shared_ptr<const ContextOwner>> Primary(std::shared_ptr<const Driver> driver,
                                                             int ordinal);
  static Result<std::shared_ptr<const ContextOwner>> Current(std::shared_ptr<const Driver> driver);
  ~ContextOwner();
  ContextOwner(const ContextOwner&) = delete;
  ContextOwner& operator=(const ContextOwner&) = delete;

  const Driver& driver() const { return *driver_; }
  cuda::Context handle() const { return handle_; }
  const DeviceFacts& facts() const { return facts_; }

 private:
  ContextOwner(std::shared_ptr<const Driver> driver, cuda::Device device)
      : driver_(std::move(driver)), device_(device) {}
  Status ReadFacts();

  std::shared_ptr<const Driver> driver_;
  cuda::Device device_ = 0;
  cuda::Context handle_ = nullptr;
  bool retained_ = false;
  DeviceFacts facts_;
};

/// Makes a context current for a scope and restores the previous one.
class ContextScope {
 public:
  explicit ContextScope(const ContextOwner& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  Status status() const;

 private:
  const ContextOwner& context_;
  cuda::Result code_;
};

/// A loaded image.
class ModuleOwner {
 public:
  /// `image` is a cubin, or PTX text that the driver compiles. kUnsupported when the device cannot
  /// run it.
  static Result<std::shared_ptr<const ModuleOwner>> Load(
      std::shared_ptr<const ContextOwner> context, const std::string& image);
  ~ModuleOwner();
  ModuleOwner(const ModuleOwner&) = delete;
  ModuleOwner& operator=(const ModuleOwner&) = delete;

  const ContextOwner& context() const { return *context_; }
  cuda::Module handle() const { return handle_; }

  /// Lets a function of this module have `bytes` of dynamic shared memory. Never lowers what
  /// another kernel of the module was given before. The context must be current. Thread-safe.
  Status AllowShared(cuda::Function function, uint32_t bytes, const std::string& name) const;

 private:
  explicit ModuleOwner(std::shared_ptr<const ContextOwner> context)
      : context_(std::move(context)) {}

  std::shared_ptr<const ContextOwner> context_;
  cuda::Module handle_ = nullptr;
  mutable std::mutex mutex_;  ///< guards the members below
  mutable std::map<cuda::Function, uint32_t> shared_;
};

}  // namespace atunner::loader
