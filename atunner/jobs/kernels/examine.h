// One kernel of a schedule, compiled, judged and timed, without a search.
#pragma once

#include <optional>
#include <string>

#include "atunner/compile/compiler.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/trial/trial.h"

namespace atunner::jobs {

/// A kernel as the compiler left it. A source that is refused is no Error: it has no module.
struct CompiledConfiguration {
  std::string configuration;  ///< "tile=16, unroll=4"
  RenderedKernel kernel;
  CompileOutcome outcome;
};

/// kInvalidInput for a configuration that the schedule does not have; kUnavailable without NVRTC.
Result<CompiledConfiguration> CompileConfiguration(const ScheduleTemplate& schedule,
                                                   const std::string& configuration,
                                                   const Target& target, Services& services);

/// The judge's answer about one kernel.
struct Examination {
  std::string configuration;
  Evidence evidence = Evidence::kPredicted;
  Verdict verdict;
  std::optional<Measurement> measurement;
  std::optional<Estimate> estimate;
  std::vector<KernelResources> resources;
  uint64_t seed = 0;
  std::optional<double> Ns() const;
};

struct ExamineOptions {
  bool time = false;      ///< measure or predict a kernel that is right
  bool thorough = false;  ///< the samples of a final examination
  uint64_t seed = 1;      ///< of the inputs
};

/// Verifies, and times what is right. A kernel that does not compile has a verdict that says so.
Result<Examination> Examine(const ScheduleTemplate& schedule, const std::string& configuration,
                            const ExamineOptions& options, const Target& target,
                            Services& services);

/// The problem's plain kernel, or the user's own as given, timed in the same way; nullopt where the
/// schedule has none.
Result<std::optional<Examination>> ExamineBaseline(const ScheduleTemplate& schedule,
                                                   const ExamineOptions& options,
                                                   const Target& target, Services& services);

}  // namespace atunner::jobs
