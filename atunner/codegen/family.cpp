#include "atunner/codegen/template/family.h"

#include <algorithm>

#include "atunner/operators/prefixed_sizes.h"

namespace atunner {

std::vector<const Family*> AllFamilies() {
#define ATUNNER_ADDRESS(name) &k##name##Family,
  return {ATUNNER_FAMILIES(ATUNNER_ADDRESS)};
#undef ATUNNER_ADDRESS
}

Result<std::unique_ptr<ScheduleTemplate>> MakeTemplate(const KernelSpec& spec,
                                                       const DeviceProfile& profile) {
  for (const Family* family : AllFamilies()) {
    if (!family->Match(spec)) continue;
    const auto bind = [&](const KernelSpec& task) { return family->Bind(task, profile); };
    // Stages have no text of their own.
    return family == &kStagesFamily ? bind(spec) : BindWithPrefixedSizes(spec, bind);
  }
  const auto input = std::ranges::find(spec.args, Role::kInput, &ArgSpec::role);
  const DType dtype = input == spec.args.end() ? spec.compute_dtype : input->dtype;
  return Fail(ErrorCode::kUnsupported,
              "no schedule family computes '" + spec.name + "' of " + std::string(Name(dtype)), "",
              "docs/graph.md says which graphs they take");
}

}  // namespace atunner
