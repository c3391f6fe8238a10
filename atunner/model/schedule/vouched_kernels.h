// Whole kernels for which a template vouches, because they were derived from its own by a program.
#pragma once

#include <vector>

#include "atunner/model/candidate/candidate.h"

namespace atunner {

/// A ScheduleTemplate may be one of these as well.
class VouchedKernels {
 public:
  virtual ~VouchedKernels() = default;
  /// Problem sizes at which the candidate, a whole kernel, is valid as well as at the task's own,
  /// as ScheduleTemplate::CheckDims. Empty for a candidate of anybody else: it might treat a small
  /// size in another way.
  virtual std::vector<Dims> CheckDimsOf(const Candidate& candidate) const = 0;
};

}  // namespace atunner
