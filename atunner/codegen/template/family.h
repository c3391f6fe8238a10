// Schedule families: parametrised ways to compute an operator.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

struct Family {
  std::string_view name;
  bool (*Match)(const KernelSpec& spec);
  /// The family bound to one task on one device: its space is pruned to what the device can hold.
  Result<std::unique_ptr<ScheduleTemplate>> (*Bind)(const KernelSpec& spec,
                                                    const DeviceProfile& profile);
};

/// `FormOf(spec)` is an optional, a Result or the like.
template <auto FormOf>
bool HasForm(const KernelSpec& spec) {
  return FormOf(spec).has_value();
}
/// Of tasks with a form, which Template{spec, profile, form} schedules.
template <class Template, auto FormOf>
Result<std::unique_ptr<ScheduleTemplate>> BindForm(const KernelSpec& spec,
                                                   const DeviceProfile& profile) {
  return std::make_unique<Template>(spec, profile, FormOf(spec).value());
}
template <class Template, auto FormOf>
constexpr Family FormFamily(std::string_view name) {
  return {name, HasForm<FormOf>, BindForm<Template, FormOf>};
}

/// Is it a task of the operator of that name, and not of a graph?
inline bool IsOperator(const KernelSpec& spec, std::string_view name) {
  return spec.oracle.kind == Oracle::Kind::kOperator && spec.name == name;
}

/// Each family's name, in the order in which they are asked.
// clang-format off
#define ATUNNER_FAMILIES(USE) \
  USE(Row) USE(Gemm) USE(Attention) USE(PagedAttention) USE(AttentionBackward) USE(Tensors) USE(Reduction) \
  USE(Columns) USE(Scan) USE(Transpose) USE(Pooling) USE(Product) USE(Weights) USE(Elements) USE(ConvGraph) \
  USE(Scatter) USE(ScatterStrips) USE(TopK) USE(DepthwiseFilters) USE(Stages)
// clang-format on

#define ATUNNER_DECLARE_FAMILY(name) extern const Family k##name##Family;
ATUNNER_FAMILIES(ATUNNER_DECLARE_FAMILY)
#undef ATUNNER_DECLARE_FAMILY

std::vector<const Family*> AllFamilies();
/// The first family that matches. kUnsupported when none does.
Result<std::unique_ptr<ScheduleTemplate>> MakeTemplate(const KernelSpec& spec,
                                                       const DeviceProfile& profile);

}  // namespace atunner
