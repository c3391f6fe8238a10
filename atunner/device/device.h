// The interface to a GPU, real or virtual. `verify` and the rooms above use only this interface;
// faces/wiring decides which device implements it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/compiled_module.h"
#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/kernel/tensor_map.h"
#include "atunner/model/kernel/texture.h"
#include "atunner/model/trial/trial.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

/// Device memory: an address in the device's space. Owned by the Buffer that Device::Allocate
/// returned.
using DeviceAddress = uint64_t;

/// One problem a device found while it executed a kernel (the virtual GPU finds many kinds, a real
/// one few).
struct Hazard {
  enum class Kind : uint8_t {
    kOutOfBounds,
    kMisaligned,
    kUninitialisedShared,
    kUninitialisedGlobal,
    kUninitialisedLocal,
    kUninitialisedRegister,
    kRace,
    kDivergentBarrier,
    kDeadlock,
    kInvalidShuffle,
    kAsyncCopyInFlight,
    kInstructionBudget,
    kTrap,
    kLeak,
  };
  /// The thread that caused it, and the place in the source.
  struct Site {
    std::string file;   ///< as the compiler names it; "" = unknown
    uint32_t line = 0;  ///< of the file; of the PTX when the file is unknown
    uint64_t block = 0;
    uint32_t thread = 0;
  };
  Kind kind = Kind::kOutOfBounds;
  std::string kernel;
  std::string where;  ///< "softmax.cu:41"
  /// Block, thread, address, allocation, the other side of a race: one sentence
  std::string detail;
  Site site;                  ///< virtual GPU: of the first time
  std::optional<Site> other;  ///< virtual GPU: the earlier access of a race
  std::string space;          ///< "global", "shared", "local"; "" when no address is at fault
  uint64_t address = 0;
  std::string allocation;  ///< of a global address: name, size, offset
  uint64_t count = 1;      ///< times at this place, LaunchOptions::keep_going
};
std::string_view Name(Hazard::Kind kind);

/// Kinds of hazards, grouped as users ask for them.
enum class HazardGroup : uint8_t { kMemory = 1, kInit = 2, kRace = 4, kSync = 8 };
constexpr uint8_t kAllHazards = 15;
HazardGroup GroupOf(Hazard::Kind kind);

/// Bytes of device memory from `begin` to before `end`.
struct AddressRange {
  DeviceAddress begin = 0;
  DeviceAddress end = 0;
  uint64_t bytes() const { return end - begin; }
  bool operator==(const AddressRange&) const = default;
};

/// How one launch ended.
struct LaunchOutcome {
  enum class Kind : uint8_t {
    kCompleted,
    kRefused,  ///< the driver did not start it: bad grid, too much shared memory
    /// Started and died: illegal address, trap, hazard. A real device's context is lost.
    kFaulted,
    kTimeout,      ///< limit on time or instructions
    kUnsupported,  ///< virtual GPU: an instruction it lacks
  };
  Kind kind = Kind::kCompleted;
  std::string message;
  std::vector<Hazard> hazards;
  uint64_t blocks_executed = 0;  ///< all of the grid unless `LaunchOptions::blocks` selected some
  /// Virtual GPU: executed by the warps of these blocks. The same for every run of a kernel whose
  /// threads do not wait for each other, however loaded the host is.
  uint64_t warp_instructions = 0;
  /// Virtual GPU, LaunchOptions::log_writes: global memory that was written, in ascending order,
  /// without gaps or overlaps between neighbours
  std::vector<AddressRange> written;
  std::string printed;  ///< virtual GPU: output of the kernel's printf, bounded

  bool completed() const { return kind == Kind::kCompleted && hazards.empty(); }
};

struct LaunchOptions {
  /// Virtual GPU: shared-memory races, initialisation, barriers (bounds always)
  bool check_hazards = true;
  /// Virtual GPU: also races in global memory, unwritten local memory and registers
  bool check_global = false;
  uint8_t groups = kAllHazards;  ///< virtual GPU: HazardGroups to report; memory always
  bool keep_going = false;       ///< virtual GPU: collect the hazards of all blocks
  /// Virtual GPU: then the block counts as endless; 0 = its default
  uint64_t max_warp_instructions_per_block = 0;
  /// Virtual GPU: of all blocks together; with more the launch ends as kTimeout. 0 = no limit
  uint64_t max_warp_instructions = 0;
  /// Virtual GPU: wall clock. A real device is guarded by its runner process.
  double timeout_seconds = 60;
  std::vector<uint64_t> blocks;  ///< virtual GPU: run only these linear block indices; empty = all
  bool log_writes = false;       ///< virtual GPU: fill LaunchOutcome::written
  /// Virtual GPU: seed of a random order in which blocks start. A block overtakes those only that
  /// the device could hold at the same time. 0 = ascending
  uint64_t block_order = 0;
};

/// Result of the occupancy calculation for one launch.
struct Occupancy {
  int blocks_per_sm = 0;
  int warps_per_sm = 0;
  double share = 0;     ///< resident warps / most resident warps
  std::string limiter;  ///< "registers", "shared memory", "warps", "blocks"
};

/// Memory of a device; freed when destroyed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual DeviceAddress address() const = 0;
  virtual uint64_t bytes() const = 0;
};

/// A texture with its surface; freed when destroyed.
class Texture {
 public:
  virtual ~Texture() = default;
  /// Kernel arguments of type cudaTextureObject_t and cudaSurfaceObject_t.
  virtual uint64_t texture() const = 0;
  virtual uint64_t surface() const = 0;
  /// The texels, row by row and layer by layer, as kernels left them.
  virtual Status CopyOut(std::span<std::byte> texels) = 0;
};

/// A module whose globals live in the device; fresh each time it is loaded.
class LoadedModule {
 public:
  virtual ~LoadedModule() = default;
};

/// A kernel argument as the device takes it.
struct KernelArg {
  alignas(TensorMap) std::array<std::byte, sizeof(TensorMap)> bytes{};
  uint32_t size = 0;
  /// Structures of up to 32764 bytes, which `bytes` cannot hold
  std::vector<std::byte> large;

  static KernelArg Address(DeviceAddress address);
  static KernelArg Scalar(const ScalarBytes& scalar);
  static KernelArg Map(const TensorMap& map);
  static KernelArg Value(std::span<const std::byte> value);
  const std::byte* data() const { return large.empty() ? bytes.data() : large.data(); }
};

/// The reason why `args` do not fit kernel `entry`, whose parameters have `sizes` bytes; empty if
/// they fit.
std::string Misfit(const std::string& entry, std::span<const size_t> sizes,
                   std::span<const KernelArg> args);

struct LaunchShape {
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  ///< all blocks resident at once; refused where they do not fit
  /// Blocks may start before the launch before has ended, and wait for that themselves
  bool programmatic = false;
};
/// Why no GPU can launch a grid or a block of these sizes; empty if the sizes are possible. The
/// limits are those of CUDA: 2^31 - 1 blocks along x, 65535 along y and z; 1024 threads of a block,
/// and 64 along z.
std::string ImpossibleSizes(const LaunchShape& shape);

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProfile& profile() const = 0;
  /// kMeasured for real hardware, kPredicted for the virtual GPU.
  virtual Evidence evidence() const = 0;
  /// Architecture to compile for: "sm_90a".
  virtual std::string arch() const = 0;
  /// True when every access is checked against its allocation, so that buffers need no guard zones.
  virtual bool checks_bounds() const { return false; }

  /// 256-byte aligned memory with undefined contents. kUnavailable when there is not enough.
  virtual Result<std::unique_ptr<Buffer>> Allocate(uint64_t bytes) = 0;
  virtual Status CopyIn(DeviceAddress to, std::span<const std::byte> from) = 0;
  virtual Status CopyOut(std::span<std::byte> to, DeviceAddress from) = 0;
  virtual Status CopyWithin(DeviceAddress to, DeviceAddress from, uint64_t bytes) = 0;
  /// May return before the end, as CopyWithin may: the device executes later requests in order.
  virtual Status Fill(DeviceAddress to, uint8_t byte, uint64_t bytes) = 0;
  /// Repeats `tile` over `bytes` bytes. The virtual GPU shares the pages of a large range until
  /// they are written, if the tile consists of whole pages of 4096 bytes.
  virtual Status FillTiled(DeviceAddress to, uint64_t bytes, std::span<const std::byte> tile);
  virtual Result<uint64_t> FreeBytes() = 0;
  /// Virtual GPU: from now on these bytes count as written, or as unwritten, whatever they hold. A
  /// kernel that reads unwritten ones is reported.
  virtual void MarkContents(DeviceAddress, uint64_t /*bytes*/, bool /*written*/) {}

  /// A tensor map for kernels of this device. kInvalidInput names the rule that `spec` breaks,
  /// kUnsupported a device without bulk tensor copies (before compute capability 9.0).
  virtual Result<TensorMap> EncodeTensorMap(const TensorMapSpec& spec);

  /// A texture of these texels, row by row and layer by layer. kInvalidInput names the rule that
  /// `spec` breaks.
  virtual Result<std::unique_ptr<Texture>> CreateTexture(const TextureSpec& spec,
                                                         std::span<const std::byte> texels);

  virtual Result<std::unique_ptr<LoadedModule>> Load(const CompiledModule& module) = 0;
  /// Address of a `__device__` or `__constant__` symbol and its size in bytes.
  virtual Result<std::pair<DeviceAddress, uint64_t>> FindSymbol(LoadedModule& module,
                                                                const std::string& symbol) = 0;
  /// Fingerprint of the module's writable variables, where the device can tell: a kernel that
  /// leaves them changed carries state from launch to launch.
  virtual Result<std::optional<uint64_t>> StateFingerprint(LoadedModule&) { return std::nullopt; }
  /// Runs one kernel and waits for it. `entry` as CompiledModule::kernels names it. A kernel's
  /// failure is an outcome, not an Error; an Error means the device itself is unusable.
  virtual Result<LaunchOutcome> Launch(LoadedModule& module, const std::string& entry,
                                       const LaunchShape& shape, std::span<const KernelArg> args,
                                       const LaunchOptions& options) = 0;
  /// Launch for kernels that do not fail: it may return before the end; the device executes later
  /// requests in order.
  virtual Result<LaunchOutcome> Post(LoadedModule& module, const std::string& entry,
                                     const LaunchShape& shape, std::span<const KernelArg> args,
                                     const LaunchOptions& options) {
    return Launch(module, entry, shape, args, options);
  }
};

/// Launches that another follows without a pause. L2 may hold what they touched.
struct Predecessors {
  std::vector<KernelArg> args;  ///< of all of them
  double bytes = 0;             ///< that they moved through L2
};

/// The estimate of a launch, and the blocks that were executed for it in ascending order; none
/// named = all.
struct Prediction {
  Estimate estimate;
  std::vector<uint64_t> blocks;
};

/// A device that predicts instead of measuring: the virtual GPU.
class PredictingDevice : public Device {
 public:
  /// Executes a sample of the grid and estimates the time of the whole launch. `resources` are the
  /// kernel's from the cubin of the profile's architecture. An Error of kUnsupported names what the
  /// virtual GPU lacks.
  virtual Result<Prediction> Predict(LoadedModule& module, const KernelResources& resources,
                                     const LaunchShape& shape, std::span<const KernelArg> args,
                                     const Predecessors& earlier) = 0;
  /// Executes all blocks but those that Predict has, for launches that read their results.
  virtual Result<LaunchOutcome> Complete(LoadedModule& module, const std::string& entry,
                                         const LaunchShape& shape, std::span<const KernelArg> args,
                                         std::span<const uint64_t> executed) = 0;
};

/// A point in the stream of a real device.
class Event {
 public:
  virtual ~Event() = default;
};

/// State of clocks and power at one moment, from NVML; zeros when NVML is missing.
struct ClockState {
  double sm_mhz = 0;
  double memory_mhz = 0;
  double power_watts = 0;
  double temperature_c = 0;
  std::string throttle = "unknown";  ///< "none", "power cap", "thermal", …
};

/// A real device: what `measure` needs on top. The virtual GPU is none, so nothing can time it.
class TimedDevice : public Device {
 public:
  virtual Result<std::unique_ptr<Event>> CreateEvent() = 0;
  virtual Status Record(Event& event) = 0;
  /// Nanoseconds between two recorded events; waits for `end`.
  virtual Result<double> ElapsedNs(Event& start, Event& end) = 0;
  /// Puts a kernel into the stream without waiting. A refusal is reported at once, a fault by
  /// Synchronize.
  virtual LaunchOutcome Enqueue(LoadedModule& module, const std::string& entry,
                                const LaunchShape& shape, std::span<const KernelArg> args) = 0;
  virtual LaunchOutcome Synchronize() = 0;
  /// Fill in the stream, without waiting.
  virtual Status EnqueueFill(DeviceAddress to, uint8_t byte, uint64_t bytes) = 0;
  /// Gives persisting L2 lines back to normal use.
  virtual Status ResetPersistingL2() = 0;
  /// The raw stream (CUstream), for vendor libraries.
  virtual void* stream() = 0;
  virtual ClockState Clocks() = 0;
  /// Joules that the whole board has used since the driver was loaded; the counter moves in steps
  /// of some milliseconds. kUnsupported where there is no such counter.
  virtual Result<double> EnergyJoules() = 0;
  virtual std::string DriverVersion() const = 0;
  /// The result of the driver's occupancy calculator, in blocks per SM.
  virtual Result<int> DriverOccupancy(LoadedModule& module, const std::string& entry,
                                      const LaunchShape& shape) = 0;
};

}  // namespace atunner
