#include "atunner/model/schedule/partitioned_schedule.h"

#include <algorithm>
#include <set>

namespace atunner {
namespace {

constexpr size_t kChecked = 2;

}  // namespace

/// A dim of the whole may vary when every part that has the dim allows it. Parts with sizes of
/// their own must be valid at any size.
ValidSizes PartitionedSchedule::FreeSizesOf(const std::vector<Configuration>& configurations,
                                            const Dims& sizes) const {
  ValidSizes valid;
  const std::vector<const ScheduleTemplate*> parts = Parts();
  for (const auto& [name, size] : sizes) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!SharesSizes(i) || !parts[i]->spec().dims.contains(name)) continue;
      valid.dims.push_back(name);
      break;
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValidSizes own = parts[i]->FreeSizes(configurations[i]);
    if (!SharesSizes(i) && own.dims.size() == parts[i]->spec().dims.size() &&
        own.constraints.empty())
      continue;
    if (!SharesSizes(i)) return {};
    std::erase_if(valid.dims, [&](const std::string& name) {
      return parts[i]->spec().dims.contains(name) &&
             std::ranges::find(own.dims, name) == own.dims.end();
    });
    for (const Constraint& constraint : own.constraints) {
      const auto same = [&](const Constraint& known) {
        return known.condition == constraint.condition;
      };
      if (std::ranges::none_of(valid.constraints, same)) valid.constraints.push_back(constraint);
    }
  }
  return valid;
}

/// The two smallest of the parts' check sizes at which all parts are valid. Two, because verifying
/// takes time for every part.
std::vector<Dims> PartitionedSchedule::CheckDimsOf(const std::vector<Configuration>& configurations,
                                                   const Dims& sizes) const {
  const ValidSizes valid = FreeSizesOf(configurations, sizes);
  std::set<Dims> found;
  const std::vector<const ScheduleTemplate*> parts = Parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!SharesSizes(i)) continue;
    for (const Dims& dims : parts[i]->CheckDims(configurations[i])) {
      if (Serves(valid, sizes, dims, {})) found.insert(dims);
    }
  }
  std::vector<Dims> smallest(found.begin(), found.end());
  smallest.resize(std::min(smallest.size(), kChecked));
  return smallest;
}

}  // namespace atunner
