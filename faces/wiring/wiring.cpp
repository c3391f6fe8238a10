#include "faces/wiring/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "atunner/base/sandbox.h"
#include "atunner/compile/bounded_folder.h"
#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/compile/worker_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/judge/local_judge.h"
#include "atunner/judge/runner_judge.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {
namespace {

std::unique_ptr<Compiler> Remembering(std::unique_ptr<Compiler> compiler) {
  const Path folder = UserCacheDirectory() / "compile";
  KeepBelowNowAndThen(folder, CacheLimitBytes());
  return std::make_unique<CachedCompiler>(std::move(compiler), folder);
}

/// The memory that the compiler may allocate for one source: half of the machine's, so that the
/// machine stays usable.
uint64_t CompilerMemoryBytes() {
  constexpr uint64_t kLeast = uint64_t{4} << 30;
  return std::max(kLeast,
                  static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE) / 2);
}

/// Compilers take every core; whoever feeds the device comes first.
constexpr int kCompilerNiceness = 10;

int FailWorker(const Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return ExitCode(error.code);
}

/// A judge in a runner process of this executable. With `one_for_all_tasks` all tasks share the
/// process: starting CUDA takes a second, and several processes at once wait for each other.
std::unique_ptr<Judge> MakeRunner(const Target& target, double examine_timeout_seconds,
                                  bool one_for_all_tasks) {
  RunnerOptions options;
  options.worker.arguments = {"__runner", target.profile.name,
                              std::to_string(target.real_index.value_or(-1))};
  options.examine_timeout_seconds = examine_timeout_seconds;
  options.binary_only = target.real_index.has_value();
  options.one_for_all_tasks = one_for_all_tasks;
  return std::make_unique<RunnerJudge>(options);
}

/// Every device of the target's model: GPUs of this machine, or a virtual one per two cores.
Result<std::vector<Target>> DevicesLike(const Target& target) {
  if (!target.real_index)
    return std::vector<Target>(std::max(1u, std::thread::hardware_concurrency() / 2), target);
  ATUNNER_TRY(const std::vector<RealDeviceInfo> present, ListRealDevices());
  std::vector<Target> alike;
  for (const RealDeviceInfo& one : present) {
    if (one.profile.name == target.profile.name)
      alike.push_back({one.profile, one.index, target.calibration});
  }
  return alike;
}

class MachineDevices : public jobs::Devices {
 public:
  bool HasGpu() const override { return ListRealDevices().has_value(); }
  Result<Target> Choose(const TargetChoice& choice) override { return ChooseTarget(choice); }

  Result<std::vector<Target>> Select(const Target& target,
                                     const DeviceSelection& selection) override {
    if (selection.Empty()) return std::vector{target};
    ATUNNER_TRY(const std::vector<Target> alike, DevicesLike(target));
    if (selection.all) return alike;
    std::vector<Target> chosen;
    for (const int number : selection.numbers) {
      const auto found = std::ranges::find(alike, std::optional(number), &Target::real_index);
      if (target.real_index && found == alike.end())
        return Invalid(
            "GPU " + std::to_string(number) + " is not here or no " + target.profile.name,
            "request.devices", "`atunner devices` lists the GPUs of this machine");
      chosen.push_back(target.real_index ? *found : target);
    }
    return chosen;
  }

  std::unique_ptr<Judge> MakeJudge(const Target& target, double examine_timeout_seconds,
                                   bool one_for_all_tasks) override {
    return MakeRunner(target, examine_timeout_seconds, one_for_all_tasks);
  }
};

class MachineCompilers : public jobs::Compilers {
 public:
  Result<std::unique_ptr<Compiler>> Open(double timeout_seconds) override {
    return OpenCompiler(timeout_seconds);
  }
};

class MachineStores : public jobs::Stores {
 public:
  explicit MachineStores(std::string file) : file_(std::move(file)) {}
  Result<std::unique_ptr<Store>> Open() override {
    return Store::Open(file_.empty() ? UserDataDirectory() / "atunner.db" : Path(file_));
  }
  Result<std::unique_ptr<Store>> OpenExisting() override {
    if (!file_.empty() && !Exists(file_) && !Exists(file_ + "-wal"))
      return Invalid("there is no store '" + file_ + "'", "request.store",
                     "name the file that was given to optimize or tune");
    return Open();
  }

 private:
  std::string file_;
};

}  // namespace

namespace {

/// Also a GPU that measures has a time model: counters and expected gains come of it.
Result<Target> TargetOf(const RealDeviceInfo& device) {
  ATUNNER_TRY(const Calibration calibration,
              LoadCalibration(ProfileFolder().string(), device.profile));
  return Target{device.profile, device.index, calibration};
}

}  // namespace

Result<Target> ThisGpu(const std::string& field) {
  const auto devices = ListRealDevices();
  if (!devices) return Fail(ErrorCode::kUnavailable, "needs a GPU: " + devices.error().what, field);
  return TargetOf(devices->front());
}

namespace {

Result<Target> ThisGpuByAuto(bool force_virtual) {
  if (force_virtual)
    return Invalid("'auto' names the GPU in this machine, and request.virtual forbids it",
                   "request.target", "name a GPU, for example request.target A100");
  const auto devices = ListRealDevices();
  if (devices) return ThisGpu("request.target auto");
  return Fail(ErrorCode::kUnavailable, "no GPU to measure on: " + devices.error().what,
              "request.target auto", "name a GPU to predict for, for example request.target A100");
}

}  // namespace

Result<Target> ChooseTarget(const TargetChoice& choice) {
  if (choice.gpu == "auto") return ThisGpuByAuto(choice.force_virtual);
  const auto devices = ListRealDevices();
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(choice.gpu));
  if (devices && !choice.force_virtual) {
    for (const RealDeviceInfo& device : *devices) {
      if (device.profile.name == profile.name) return TargetOf(device);
    }
  }
  ATUNNER_TRY(const Calibration calibration, LoadCalibration(ProfileFolder().string(), profile));
  return Target{profile, std::nullopt, calibration};
}

Path ProfileFolder() { return UserDataDirectory() / "profiles"; }

Result<std::unique_ptr<Compiler>> OpenCompiler(double timeout_seconds) {
  ATUNNER_TRY(const auto nvrtc, MakeNvrtcCompiler());  // is there one at all, and which
  CompileWorkerOptions options;
  options.worker.arguments = {"__compiler"};
  options.worker.address_space_bytes = CompilerMemoryBytes();
  options.worker.niceness = kCompilerNiceness;
  options.timeout_seconds = timeout_seconds;
  return Remembering(std::make_unique<WorkerCompiler>(std::move(options), nvrtc->Version()));
}

namespace {

/// For processes that have loaded what they need. `device`: one that has opened a GPU.
Status EnterSandboxIfAsked(bool device) {
  const char* const readable = std::getenv(kSandboxVariable);
  if (readable == nullptr || *readable == '\0') return {};
  return EnterSandbox({{readable, UserCacheDirectory() / "compile"}, device});
}

}  // namespace

int CompilerMain() {
  const auto compiler = MakeNvrtcCompiler();
  if (!compiler) return FailWorker(compiler.error());
  if (const Status entered = EnterSandboxIfAsked(false); !entered)
    return FailWorker(entered.error());
  return ServeCompiler(**compiler);
}

namespace {

int ServeRealDevice(int index, Compiler& compiler) {
  auto device = OpenRealDevice(index);
  if (!device) return FailWorker(device.error());
  if (const Status entered = EnterSandboxIfAsked(true); !entered)
    return FailWorker(entered.error());
  LocalJudge judge(**device, device->get(), nullptr, compiler);
  return ServeJudge(judge);
}

int ServeVirtualDevice(const std::string& profile_name, Compiler& compiler) {
  auto profile = FindProfile(profile_name);
  if (!profile) return FailWorker(profile.error());
  auto calibration = LoadCalibration(ProfileFolder().string(), *profile);
  if (!calibration) return FailWorker(calibration.error());
  vgpu::VirtualGpu device(*profile);
  device.TrackMemory();
  device.Calibrate(*calibration);
  if (const Status entered = EnterSandboxIfAsked(false); !entered)
    return FailWorker(entered.error());
  LocalJudge judge(device, nullptr, &device, compiler);
  return ServeJudge(judge);
}

}  // namespace

int RunnerMain(const std::string& profile_name, int real_index) {
  // The judge's own kernels need no protection from the compiler.
  auto nvrtc = MakeNvrtcCompiler();
  if (!nvrtc) return FailWorker(nvrtc.error());
  const auto compiler = Remembering(*std::move(nvrtc));
  return real_index >= 0 ? ServeRealDevice(real_index, *compiler)
                         : ServeVirtualDevice(profile_name, *compiler);
}

struct Machine::Doors {
  explicit Doors(std::string store_file) : stores(std::move(store_file)) {}
  MachineCompilers compilers;
  MachineStores stores;
  MachineDevices devices;
  jobs::Services services{compilers, stores, devices, SystemClock(), UserDataDirectory() / "runs"};
};

Machine::Machine(std::string store_file) : doors_(std::make_unique<Doors>(std::move(store_file))) {}
Machine::~Machine() = default;
jobs::Services& Machine::services() { return doors_->services; }

}  // namespace atunner
