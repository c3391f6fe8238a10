#include "atunner/codegen/family.h"

namespace atunner {

std::vector<const Family*> AllFamilies() {
  return {&RowFamily(),
          &GemmFamily(),
          &AttentionFamily(),
          &PagedAttentionFamily(),
          &AttentionBackwardFamily(),
          &PointwiseFamily(),
          &ReductionFamily(),
          &ColumnsFamily(),
          &ScanFamily(),
          &TransposeFamily(),
          &PoolingFamily(),
          &ProductFamily(),
          &WeightsFamily(),
          &ElementsFamily(),
          &ConvGraphFamily(),
          &ScatterFamily(),
          &TopKFamily(),
          &DepthwiseFiltersFamily(),
          &StagesFamily()};
}

Result<std::unique_ptr<ScheduleTemplate>> MakeTemplate(const KernelSpec& spec, const DeviceProfile& profile) {
  for (const Family* family : AllFamilies()) {
    if (family->Match(spec)) return family->Bind(spec, profile);
  }
  return Fail(ErrorCode::kUnsupported,
              "no schedule family computes '" + spec.name + "' in " + std::string(Name(spec.compute_dtype)));
}

}  // namespace atunner
