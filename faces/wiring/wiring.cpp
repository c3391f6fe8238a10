#include "faces/wiring/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

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

/// What one source may make the compiler allocate: half of the machine, so that the machine stays
/// usable.
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

/// "0,2"
Result<std::vector<int>> ParseNumbers(const std::string& text) {
  constexpr int kMost = 63;
  std::vector<int> numbers;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    int number = -1;
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + comma, number);
    if (error != std::errc() || end != text.data() + comma || number < 0 || number > kMost)
      return Invalid("'" + text.substr(from, comma - from) + "' is no number of a GPU", "--devices",
                     "write all, or 0,1");
    if (std::ranges::find(numbers, number) != numbers.end())
      return Invalid("GPU " + std::to_string(number) + " is named twice", "--devices");
    numbers.push_back(number);
    from = comma + 1;
  }
  return numbers;
}

}  // namespace

Result<Target> ThisGpu(const std::string& flag) {
  const auto devices = ListRealDevices();
  if (!devices) return Fail(ErrorCode::kUnavailable, "needs a GPU: " + devices.error().what, flag);
  return Target{devices->front().profile, devices->front().index, {}};
}

Result<Target> ChooseTarget(const std::string& name, bool force_virtual) {
  const auto devices = ListRealDevices();
  if (name == "auto") {
    if (force_virtual)
      return Invalid("'auto' names the GPU in this machine, and --virtual forbids it",
                     "--target-gpu", "name a GPU, for example --target-gpu A100");
    if (!devices) {
      return Fail(ErrorCode::kUnavailable, "no GPU to measure on: " + devices.error().what,
                  "--target-gpu auto", "name a GPU to predict for, for example --target-gpu A100");
    }
    return ThisGpu("--target-gpu auto");
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

Result<std::vector<Target>> DevicesLike(const Target& target, const std::string& devices) {
  if (devices.empty()) return std::vector{target};
  std::vector<Target> alike;
  if (!target.real_index) {
    alike.assign(std::max(1u, std::thread::hardware_concurrency() / 2), target);
  } else {
    ATUNNER_TRY(const std::vector<RealDeviceInfo> present, ListRealDevices());
    for (const RealDeviceInfo& one : present) {
      if (one.profile.name == target.profile.name) alike.push_back({one.profile, one.index, {}});
    }
  }
  if (devices == "all") return alike;
  ATUNNER_TRY(const std::vector<int> numbers, ParseNumbers(devices));
  std::vector<Target> chosen;
  for (const int number : numbers) {
    const auto found = std::ranges::find(alike, std::optional(number), &Target::real_index);
    if (target.real_index && found == alike.end())
      return Invalid("GPU " + std::to_string(number) + " is not here or no " + target.profile.name,
                     "--devices", "`atunner devices` lists the GPUs of this machine");
    chosen.push_back(target.real_index ? *found : target);
  }
  return chosen;
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

int CompilerMain() {
  const auto compiler = MakeNvrtcCompiler();
  return compiler ? ServeCompiler(**compiler) : FailWorker(compiler.error());
}

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
  device.TrackRaces();
  device.Calibrate(*calibration);
  LocalJudge judge(device, nullptr, &device, *compiler);
  return ServeJudge(judge);
}

Result<std::unique_ptr<Store>> OpenStore(const std::string& file) {
  return Store::Open(file.empty() ? UserDataDirectory() / "atunner.db" : Path(file));
}

Result<std::unique_ptr<Store>> OpenKnownStore(const std::string& file) {
  if (!file.empty() && !Exists(file) && !Exists(file + "-wal"))
    return Invalid("there is no store '" + file + "'", "--store",
                   "name the file that was given to optimize or tune");
  return OpenStore(file);
}

}  // namespace atunner
