// The doors through which jobs reach the machine. `faces/wiring` opens them; tests pass fakes.
#pragma once

#include <memory>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/base/files.h"
#include "atunner/compile/compiler.h"
#include "atunner/jobs/requests/target.h"
#include "atunner/judge/judge.h"
#include "atunner/store/store.h"

namespace atunner::jobs {

inline constexpr double kCompileTimeoutSeconds = 60;

/// The devices of this machine, and the judges that examine candidates on them.
class Devices {
 public:
  virtual ~Devices() = default;
  /// True if there is a GPU in this machine.
  virtual bool HasGpu() const = 0;
  /// kUnavailable for "auto" without a GPU, kInvalidInput for an unknown name.
  virtual Result<Target> Choose(const TargetChoice& choice) = 0;
  /// The devices of a selection, all of the target's model. kInvalidInput for a GPU that is not
  /// present or of another model.
  virtual Result<std::vector<Target>> Select(const Target& target,
                                             const DeviceSelection& selection) = 0;
  /// A judge for candidates on `target`, each of which may take `examine_timeout_seconds`. With
  /// `one_for_all_tasks` the judge keeps its process between tasks, which is right for candidates
  /// that this program wrote itself.
  virtual std::unique_ptr<Judge> MakeJudge(const Target& target, double examine_timeout_seconds,
                                           bool one_for_all_tasks = false) = 0;
};

class Compilers {
 public:
  virtual ~Compilers() = default;
  /// A compiler that gives up on a source after `timeout_seconds`. kUnavailable without NVRTC.
  virtual Result<std::unique_ptr<Compiler>> Open(double timeout_seconds) = 0;
};

class Stores {
 public:
  virtual ~Stores() = default;
  /// The store of runs and trials, made where there is none.
  virtual Result<std::unique_ptr<Store>> Open() = 0;
  /// The store to read from. kInvalidInput where the named file does not exist.
  virtual Result<std::unique_ptr<Store>> OpenExisting() = 0;
};

struct Services {
  Compilers& compilers;
  Stores& stores;
  Devices& devices;
  Clock& clock;
  Path runs;  ///< folder of the artifacts of requests that name no folder
};

}  // namespace atunner::jobs
