// Launches tuned kernels in the place of the program's on the virtual GPU. The first launch of each
// is compared with the original, as on a real GPU (faces/recorder/replacer.h).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "atunner/capture/applied.h"
#include "atunner/capture/reachable.h"
#include "atunner/capture/replacement.h"
#include "faces/program/program_launch.h"
#include "faces/program/virtual_memory.h"

namespace atunner::program {

class Applier {
 public:
  using Outcome = Result<LaunchOutcome>;

  Applier(capture::ApplyOrder order, vgpu::VirtualGpu& gpu);

  /// Makes the launch, of the tuned kernel or of the original.
  Outcome Launch(const ProgramLaunch& launch, const LaunchOptions& options,
                 const std::function<Outcome()>& original);
  /// Appends a line to the report.
  void Report() const;

 private:
  struct Loaded {
    capture::Replacement replacement;
    std::string ptx;
    std::vector<std::string> symbols;  ///< variables of the module
    std::unique_ptr<LoadedModule> module;
  };
  /// One configuration of a replacement.
  struct Match {
    Loaded* loaded = nullptr;
    const capture::ReplacedLaunch* launch = nullptr;
    size_t report = 0;
    bool accepted = false, refused = false;
  };
  void Load(const std::string& folder);
  Match* Find(const ProgramLaunch& launch);
  capture::AppliedLaunch& ReportOf(const Match& match) { return report_.launches[match.report]; }
  void Refuse(Match& match, capture::Verdict verdict, const std::string& reason);
  Outcome LaunchTuned(const Match& match, const ProgramLaunch& launch,
                      const LaunchOptions& options);
  Outcome Compare(Match& match, const ProgramLaunch& launch, const LaunchOptions& options,
                  const std::function<Outcome()>& original);
  /// Copies the memory that the launch may reach; kUnavailable if that is too much.
  Status Collect(capture::Reachable& reachable, const Loaded& loaded,
                 const ProgramLaunch& launch) const;
  /// Runs the tuned kernel on the memory as it was before the original, and compares. The
  /// original's results stay if the tuned kernel is refused.
  Status Judge(Match& match, const ProgramLaunch& launch, const LaunchOptions& options,
               capture::Reachable& reachable);

  capture::ApplyOrder order_;
  vgpu::VirtualGpu& gpu_;
  VirtualMemory memory_;
  std::deque<Loaded> loaded_;
  std::deque<Match> matches_;
  capture::AppliedReport report_;
};

}  // namespace atunner::program
