#include "atunner/codegen/template/family.h"

#include <algorithm>

#include "atunner/codegen/template/plain_schedule.h"
#include "atunner/model/schedule/renamed_sizes.h"
#include "atunner/operators/prefixed_sizes.h"

namespace atunner {
namespace {

const Family* FindFamily(std::string_view name) {
  const std::vector<const Family*> families = AllFamilies();
  const auto found = std::ranges::find(families, name, &Family::name);
  ATUNNER_CHECK(found != families.end());
  return *found;
}

/// A task, and the same task as families with texts of their own see it.
struct NamedTask {
  const Task& task;
  std::optional<Task> prefixed;  ///< empty if the task's own size names can be used

  const Task& For(const Family& family) const {
    return prefixed && !family.partitions ? *prefixed : task;
  }
};

BoundSchedule Bind(const Family& family, const Binding& binding, const NamedTask& named,
                   const DeviceProfile& profile) {
  auto bound = binding.bind(profile);
  if (!bound && !binding.otherwise.empty()) {
    const Family& other = *FindFamily(binding.otherwise);
    if (const Binding next = other.Try(named.For(other))) return Bind(other, next, named, profile);
  }
  if (!bound || &named.For(family) == &named.task) return bound;
  return RenamedSizes::Make(named.task.spec(), *std::move(bound));
}

}  // namespace

std::vector<const Family*> AllFamilies() {
#define ATUNNER_ADDRESS(name) &k##name##Family,
  return {ATUNNER_FAMILIES(ATUNNER_ADDRESS)};
#undef ATUNNER_ADDRESS
}

const Family* FamilyOf(const Task& task, bool partitions) {
  for (const Family* family : AllFamilies()) {
    if ((partitions || !family->partitions) && family->Try(task)) return family;
  }
  return nullptr;
}

BoundSchedule MakeTemplate(const Task& task, const DeviceProfile& profile) {
  const NamedTask named{task, WithPrefixedSizes(task)};
  for (const Family* family : AllFamilies()) {
    if (const Binding binding = family->Try(named.For(*family)))
      return Bind(*family, binding, named, profile);
  }
  // Every graph is computed: what no family schedules runs on plain kernels.
  if (task.graph() != nullptr) return PlainSchedule(task.spec(), profile);
  const KernelSpec& spec = task.spec();
  const auto input = std::ranges::find(spec.args, Role::kInput, &ArgSpec::role);
  const DType dtype = input == spec.args.end() ? spec.compute_dtype : input->dtype;
  return Fail(ErrorCode::kUnsupported,
              "no schedule family computes '" + spec.name + "' of " + std::string(Name(dtype)), "",
              "docs/graph.md says which graphs they take");
}

BoundSchedule MakeTemplate(const KernelSpec& spec, const DeviceProfile& profile) {
  ATUNNER_TRY(const Task task, Task::Make(spec));
  return MakeTemplate(task, profile);
}

}  // namespace atunner
