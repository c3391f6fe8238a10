#include "atunner/model/schedule/renamed_sizes.h"

#include <string_view>
#include <utility>

#include "atunner/model/kernel/substitution.h"

namespace atunner {
namespace {

std::string Prefixed(const std::string& name) { return kSizePrefix + name; }
std::string Restored(const std::string& name) {
  return name.substr(std::string_view(kSizePrefix).size());
}

Meanings Restoring(const Dims& sizes) {
  Meanings meanings;
  for (const auto& [name, size] : sizes) meanings[Prefixed(name)] = name;
  return meanings;
}

}  // namespace

Status RestoreSizeNames(LaunchPlan& plan, const Dims& sizes) {
  return Substitute(plan, Restoring(sizes));
}

RenamedSizes::RenamedSizes(KernelSpec spec, std::unique_ptr<ScheduleTemplate> schedule)
    : spec_(std::move(spec)), schedule_(std::move(schedule)), space_(schedule_->space()) {}

Result<std::unique_ptr<ScheduleTemplate>> RenamedSizes::Make(
    KernelSpec spec, std::unique_ptr<ScheduleTemplate> schedule) {
  std::unique_ptr<RenamedSizes> made(new RenamedSizes(std::move(spec), std::move(schedule)));
  // A parameter may be called as a size is: the sizes become numbers.
  Meanings numbers;
  for (const auto& [name, size] : made->spec_.dims) numbers[Prefixed(name)] = std::to_string(size);
  for (Parameter& each : made->space_.parameters) {
    if (each.only_if) ATUNNER_RETURN_IF_ERROR(Substitute(*each.only_if, numbers));
  }
  for (Constraint& each : made->space_.constraints)
    ATUNNER_RETURN_IF_ERROR(Substitute(each.condition, numbers));
  return made;
}

Result<RenderedKernel> RenamedSizes::Render(const Configuration& configuration) const {
  ATUNNER_TRY(RenderedKernel kernel, schedule_->Render(configuration));
  ATUNNER_RETURN_IF_ERROR(RestoreSizeNames(kernel.plan, spec_.dims));
  return kernel;
}

std::optional<RenderedKernel> RenamedSizes::Naive() const {
  std::optional<RenderedKernel> naive = schedule_->Naive();
  if (naive && !RestoreSizeNames(naive->plan, spec_.dims)) return std::nullopt;
  return naive;
}

std::vector<Dims> RenamedSizes::CheckDims(const Configuration& configuration) const {
  std::vector<Dims> restored;
  for (const Dims& dims : schedule_->CheckDims(configuration)) {
    Dims& each = restored.emplace_back();
    for (const auto& [name, size] : dims) each[Restored(name)] = size;
  }
  return restored;
}

ValidSizes RenamedSizes::FreeSizes(const Configuration& configuration) const {
  ValidSizes freedom = schedule_->FreeSizes(configuration);
  const Meanings restoring = Restoring(spec_.dims);
  for (std::string& name : freedom.dims) name = Restored(name);
  for (Constraint& each : freedom.constraints) {
    if (!Substitute(each.condition, restoring)) return {};
  }
  return freedom;
}

}  // namespace atunner
