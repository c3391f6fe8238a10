#include "faces/wiring/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

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
  return std::make_unique<CachedCompiler>(std::move(compiler), UserCacheDirectory() / "compile");
}

/// What one source may make the compiler allocate: half of the machine, so that the machine stays usable.
uint64_t CompilerMemoryBytes() {
  constexpr uint64_t kLeast = uint64_t{4} << 30;
  return std::max(kLeast, static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE) / 2);
}

int FailWorker(const Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return ExitCode(error.code);
}

}  // namespace

Result<Target> ChooseTarget(const std::string& name, bool force_virtual) {
  const auto devices = ListRealDevices();
  if (name == "auto") {
    if (force_virtual)
      return Invalid("'auto' names the GPU in this machine, and --virtual forbids it", "--target-gpu",
                     "name a GPU, for example --target-gpu A100");
    if (!devices) {
      return Fail(ErrorCode::kUnavailable, "no GPU to measure on: " + devices.error().what, "--target-gpu auto",
                  "name a GPU to predict for, for example --target-gpu A100");
    }
    return Target{devices->front().profile, devices->front().index, {}};
  }
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(name));
  if (devices && !force_virtual) {
    for (const RealDeviceInfo& device : *devices) {
      if (device.profile.name == profile.name) return Target{device.profile, device.index, {}};
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
  options.timeout_seconds = timeout_seconds;
  return Remembering(std::make_unique<WorkerCompiler>(std::move(options), nvrtc->Version()));
}

int CompilerMain() {
  const auto compiler = MakeNvrtcCompiler();
  return compiler ? ServeCompiler(**compiler) : FailWorker(compiler.error());
}

std::unique_ptr<Judge> MakeRunner(const Target& target, double examine_timeout_seconds) {
  RunnerOptions options;
  options.worker.arguments = {"__runner", target.profile.name, std::to_string(target.real_index.value_or(-1))};
  options.examine_timeout_seconds = examine_timeout_seconds;
  return std::make_unique<RunnerJudge>(options);
}

int RunnerMain(const std::string& profile_name, int real_index) {
  // The judge's own kernels need no protection from the compiler.
  auto nvrtc = MakeNvrtcCompiler();
  if (!nvrtc) return FailWorker(nvrtc.error());
  const auto compiler = Remembering(*std::move(nvrtc));
  if (real_index >= 0) {
    auto device = OpenRealDevice(real_index);
    if (!device) return FailWorker(device.error());
    LocalJudge judge(**device, device->get(), nullptr, *compiler);
    return ServeJudge(judge);
  }
  auto profile = FindProfile(profile_name);
  if (!profile) return FailWorker(profile.error());
  auto calibration = LoadCalibration(ProfileFolder().string(), *profile);
  if (!calibration) return FailWorker(calibration.error());
  vgpu::VirtualGpu device(*profile);
  device.Calibrate(*calibration);
  LocalJudge judge(device, nullptr, &device, *compiler);
  return ServeJudge(judge);
}

Result<std::unique_ptr<Store>> OpenStore(const std::string& file) {
  return Store::Open(file.empty() ? UserDataDirectory() / "atunner.db" : Path(file));
}

}  // namespace atunner
