#include "atunner/codegen/template/plain_schedule.h"

#include <optional>
#include <string>
#include <utility>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/operators/operator.h"

namespace atunner {
namespace {

class PlainTemplate : public BoundTemplate {
 public:
  PlainTemplate(const KernelSpec& spec, const DeviceProfile& profile, RenderedKernel kernels)
      : BoundTemplate(spec, profile), kernels_(std::move(kernels)) {
    space_.parameters.push_back({"kernels",
                                 {std::string("plain")},
                                 "one simple kernel per node: no family computes these"});
    kernels_.plan.parameter_names = space_.Names();
    kernels_.plan.parameter_values = space_.parameters[0].values;
  }

  Result<RenderedKernel> Render(const Configuration&) const override { return kernels_; }

 private:
  RenderedKernel kernels_;
};

}  // namespace

Result<std::unique_ptr<ScheduleTemplate>> PlainSchedule(const KernelSpec& spec,
                                                        const DeviceProfile& profile) {
  std::optional<RenderedKernel> kernels = OracleOf(spec)->Naive(spec);
  if (!kernels)
    return Fail(ErrorCode::kUnsupported, "'" + spec.name + "' has no plain kernels", "",
                "constants of more than 4096 elements have none: make them inputs");
  return std::make_unique<PlainTemplate>(spec, profile, *std::move(kernels));
}

}  // namespace atunner
