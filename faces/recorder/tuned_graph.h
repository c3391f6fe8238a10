// A program's graph with tuned kernels in the place of some of its own, launched instead of it.
#pragma once

#include <functional>
#include <vector>

#include "faces/recorder/program_graph.h"

namespace atunner::recorder {

/// A variable of the program's module, and that of the same name of the tuned kernel's.
struct SymbolPair {
  DevicePointer program = 0, tuned = 0;
  size_t bytes = 0;
  bool constant = false;
};

/// A tuned kernel in the current context.
struct TunedKernel {
  Function function = nullptr;
  std::vector<SymbolPair> symbols;
};

/// What is launched for a step.
struct Replaced {
  const TunedKernel* tuned = nullptr;  ///< nullptr: the original
  capture::LaunchConfiguration to;
};

class TunedGraph {
 public:
  using Choose = std::function<Replaced(const KernelStep&)>;

  explicit TunedGraph(const Driver& driver) : driver_(driver) {}
  TunedGraph(const TunedGraph&) = delete;
  TunedGraph& operator=(const TunedGraph&) = delete;
  ~TunedGraph();

  /// Instantiates the copy of `graph` with the kernels that `choose` names. A second call has the
  /// kernel nodes follow what the program has changed. False if CUDA refuses.
  bool Prepare(ProgramGraph& graph, const Choose& choose);
  GraphExec exec() const { return exec_; }
  /// The device was reset: the graph is gone.
  void Forget() { exec_ = nullptr; }

 private:
  bool Build(ProgramGraph& graph, const Choose& choose);
  bool BuildNode(const GraphStep& step, KernelStep& kernel, const Replaced& by);
  bool Follow(ProgramGraph& graph, const Choose& choose);
  /// Copies the program's variables to the tuned kernel's before the node, and back after it.
  bool CopySymbols(const GraphStep& step, const TunedKernel& tuned);
  bool AddCopy(const GraphStep& step, const SymbolPair& symbol, bool back);

  const Driver& driver_;
  std::vector<const TunedKernel*> chosen_;  ///< for each step; nullptr: the original
  GraphExec exec_ = nullptr;
};

}  // namespace atunner::recorder
