// The operator that a user's kernel was recognised as, and our families' kernels for it, in the
// place of the user's: the same buffers, the same sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/compile/compiler.h"
#include "atunner/jobs/requests/target.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/recognition/hypothesis.h"
#include "atunner/search/space/space_index.h"

namespace atunner::jobs {

/// A configuration of the operator's schedule, as a kernel of the user's task.
struct OfferedKernel {
  uint64_t index = 0;         ///< in the operator's space
  std::string configuration;  ///< "tile_m=128, …"
  RenderedKernel kernel;
};

class RecognisedKernels {
 public:
  /// nullptr where the kernel is no operator that is known. Errors where it cannot be run on the
  /// virtual GPU, or where no family computes the operator on the target. `user`: the schedule
  /// whose default configuration is `own`.
  static Result<std::unique_ptr<RecognisedKernels>> Find(const ScheduleTemplate& user,
                                                         const RenderedKernel& own,
                                                         const Target& target, Compiler& compiler);

  /// "product of matrices: a[mk] · b[kn]", "softmax of in by cols".
  std::string Describe() const;
  /// The family's first choice, and others that its costs say are fast.
  std::vector<OfferedKernel> First() const;
  /// The neighbours of a configuration, the cheapest ones first.
  std::vector<OfferedKernel> Near(uint64_t index) const;

 private:
  RecognisedKernels(recognition::Hypothesis hypothesis, std::unique_ptr<ScheduleTemplate> schedule,
                    SpaceIndex space, const DeviceProfile& profile);
  double CostOf(uint64_t index) const;
  std::vector<OfferedKernel> Rendered(std::vector<uint64_t> indices) const;
  std::optional<OfferedKernel> Offer(uint64_t index) const;

  recognition::Hypothesis hypothesis_;
  std::unique_ptr<ScheduleTemplate> schedule_;
  SpaceIndex space_;
  DeviceProfile profile_;
};

}  // namespace atunner::jobs
