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

/// True if only the time limit ended the launch after some of its blocks: the program goes on with
/// what they wrote, and judges run samples of the blocks.
inline bool IsCutShort(const LaunchShape& shape, const LaunchOutcome& outcome) {
  return outcome.kind == LaunchOutcome::Kind::kTimeout && outcome.hazards.empty() &&
         !shape.cooperative && outcome.blocks_executed > 0 &&
         outcome.blocks_executed < shape.grid.Count();
}

}  // namespace atunner::program
