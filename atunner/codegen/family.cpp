#include "atunner/codegen/family.h"

#include <algorithm>

namespace atunner {

std::vector<const Family*> AllFamilies() {
#define ATUNNER_ADDRESS(name) &k##name##Family,
  return {ATUNNER_FAMILIES(ATUNNER_ADDRESS)};
#undef ATUNNER_ADDRESS
}

Result<std::unique_ptr<ScheduleTemplate>> MakeTemplate(const KernelSpec& spec, const DeviceProfile& profile) {
  for (const Family* family : AllFamilies()) {
    if (family->Match(spec)) return family->Bind(spec, profile);
  }
  const auto input = std::ranges::find(spec.args, Role::kInput, &ArgSpec::role);
  const DType dtype = input == spec.args.end() ? spec.compute_dtype : input->dtype;
  return Fail(ErrorCode::kUnsupported, "no schedule family computes '" + spec.name + "' of " + std::string(Name(dtype)),
              "", "docs/graph.md says which graphs they take");
}

}  // namespace atunner
