// Records what the program launches on a real GPU. capture::Recording decides which launches are
// recorded with their memory; this class tells it what the driver knows. Not thread-safe, except
// for what `Lock` says.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/capture/recording.h"
#include "faces/recorder/device_memory.h"
#include "faces/recorder/launch_call.h"
#include "faces/recorder/launch_timer.h"
#include "faces/recorder/order.h"
#include "faces/recorder/program_code.h"
#include "faces/recorder/program_graph.h"

namespace atunner::recorder {

using Lock = std::unique_lock<std::mutex>;

/// Makes this process the one that writes the capture: the first one that uses the GPU. False, with
/// a note in the capture, if another process does.
bool ClaimCapture(const Path& folder);

class Recorder {
 public:
  Recorder(const Driver& driver, ProgramCode& code, DeviceMemory& memory, const RecordOrder& order)
      : code_(code), memory_(memory), timer_(driver), recording_(order.capture, order.limits) {}

  /// Makes the launch. `quiet`: no stream of the program is being recorded to a graph, so that the
  /// recorder may wait for the device. Unlocks `lock` unless the memory is recorded.
  int Launch(ProgramKernel& kernel, const LaunchCall& call, const OriginalLaunch& original,
             bool quiet, Lock& lock);
  /// True if the memory of a kernel of the graph is to be recorded, so that the graph should be
  /// launched step by step.
  bool Wants(const ProgramGraph& graph);
  /// Counts the kernels of a graph that is launched as a whole. `wanted`: the result of Wants.
  void CountGraph(const ProgramGraph& graph, bool wanted);
  void OnReset();
  /// Writes times and groups. Called when the program ends.
  void Finish();
  const std::string& problem() const { return recording_.problem(); }

 private:
  /// A kernel in the capture.
  struct Known {
    capture::LaunchFacts facts;  ///< the configuration and the parameters are those of a launch
    bool has_symbols = false;    ///< are found
    uint64_t launches = 0;
  };
  Known& KnownOf(const ProgramKernel& kernel);
  size_t ModuleNumber(const ProgramModule& module);
  void FindSymbols(const ProgramKernel& kernel, Known& known);
  void FillFacts(const ProgramKernel& kernel, const LaunchCall& call, Known& known);
  int LaunchRecorded(Known& known, const LaunchCall& call, const OriginalLaunch& original);
  int LaunchCounted(Known& known, const LaunchCall& call, const OriginalLaunch& original,
                    bool quiet, Lock& lock);
  void CollectTimes();

  ProgramCode& code_;
  DeviceMemory& memory_;
  LaunchTimer timer_;
  capture::Recording recording_;
  std::unordered_map<size_t, Known> known_;  ///< by ProgramKernel::number
  std::unordered_map<const ProgramModule*, size_t> module_number_;
  std::set<std::string> graphs_noted_;  ///< why graphs were only counted
  uint64_t launches_ = 0;
};

/// The parameters as the kernel receives them.
std::vector<std::string> ParametersOf(const ProgramKernel& kernel, const LaunchCall& call);

}  // namespace atunner::recorder
