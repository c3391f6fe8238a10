// What a kernel does: counters, the bottleneck they show, and costs by line. The virtual GPU
// counts; where the target is the GPU of this machine, that GPU's own counters come first.
#pragma once

#include <string>
#include <vector>

#include "atunner/evidence/classify.h"
#include "atunner/evidence/counters.h"
#include "atunner/evidence/roofline.h"
#include "atunner/jobs/kernels/loaded_kernel.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

struct ProfileRequest {
  KernelRequest kernel;
  bool lines = true;    ///< also count a sample of blocks line by line
  bool measure = true;  ///< read the GPU's counters, if the target is the GPU of this machine
  /// Which of them: the first set takes one pass, all of them about seven
  evidence::ReadSet counters = evidence::ReadSet::kRest;
};

/// One launch of a kernel's plan.
struct LaunchProfile {
  std::string entry;
  Dim3 grid, block;
  Estimate estimate;
  evidence::CounterSet counters;  ///< measured where there is a value, else counted
  evidence::CounterSet counted;   ///< of the virtual GPU alone
  evidence::Roofline roofline;
  std::vector<evidence::Finding> findings;  ///< the first is the bottleneck
};

struct KernelProfile {
  std::string kernel;
  std::string configuration;  ///< "tile=16, unroll=4"; "" when there is nothing to choose
  std::string gpu;
  std::vector<LaunchProfile> launches;  ///< in the order of the plan; never empty
  double time_ns = 0;                   ///< predicted, of all launches
  /// Why the GPU of this machine measured nothing; "" if it did, or if the target is no such GPU
  std::string not_measured;
  vgpu::LineCounts lines;  ///< of `line_blocks` blocks
  uint64_t line_blocks = 0;
  RenderedKernel rendered;  ///< as it was compiled
  KernelSpec spec;
  std::string source_name;  ///< what lines call the source's file
  std::string source;
  Path folder;  ///< of that file

  /// The launch that takes the longest.
  const LaunchProfile& Longest() const;
};

/// kInvalidInput where the kernel does not complete.
Result<KernelProfile> Profile(const ProfileRequest& request, Services& services,
                              const EventSink& events);

/// The launches of a compiled kernel on the virtual GPU of `target`. `measured`: counters of the
/// same launches on a GPU, in their order; empty if there are none.
Result<std::vector<LaunchProfile>> ProfileLaunches(
    const KernelSpec& spec, const CandidateKernel& kernel, const Target& target,
    const std::vector<evidence::CounterSet>& measured = {});

Json ToJson(const KernelProfile& profile);

}  // namespace atunner::jobs
