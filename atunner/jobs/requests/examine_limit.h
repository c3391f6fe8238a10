// How long a judge may examine one kernel before its runner counts as stuck.
#pragma once

#include "atunner/jobs/requests/services.h"

namespace atunner::jobs {

/// Seconds for a kernel on a GPU: its small sizes, and its own. One that takes longer is refused.
constexpr double kExamineSeconds = 180;

/// The limit in seconds on `target`. A virtual GPU limits kernels by their work instead, so that
/// only a runner that is stuck takes an hour.
inline double ExamineSeconds(const Target& target, double on_a_gpu = kExamineSeconds) {
  return target.real_index ? on_a_gpu : 3600;
}

}  // namespace atunner::jobs
