// Launches tuned kernels in the place of the program's. The first launch of each is compared with
// the original: the memory that it may reach is copied, the original runs, the memory is put back,
// the tuned kernel runs, and both results are compared. If they differ, the original's results are
// put in place, and the original is used from then on.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/capture/comparison.h"
#include "atunner/capture/reachable.h"
#include "atunner/capture/replacement.h"
#include "faces/recorder/device_memory.h"
#include "faces/recorder/launch_call.h"
#include "faces/recorder/order.h"
#include "faces/recorder/program_code.h"
#include "faces/recorder/recorder.h"
#include "faces/recorder/tuned_graph.h"

namespace atunner::recorder {

class Replacer {
 public:
  Replacer(const Driver& driver, ProgramCode& code, DeviceMemory& memory, ApplyOrder order);

  /// Makes the launch, of the tuned kernel or of the original. `quiet`: as of Recorder::Launch.
  int Launch(ProgramKernel& kernel, const LaunchCall& call, const OriginalLaunch& original,
             bool quiet, Lock& lock);
  /// True if the first launch of a tuned kernel is still to be compared, so that the graph should
  /// be launched step by step.
  bool Wants(const ProgramGraph& graph);
  /// Launches the graph as a whole, with the tuned kernels that were accepted. Unlocks `lock`.
  int LaunchGraph(ProgramGraph& graph, TunedGraph& tuned, Stream stream,
                  const OriginalLaunch& original, Lock& lock);
  void OnReset();
  /// Appends a line to the report.
  void Report() const;

 private:
  struct Loaded {
    capture::Replacement replacement;
    std::string image;
    size_t first_report = 0;  ///< of its launches, in report_
  };
  /// A replacement of one kernel of the program with one configuration.
  struct Match {
    const Loaded* loaded = nullptr;
    const capture::ReplacedLaunch* launch = nullptr;
    size_t report = 0;
    bool refused = false, accepted = false;
    std::map<Context, TunedKernel> tuned;
  };
  void Load(const std::string& folder);
  /// Why a replacement does not fit the device or the program's module; "" if it does.
  std::string Unfit(const Loaded& loaded, const ProgramKernel& kernel) const;
  std::vector<Match>& MatchesOf(const ProgramKernel& kernel);
  Match* Find(const ProgramKernel& kernel, const capture::LaunchConfiguration& configuration);
  AppliedLaunch& ReportOf(const Match& match) { return report_.launches[match.report]; }
  void Refuse(Match& match, Verdict verdict, const std::string& reason);
  Result<TunedKernel> LoadTuned(const Match& match, const ProgramKernel& kernel);
  Result<const TunedKernel*> TunedOf(Match& match, const ProgramKernel& kernel);
  /// What a kernel of a graph is replaced by.
  Replaced ReplacedBy(const KernelStep& step);
  /// Counts the launches of a graph's kernels. `replaced`: by the tuned kernels if there are.
  void CountGraph(const ProgramGraph& graph, bool replaced, const TunedGraph::Choose& choose);
  std::vector<SymbolPair> SymbolsOf(const ProgramKernel& kernel, Module tuned) const;
  int LaunchTuned(const Match& match, const TunedKernel& tuned, const LaunchCall& call) const;
  int Compare(Match& match, const ProgramKernel& kernel, const LaunchCall& call,
              const OriginalLaunch& original);
  /// Copies the memory that the launch may reach.
  Status Collect(Reachable& reachable, const ProgramKernel& kernel, const LaunchCall& call,
                 const TunedKernel& tuned);
  /// Runs the tuned kernel after the original, and compares.
  Status Judge(Match& match, const LaunchCall& call, const TunedKernel& tuned,
               Reachable& reachable);

  const Driver& driver_;
  ProgramCode& code_;
  DeviceMemory& memory_;
  ApplyOrder order_;
  std::deque<Loaded> loaded_;
  std::unordered_map<size_t, std::vector<Match>> matches_;  ///< by ProgramKernel::number
  AppliedReport report_;
};

}  // namespace atunner::recorder
