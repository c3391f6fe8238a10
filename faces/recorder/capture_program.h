// Records what a program launches, into a capture.
#pragma once

#include <string>
#include <vector>

#include "atunner/capture/recording.h"
#include "atunner/model/value/device_profile.h"
#include "faces/program/run_program.h"

namespace atunner::recorder {

struct CaptureRequest {
  std::vector<std::string> command;  ///< the program with its arguments
  Path source;                       ///< a .cu file to build first: `command` are arguments then
  std::vector<std::string> nvcc_options;
  DeviceProfile profile;  ///< the GPU to record on
  bool real = false;      ///< on the GPU of this machine; false: simulate it
  capture::RecordingLimits limits;
  Path out;            ///< folder of the capture; empty: the program's name with ".capture"
  bool apart = false;  ///< what the program prints goes to standard error
};

struct CapturedProgram {
  Path folder;
  program::Ending ending;
  std::vector<std::string> errors;  ///< calls of the program that went wrong
};

/// kInvalidInput for a program that cannot be started or built, or that launches nothing; then no
/// capture stays.
Result<CapturedProgram> CaptureProgram(const CaptureRequest& request);

}  // namespace atunner::recorder
