// The recorder or the replacer of this process, as the environment orders it, behind the functions
// of calls.cpp.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "faces/recorder/recorder.h"
#include "faces/recorder/replacer.h"

namespace atunner::recorder {

class Session {
 public:
  /// Made by the first call of a program to one of the functions of calls.cpp.
  static Session& Get();
  explicit Session(const Driver& driver);

  std::mutex mutex;  ///< for `code` and `memory`; the other functions lock it
  ProgramCode code;
  DeviceMemory memory;

  int Launch(const LaunchCall& call, const OriginalLaunch& original);
  int LaunchGraph(GraphExec exec, Stream stream, const OriginalLaunch& original);
  /// The program has instantiated, changed or destroyed an executable graph.
  void OnInstantiate(GraphExec exec, Graph graph);
  void OnGraphUpdate(GraphExec exec, Graph graph);
  void OnKernelNode(GraphExec exec, GraphNode node, const KernelNodeParams& params);
  void OnOtherNode(GraphExec exec);
  void OnGraphDestroy(GraphExec exec);
  /// A stream begins or ends to be recorded to a graph.
  void OnCapture(int change) { captures_ += change; }
  /// The device's memory and events are gone.
  void OnReset();
  /// Writes what is left. Called when the program ends.
  void End();

 private:
  bool IsCapturing(Stream stream) const;
  struct Executable {
    std::unique_ptr<ProgramGraph> graph;
    std::unique_ptr<TunedGraph> tuned;
  };
  /// nullptr if the graph is not known.
  Executable* Find(GraphExec exec);
  void Read(Executable& executable, Graph graph);
  int LaunchSteps(const ProgramGraph& graph, Stream stream, Lock& lock);
  int LaunchStep(const KernelStep& step, Stream stream, Lock& lock);

  const Driver& driver_;
  pid_t process_;  ///< a child of the program writes nothing
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Replacer> replacer_;
  std::atomic<int> captures_ = 0;  ///< streams that are being recorded
  std::unordered_map<GraphExec, Executable> graphs_;
};

}  // namespace atunner::recorder
