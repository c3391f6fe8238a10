// The second interface of a ScheduleTemplate that is partitioned: its kernels are those of several
// tasks, the parts, which run one after the other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// One kernel of the whole.
struct PartStage {
  size_t part = 0;                           ///< index into Parts()
  std::map<std::string, std::string> names;  ///< the whole's name of each of the part's tensors
};

/// The parts can be tuned as tasks of their own.
class PartitionedSchedule {
 public:
  virtual ~PartitionedSchedule() = default;
  /// The distinct parts. Their tensors have names of their own, so that equal parts of different
  /// tasks are the same task.
  virtual std::vector<const ScheduleTemplate*> Parts() const = 0;
  /// The kernels in the order in which they run. A tensor of the whole that is no argument of its
  /// task is written by one stage and read by later ones.
  virtual std::vector<PartStage> Stages() const = 0;
  /// The whole kernel, with a configuration for each of Parts().
  virtual Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const = 0;
  /// True if the sizes of the part equal those of the whole that have the same names.
  virtual bool SharesSizes(size_t part) const = 0;
  /// ScheduleTemplate::CheckDims and FreeSizes of the whole, which was tuned for `sizes`, with
  /// these configurations of its parts.
  std::vector<Dims> CheckDimsOf(const std::vector<Configuration>& configurations,
                                const Dims& sizes) const;
  ValidSizes FreeSizesOf(const std::vector<Configuration>& configurations, const Dims& sizes) const;
};

}  // namespace atunner
