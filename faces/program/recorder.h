// Records what the program launches on the virtual GPU.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "atunner/capture/recording.h"
#include "faces/program/findings.h"
#include "faces/program/program_launch.h"
#include "faces/program/virtual_memory.h"

namespace atunner::program {

class Recorder {
 public:
  Recorder(const capture::RecordOrder& order, vgpu::VirtualGpu& gpu)
      : gpu_(gpu), memory_(gpu), recording_(order.capture, order.limits) {}

  /// True if End is to be called behind the launch.
  bool Begin(const ProgramLaunch& launch);
  void End(const ProgramLaunch& launch, const LaunchOutcome& outcome);
  /// Notes, once for each kernel, that a part of a launch's blocks did not run.
  void NoteCutShort(const std::string& kernel, const LaunchShape& shape,
                    const LaunchOutcome& outcome);
  /// The module is unloaded: another one may get its address.
  void Forget(const Module* module);
  /// Writes what is left. Returns why the capture is not complete, or "".
  std::string Finish();

 private:
  struct KnownModule {
    size_t number = 0;
    std::unique_ptr<ptx::ValidModule> parsed;  ///< nullptr: it cannot be parsed again
  };
  const KnownModule& ModuleOf(const ProgramLaunch& launch);
  size_t KernelOf(const ProgramLaunch& launch);
  /// Why the launch cannot be repeated from its bytes; "" if it can.
  std::string Obstacle(const ProgramLaunch& launch, const capture::LaunchFacts& facts) const;
  /// Adds the parameters that are handles of textures.
  void AddTextures(const ProgramLaunch& launch, capture::LaunchFacts& facts) const;
  /// Adds the module's variables that the kernel uses.
  void AddSymbols(const ProgramLaunch& launch, capture::LaunchFacts& facts);

  vgpu::VirtualGpu& gpu_;
  VirtualMemory memory_;
  capture::Recording recording_;
  std::map<const Module*, KnownModule> modules_;
  std::map<std::pair<const Module*, std::string>, size_t> kernels_;
  std::set<std::string> noted_;  ///< kernels of NoteCutShort
};

}  // namespace atunner::program
