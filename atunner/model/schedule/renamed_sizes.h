// A schedule whose sources and expressions use prefixed names for the sizes of the task, so that a
// size that a user named "float" or "block" cannot collide with a C++ name or a parameter.
#pragma once

#include <memory>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

/// The prefix. No kernel, no parameter and no C++ keyword begins with it.
inline constexpr const char* kSizePrefix = "size_";

class RenamedSizes : public ScheduleTemplate {
 public:
  /// `schedule` computes `spec` with kSizePrefix before the names of its sizes.
  static Result<std::unique_ptr<ScheduleTemplate>> Make(KernelSpec spec,
                                                        std::unique_ptr<ScheduleTemplate> schedule);

  const KernelSpec& spec() const override { return spec_; }
  const ParameterSpace& space() const override { return space_; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override;
  Configuration Default() const override { return schedule_->Default(); }
  std::optional<RenderedKernel> Naive() const override;
  std::vector<Dims> CheckDims(const Configuration& configuration) const override;
  ValidSizes FreeSizes(const Configuration& configuration) const override;
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    return schedule_->Cost(configuration, profile);
  }

 private:
  RenamedSizes(KernelSpec spec, std::unique_ptr<ScheduleTemplate> schedule);

  KernelSpec spec_;
  std::unique_ptr<ScheduleTemplate> schedule_;
  ParameterSpace space_;
};

/// Removes the prefix from the names in the plan's expressions.
Status RestoreSizeNames(LaunchPlan& plan, const Dims& sizes);

}  // namespace atunner
