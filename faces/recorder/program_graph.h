// An executable graph of the program as a list of steps, in an order that its edges allow. A launch
// of the graph may then be made step by step, so that the memory of its kernels can be recorded or
// compared as that of other launches.
//
// All that a step needs is copied when the graph is instantiated: programs usually destroy the
// graph soon afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "faces/recorder/launch_call.h"
#include "faces/recorder/program_code.h"

namespace atunner::recorder {

struct KernelStep {
  ProgramKernel* kernel = nullptr;
  Function function = nullptr;
  Kernel of_library = nullptr;  ///< if `function` is nullptr
  capture::LaunchConfiguration configuration;
  std::vector<std::string> parameters;
  bool changed = false;  ///< since TunedGraph used it

  /// As cuLaunchKernel takes it.
  Function handle() const {
    return function != nullptr ? function : reinterpret_cast<Function>(of_library);
  }
  /// One address for each parameter.
  std::vector<void*> Pointers() const;
};
struct RecordEventStep {
  Event event = nullptr;
};
struct WaitEventStep {
  Event event = nullptr;
};

struct GraphStep {
  GraphNode node = nullptr;    ///< of the program's graph
  GraphNode copy = nullptr;    ///< of ProgramGraph::copy
  Graph copy_graph = nullptr;  ///< that `copy` is in: a child graph is another one
  std::variant<std::monostate, KernelStep, ArrayCopy, MemsetNodeParams, HostNodeParams,
               RecordEventStep, WaitEventStep>
      work;
};

class ProgramGraph {
 public:
  /// Reads the graph. `copied`: it is also cloned, for TunedGraph.
  ProgramGraph(const Driver& driver, ProgramCode& code, Graph graph, bool copied);
  ProgramGraph(const ProgramGraph&) = delete;
  ProgramGraph& operator=(const ProgramGraph&) = delete;
  ~ProgramGraph();

  const std::vector<GraphStep>& steps() const { return steps_; }
  std::vector<GraphStep>& steps() { return steps_; }
  /// Why the graph cannot be launched step by step or with other kernels, "" if it can. Its kernels
  /// are listed nevertheless, in any order.
  const std::string& obstacle() const { return obstacle_; }
  void AddObstacle(const std::string& why) {
    if (obstacle_.empty()) obstacle_ = why;
  }
  Graph copy() const { return copy_; }
  /// True if each node waits for the one before, so that no two run at the same time.
  bool in_sequence() const { return in_sequence_; }
  /// Calls of cuGraphExecUpdate.
  int updates = 0;

  /// The program gives a kernel node of the executable graph other parameters.
  void ChangeKernel(GraphNode node, const KernelNodeParams& params);
  /// Does what a step does that is no kernel. Error of CUDA.
  int Run(const GraphStep& step, Stream stream) const;
  /// The device was reset: the copy is gone.
  void Forget() { copy_ = nullptr; }

 private:
  void Read(Graph graph, Graph copy);
  std::vector<GraphNode> NodesOf(Graph graph) const;
  /// The nodes in an order that the edges allow.
  std::vector<GraphNode> Ordered(Graph graph);
  GraphNode InCopy(GraphNode node, Graph graph, Graph copy);
  void ReadNode(GraphStep step, Graph copy);
  void ReadKernel(GraphStep& step);
  void ReadChild(const GraphStep& step, Graph copy);
  KernelStep KernelOf(const KernelNodeParams& params);
  template <class T>
  T ParamsOf(int (*get)(GraphNode, T*), GraphNode node);

  const Driver& driver_;
  ProgramCode& code_;
  std::vector<GraphStep> steps_;
  std::string obstacle_;
  Graph copy_ = nullptr;
  bool in_sequence_ = true;
};

}  // namespace atunner::recorder
