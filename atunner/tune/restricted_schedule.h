// A schedule template with additional constraints of the user, such as "cluster == 8 and
// prefetch == 1".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"

namespace atunner {

class RestrictedSchedule : public ScheduleTemplate {
 public:
  /// `inner` must outlive the object. kInvalidInput for a condition that cannot be parsed, that
  /// names an unknown parameter, or that excludes every configuration.
  static Result<RestrictedSchedule> Make(const ScheduleTemplate& inner,
                                         std::span<const std::string> conditions);

  const KernelSpec& spec() const override { return inner_.spec(); }
  const ParameterSpace& space() const override { return space_; }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    return inner_.Render(configuration);
  }
  Configuration Default() const override { return start_; }
  std::optional<RenderedKernel> Naive() const override { return inner_.Naive(); }
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return inner_.CheckDims(configuration);
  }
  std::vector<Dims> CheckDimsOfKernel(const Candidate& candidate) const override {
    return inner_.CheckDimsOfKernel(candidate);
  }
  ValidSizes FreeSizes(const Configuration& configuration) const override {
    return inner_.FreeSizes(configuration);
  }
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    return inner_.Cost(configuration, profile);
  }

 private:
  RestrictedSchedule(const ScheduleTemplate& inner, ParameterSpace space)
      : inner_(inner), space_(std::move(space)) {}

  const ScheduleTemplate& inner_;
  ParameterSpace space_;
  Configuration start_;
};

}  // namespace atunner
