// A parametrised way to compute a task: a schedule family bound to an operator, or a user's kernel
// with its tunable parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/kernel/valid_sizes.h"
#include "atunner/model/space/parameter_space.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

struct Candidate;

class ScheduleTemplate {
 public:
  virtual ~ScheduleTemplate() = default;

  virtual const KernelSpec& spec() const = 0;
  virtual const ParameterSpace& space() const = 0;
  /// Source and launch for one configuration. Pure: the same configuration gives the same text.
  virtual Result<RenderedKernel> Render(const Configuration& configuration) const = 0;
  /// The configuration to try first: what an expert would start from, or the user's own values.
  virtual Configuration Default() const = 0;
  /// The plain kernel in the task's precision: the error baseline of the error budget, and the
  /// performance baseline "naive". nullopt when the task has none: a user's kernel in its default
  /// configuration takes that place.
  virtual std::optional<RenderedKernel> Naive() const { return std::nullopt; }
  /// Problem sizes, small enough for the virtual GPU with all checks on, at which the binary of
  /// this configuration is valid as well. Empty: it is valid at the task's own size only.
  virtual std::vector<Dims> CheckDims(const Configuration&) const { return {}; }
  /// The same of a whole kernel that a program derived from this template's. Empty for a kernel of
  /// anybody else: it might treat a small size in another way.
  virtual std::vector<Dims> CheckDimsOfKernel(const Candidate&) const { return {}; }
  /// All problem sizes at which the binary of this configuration is known to be valid: a loader may
  /// launch it for them. Must include every one of CheckDims. Empty: the task's own size only.
  virtual ValidSizes FreeSizes(const Configuration&) const { return {}; }
  /// A rough time in ns for ranking before anything is compiled; nullopt when the template has no
  /// model.
  virtual std::optional<double> Cost(const Configuration&, const DeviceProfile&) const {
    return std::nullopt;
  }
};

}  // namespace atunner
