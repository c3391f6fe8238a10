// One parametrised way to compute a spec: a family bound to an operator, or a user's kernel with
// its tunables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/kernel/size_freedom.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

class ScheduleTemplate {
 public:
  virtual ~ScheduleTemplate() = default;

  virtual const KernelSpec& spec() const = 0;
  virtual const ParameterSpace& space() const = 0;
  /// Source and launch for one configuration. Pure: the same configuration gives the same text.
  virtual Result<RenderedKernel> Render(const Configuration& configuration) const = 0;
  /// The configuration to try first: what an expert would start from, or the user's own values.
  virtual Configuration Default() const = 0;
  /// The honest, plain way in the task's precision: the error budget's yardstick and the baseline
  /// "naive". nullopt when the task has none (a user's kernel, whose default configuration serves).
  virtual std::optional<RenderedKernel> Naive() const { return std::nullopt; }
  /// Problem sizes, small enough for the virtual GPU with all checks on, at which this
  /// configuration's very binary is valid. Empty: only the task's own size is.
  virtual std::vector<Dims> CheckDims(const Configuration&) const { return {}; }
  /// All problem sizes at which this configuration's very binary is valid, as far as the template
  /// can say: what a loader may launch it for. Must hold for every one of CheckDims. Empty: only
  /// the task's own size.
  virtual SizeFreedom FreeSizes(const Configuration&) const { return {}; }
  /// A rough time in ns for ranking before anything is compiled; nullopt when the template has no
  /// model.
  virtual std::optional<double> Cost(const Configuration&, const DeviceProfile&) const {
    return std::nullopt;
  }
};

}  // namespace atunner
