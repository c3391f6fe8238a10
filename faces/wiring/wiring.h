// The composition root: chooses the device behind the interface, opens compiler, judge and store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/calibration.h"
#include "atunner/device/device.h"
#include "atunner/judge/judge.h"
#include "atunner/store/store.h"

namespace atunner {

/// Where a request will be judged.
struct Target {
  DeviceProfile profile;
  /// Set: measured on that GPU; empty: predicted by the virtual GPU
  std::optional<int> real_index;
  /// Of the time model: stored by `devices --probe --calibrate`, or expected
  Calibration calibration;
  Evidence evidence() const { return real_index ? Evidence::kMeasured : Evidence::kPredicted; }
};

/// The devices that judge for one run: `devices` is "" (the target alone), "all" (every GPU of its
/// model here) or their numbers, "0,1". On the virtual GPU every number is one more of it, and
/// "all" one per two cores. kInvalidInput for a GPU that is not here, of another model, or named
/// twice.
Result<std::vector<Target>> DevicesLike(const Target& target, const std::string& devices);

inline constexpr double kCompileTimeoutSeconds = 60;

/// "auto" = the GPU in this machine; a name of the profile table is measured when that GPU is here,
/// else predicted. `force_virtual` predicts in any case.
Result<Target> ChooseTarget(const std::string& name, bool force_virtual);
/// The GPU in this machine, which `flag` cannot do without.
Result<Target> ThisGpu(const std::string& flag);

/// Where probed profiles and calibrations lie.
Path ProfileFolder();

/// Compiles in worker processes of this executable and remembers. A source may take
/// `timeout_seconds`.
Result<std::unique_ptr<Compiler>> OpenCompiler(double timeout_seconds = kCompileTimeoutSeconds);

/// Main of a compile worker: "__compiler".
int CompilerMain();

/// A judge in a runner process of this executable; for all its tasks in the same one, if candidates
/// are ours: starting CUDA takes a second, and several at once wait for each other.
std::unique_ptr<Judge> MakeRunner(const Target& target, double examine_timeout_seconds,
                                  bool one_for_all_tasks = false);

/// Main of the runner process: "__runner", profile name, real index or -1.
int RunnerMain(const std::string& profile, int real_index);

Result<std::unique_ptr<Store>> OpenStore(const std::string& file);
/// To look into: one that is named and not there is not made.
Result<std::unique_ptr<Store>> OpenKnownStore(const std::string& file);

}  // namespace atunner
