// A launch that the program makes, as recording and applying see it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/ptx/module.h"

namespace atunner::program {

class Module;

struct ProgramLaunch {
  std::string kernel;  ///< mangled
  const ptx::Function* entry = nullptr;
  const Module* module = nullptr;
  LoadedModule* loaded = nullptr;  ///< the same on the device
  std::string_view ptx;            ///< of the module
  int arch = 0;                    ///< of the PTX: 80
  LaunchShape shape;
  std::vector<KernelArg> args;
};

}  // namespace atunner::program
