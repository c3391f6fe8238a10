#include "atunner/model/schedule/divided_schedule.h"

#include <algorithm>
#include <set>

namespace atunner {
namespace {

constexpr size_t kChecked = 2;

}  // namespace

/// Sizes that parts have and that all of those are free in, where parts with sizes of their own are
/// right at any.
SizeFreedom DividedSchedule::FreeSizesOf(const std::vector<Configuration>& configurations,
                                         const Dims& sizes) const {
  SizeFreedom freedom;
  const std::vector<const ScheduleTemplate*> parts = Parts();
  for (const auto& [name, size] : sizes) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!SharesSizes(i) || !parts[i]->spec().dims.contains(name)) continue;
      freedom.dims.push_back(name);
      break;
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const SizeFreedom own = parts[i]->FreeSizes(configurations[i]);
    if (!SharesSizes(i) && own.dims.size() == parts[i]->spec().dims.size() &&
        own.constraints.empty())
      continue;
    if (!SharesSizes(i)) return {};
    std::erase_if(freedom.dims, [&](const std::string& name) {
      return parts[i]->spec().dims.contains(name) &&
             std::ranges::find(own.dims, name) == own.dims.end();
    });
    for (const Constraint& constraint : own.constraints) {
      const auto same = [&](const Constraint& known) {
        return known.condition == constraint.condition;
      };
      if (std::ranges::none_of(freedom.constraints, same))
        freedom.constraints.push_back(constraint);
    }
  }
  return freedom;
}

/// Whatever part they are from, those at which all parts are right; the two smallest, since every
/// part takes its time.
std::vector<Dims> DividedSchedule::CheckDimsOf(const std::vector<Configuration>& configurations,
                                               const Dims& sizes) const {
  const SizeFreedom freedom = FreeSizesOf(configurations, sizes);
  std::set<Dims> found;
  const std::vector<const ScheduleTemplate*> parts = Parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!SharesSizes(i)) continue;
    for (const Dims& dims : parts[i]->CheckDims(configurations[i])) {
      if (Serves(freedom, sizes, dims, {})) found.insert(dims);
    }
  }
  std::vector<Dims> smallest(found.begin(), found.end());
  smallest.resize(std::min(smallest.size(), kChecked));
  return smallest;
}

}  // namespace atunner
