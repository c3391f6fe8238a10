// Runs a program with tuned kernels in the place of its own.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/capture/applied.h"
#include "atunner/model/value/device_profile.h"
#include "faces/program/run_program.h"

namespace atunner::recorder {

struct ApplyRequest {
  Path folder;  ///< an artifact with replacement.json, or a folder of them
  std::vector<std::string> command;
  DeviceProfile profile;  ///< the GPU to run on
  bool real = false;      ///< the GPU of this machine; false: simulate it
  bool apart = false;     ///< what the program prints goes to standard error
};

struct AppliedProgram {
  program::Ending ending;
  capture::AppliedReport report;
};

/// Folders with a replacement.json: the folder itself, or those in it, by name.
std::vector<Path> ReplacementsIn(const Path& folder);

/// kNotFound if the folder holds no replacement, kInvalidInput for a program that cannot be
/// started.
Result<AppliedProgram> ApplyProgram(const ApplyRequest& request);

}  // namespace atunner::recorder
