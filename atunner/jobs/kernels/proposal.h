// A kernel that someone wrote for a problem, maybe with parameters to tune. The problem keeps its
// task: sizes, inputs, oracle, tolerance and baseline are never the proposer's.
#pragma once

#include <memory>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

/// CUDA C++ with the launches of its kernels.
struct Proposal {
  RenderedKernel kernel;  ///< the plan's expressions may name sizes of the task and parameters
  /// Parameters become macros (-Dname=value). May be empty.
  ParameterSpace space;
};

/// The parameter that every proposed schedule has beside its own: one value, the digest of the
/// proposal. Runs of different proposals thereby have different spaces and share no trials.
inline constexpr const char* kProposalParameter = "proposal";

/// A schedule of `problem`'s task whose configurations are those of the proposal; the first value
/// of each parameter is the default. `problem` is not kept. kInvalidInput for a launch that names
/// what the task does not have, that cannot be resolved at the task's size, or for a space without
/// a valid configuration.
Result<std::unique_ptr<ScheduleTemplate>> MakeProposedSchedule(const ScheduleTemplate& problem,
                                                               Proposal proposal);

/// The same for a whole file, an edited copy of the user's own, with the schedule that was read
/// from it. kInvalidInput where the copy changes an argument or a size of the task.
Result<std::unique_ptr<ScheduleTemplate>> MakeProposedSchedule(
    const ScheduleTemplate& problem, std::unique_ptr<ScheduleTemplate> edited);

/// The configuration that "tile=16,unroll=4" describes; parameters that are not named keep their
/// defaults. kInvalidInput for an unknown name or value, and where a constraint excludes it.
Result<Configuration> ConfigurationOf(const ScheduleTemplate& schedule, const std::string& text);

}  // namespace atunner::jobs
