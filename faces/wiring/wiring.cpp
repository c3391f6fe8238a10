#include "faces/wiring/wiring.h"

#include <cstdio>

#include "atunner/compile/cached_compiler.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/judge/local_judge.h"
#include "atunner/judge/runner_judge.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner {

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
    return Target{devices->front().profile, devices->front().index};
  }
  ATUNNER_TRY(const DeviceProfile profile, FindProfile(name));
  if (devices && !force_virtual) {
    for (const RealDeviceInfo& device : *devices) {
      if (device.profile.name == profile.name) return Target{device.profile, device.index};
    }
  }
  return Target{profile, std::nullopt};
}

Result<std::unique_ptr<Compiler>> OpenCompiler() {
  ATUNNER_TRY(auto compiler, MakeNvrtcCompiler());
  return std::make_unique<CachedCompiler>(std::move(compiler), UserCacheDirectory() / "compile");
}

std::unique_ptr<Judge> MakeRunner(const Target& target, double examine_timeout_seconds) {
  RunnerOptions options;
  options.worker.arguments = {"__runner", target.profile.name, std::to_string(target.real_index.value_or(-1))};
  options.examine_timeout_seconds = examine_timeout_seconds;
  return std::make_unique<RunnerJudge>(options);
}

int RunnerMain(const std::string& profile_name, int real_index) {
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "%s\n", error.ToString().c_str());
    return ExitCode(error.code);
  };
  auto compiler = OpenCompiler();
  if (!compiler) return fail(compiler.error());
  if (real_index >= 0) {
    auto device = OpenRealDevice(real_index);
    if (!device) return fail(device.error());
    LocalJudge judge(**device, device->get(), nullptr, **compiler);
    return ServeJudge(judge);
  }
  auto profile = FindProfile(profile_name);
  if (!profile) return fail(profile.error());
  vgpu::VirtualGpu device(*profile);
  LocalJudge judge(device, nullptr, &device, **compiler);
  return ServeJudge(judge);
}

Result<std::unique_ptr<Store>> OpenStore(const std::string& file) {
  return Store::Open(file.empty() ? UserDataDirectory() / "atunner.db" : Path(file));
}

}  // namespace atunner
