// Schedule families: parametrised ways to compute an operator.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "atunner/model/device_profile.h"
#include "atunner/model/schedule_template.h"

namespace atunner {

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;
  virtual bool Match(const KernelSpec& spec) const = 0;
  /// The family bound to one task on one device: its space is pruned to what the device can hold.
  virtual Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec,
                                                         const DeviceProfile& profile) const = 0;
};

std::vector<const Family*> AllFamilies();
/// The first family that matches. kUnsupported when none does.
Result<std::unique_ptr<ScheduleTemplate>> MakeTemplate(const KernelSpec& spec, const DeviceProfile& profile);

const Family& RowFamily();
const Family& GemmFamily();
const Family& ProductFamily();
const Family& WeightsFamily();
const Family& ConvGraphFamily();
const Family& DepthwiseFiltersFamily();
const Family& AttentionFamily();
const Family& PagedAttentionFamily();
const Family& AttentionBackwardFamily();
const Family& PointwiseFamily();
const Family& ReductionFamily();
const Family& ColumnsFamily();
const Family& ScanFamily();
const Family& TransposeFamily();
const Family& PoolingFamily();
const Family& ElementsFamily();
const Family& ScatterFamily();
const Family& TopKFamily();
const Family& StagesFamily();

}  // namespace atunner
