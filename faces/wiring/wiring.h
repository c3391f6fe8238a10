// The composition root: opens this machine's devices, compiler, judges and store for the jobs.
#pragma once

#include <memory>
#include <string>

#include "atunner/jobs/requests/services.h"

namespace atunner {

/// The GPU in this machine. kUnavailable where there is none; `field` is what needs it.
Result<Target> ThisGpu(const std::string& field);

/// "auto" = the GPU in this machine; a name of the profile table is measured when that GPU is here,
/// else predicted.
Result<Target> ChooseTarget(const TargetChoice& choice);

/// The folder of probed profiles and calibrations.
Path ProfileFolder();

/// A compiler that works in worker processes of this executable and remembers their results. A
/// source may take `timeout_seconds`.
Result<std::unique_ptr<Compiler>> OpenCompiler(
    double timeout_seconds = jobs::kCompileTimeoutSeconds);

/// The main function of a compile worker: "__compiler".
int CompilerMain();

/// The main function of a runner process: "__runner", profile name, real index or -1.
int RunnerMain(const std::string& profile, int real_index);

/// The services of this machine. `store_file`: the store's file; "" is the user's own.
class Machine {
 public:
  explicit Machine(std::string store_file);
  ~Machine();
  jobs::Services& services();

 private:
  struct Doors;
  std::unique_ptr<Doors> doors_;
};

}  // namespace atunner
