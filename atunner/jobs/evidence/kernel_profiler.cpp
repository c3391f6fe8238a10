#include "atunner/jobs/evidence/kernel_profiler.h"

#include <utility>

namespace atunner::jobs {

Result<LaunchProfile> KernelProfiler::operator()(const RenderedKernel& kernel) const {
  ATUNNER_TRY(CompileOutcome outcome,
              compiler_.Compile({kernel.source, EntriesOf(kernel.plan), target_.profile.Arch()}));
  if (!outcome.ok()) return Invalid("it does not compile: " + outcome.error);
  KernelProfile profile;
  ATUNNER_TRY(profile.launches,
              ProfileLaunches(spec_, {*std::move(outcome.module), kernel.plan, {}}, target_));
  return profile.Longest();
}

}  // namespace atunner::jobs
