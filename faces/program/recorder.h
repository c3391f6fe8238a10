// Records what the program launches on the virtual GPU.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atunner/capture/recording.h"
#include "faces/program/virtual_device.h"
#include "faces/program/virtual_memory.h"

namespace atunner::program {

class Recorder {
 public:
  Recorder(const CaptureOrder& order, const vgpu::VirtualGpu& gpu)
      : gpu_(gpu), memory_(gpu), recording_(order.folder, order.limits) {}

  /// `params` as VirtualDevice::Launch has them. True if End is to be called behind the launch.
  bool Begin(const Kernel& kernel, const std::string& ptx, int arch, const ptx::Function& entry,
             const LaunchShape& shape, void** params,
             const std::function<std::optional<std::pair<uint64_t, uint64_t>>(const std::string&)>&
                 find_symbol);
  void End(const LaunchOutcome& outcome);
  /// Writes what is left. Returns why the capture is not complete, or "".
  std::string Finish();

 private:
  struct KnownModule {
    size_t number = 0;
    std::unique_ptr<ptx::ValidModule> parsed;  ///< nullptr: it cannot be parsed again
  };
  const KnownModule& ModuleOf(const Module* module, const std::string& ptx, int arch);
  size_t KernelOf(const Kernel& kernel, const std::string& ptx, int arch);
  /// Why the launch cannot be repeated from its bytes; "" if it can.
  std::string Obstacle(const ptx::Function& entry,
                       const std::vector<std::string>& parameters) const;

  const vgpu::VirtualGpu& gpu_;
  VirtualMemory memory_;
  capture::Recording recording_;
  std::map<const Module*, KnownModule> modules_;
  std::map<std::pair<const Module*, std::string>, size_t> kernels_;
};

}  // namespace atunner::program
