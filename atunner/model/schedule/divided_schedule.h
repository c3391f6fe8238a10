// A schedule template whose kernels are those of several tasks, one after the other.
#pragma once

#include <vector>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// What such a template is besides a ScheduleTemplate: its parts can be tuned as tasks of their
/// own.
class DividedSchedule {
 public:
  virtual ~DividedSchedule() = default;
  /// Each once, whatever the whole calls its tensors: the same part of another task is the same
  /// task.
  virtual std::vector<const ScheduleTemplate*> Parts() const = 0;
  /// The whole, with a configuration for each of Parts().
  virtual Result<RenderedKernel> RenderParts(
      const std::vector<Configuration>& configurations) const = 0;
  /// Are its sizes the whole's, where they are called so?
  virtual bool SharesSizes(size_t part) const = 0;
  /// Of the whole with these, whose own sizes are `sizes`: as ScheduleTemplate has it.
  std::vector<Dims> CheckDimsOf(const std::vector<Configuration>& configurations,
                                const Dims& sizes) const;
  SizeFreedom FreeSizesOf(const std::vector<Configuration>& configurations,
                          const Dims& sizes) const;
};

}  // namespace atunner
