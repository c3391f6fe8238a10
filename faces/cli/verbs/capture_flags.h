// The flags of verbs that record a program.
#pragma once

#include <string>

#include "atunner/jobs/requests/services.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/recorder/capture_program.h"

namespace atunner::cli {

struct CaptureFlags {
  std::string source;  ///< a .cu file to build
  std::string nvcc;    ///< options for it
  std::string target = "auto";
  std::string out;
  size_t launches = 4;
  double max_snapshot_gb = 4;
};

struct ShowFlags {
  std::string folder;
  std::string target;  ///< "": the capture's own
  bool no_times = false;
};

/// Lists the kernels of a capture by their share of GPU time.
Result<int> ShowCapture(const ShowFlags& flags, const Context& context);

/// Records the program behind `--`, or the one built from the source.
Result<recorder::CapturedProgram> Capture(const CaptureFlags& flags, const Context& context,
                                          const Target& target);
/// The device to record on.
Result<Target> TargetOfCapture(const CaptureFlags& flags, const Context& context,
                               jobs::Services& services);
/// Warns of wrong calls and of a program that did not end well.
void PrintProblems(const recorder::CapturedProgram& captured);

}  // namespace atunner::cli
