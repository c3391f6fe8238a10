// Schedule families: parametrised ways to compute an operator.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/model/schedule/schedule_template.h"
#include "atunner/model/value/device_profile.h"
#include "atunner/operators/task.h"

namespace atunner {

using BoundSchedule = Result<std::unique_ptr<ScheduleTemplate>>;

/// The answer of a family that was asked whether it computes a task.
struct Binding {
  /// Makes the schedule for one device: its space is pruned to what the device can hold. Empty if
  /// the family does not compute the task at all. kUnsupported if it does, but not on this device.
  /// The function keeps all that it needs of the task.
  std::function<BoundSchedule(const DeviceProfile& profile)> bind = {};
  /// The name of the family that is asked next if `bind` fails; empty: the error is final.
  std::string_view otherwise = {};

  explicit operator bool() const { return static_cast<bool>(bind); }
};

struct Family {
  std::string_view name;
  /// Matches the task. There is no device yet, because the partition of a graph into kernels asks
  /// this of many subgraphs and is the same for all devices. A family therefore leaves costly work,
  /// such as making the space, to Binding::bind.
  Binding (*Try)(const Task& task);
  /// Its schedule consists of schedules of other families, for subgraphs.
  bool partitions = false;
  /// Each element of a result reads its operands again, from caches if other elements have read
  /// them before. A partition counts an eighth of these bytes.
  bool rereads_operands = false;
  /// A partition does not use it where a reduction takes much less than the kernel writes
  /// (graph::HasSmallReduction).
  bool only_large_reductions = false;
};

/// The Try of a family whose Template{spec, profile, form} schedules tasks with a form:
/// `FormOf(task)` is an optional, a Result or the like.
template <class Template, auto FormOf>
Binding TryForm(const Task& task) {
  auto form = FormOf(task);
  if (!form) return {};
  return {.bind = [spec = task.spec(),
                   form = *std::move(form)](const DeviceProfile& profile) -> BoundSchedule {
    return std::make_unique<Template>(spec, profile, form);
  }};
}

/// The Try of a family whose forms are not worth keeping: `Matches(spec)` says whether it computes
/// a task, and `Bind(spec, profile)` makes the schedule.
template <auto Matches, auto Bind>
Binding TryIf(const Task& task) {
  if (!Matches(task.spec())) return {};
  return {.bind = [spec = task.spec()](const DeviceProfile& profile) -> BoundSchedule {
    return Bind(spec, profile);
  }};
}

/// True for a task of the operator of that name, and false for a graph of that name.
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
/// The first family that computes the task; nullptr if there is none. Families that partition are
/// left out unless `partitions`.
const Family* FamilyOf(const Task& task, bool partitions = true);
/// The schedule of the first family that computes the task. kUnsupported if there is none or it
/// does not on this device; kInvalidInput if `spec` is not the task of its graph.
BoundSchedule MakeTemplate(const Task& task, const DeviceProfile& profile);
BoundSchedule MakeTemplate(const KernelSpec& spec, const DeviceProfile& profile);

}  // namespace atunner
