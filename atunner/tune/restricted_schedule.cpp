#include "atunner/tune/restricted_schedule.h"

#include <algorithm>

#include "atunner/search/space/space_index.h"

namespace atunner {
namespace {

/// Among up to kLookedAt valid configurations, the one that differs from `wanted` in the fewest
/// parameters.
Configuration Nearest(const SpaceIndex& index, const Configuration& wanted) {
  constexpr uint64_t kLookedAt = 20000;
  const uint64_t step = std::max<uint64_t>(1, index.size() / kLookedAt);
  Configuration nearest;
  size_t least = SIZE_MAX;
  for (uint64_t at = 0; at < index.size(); at += step) {
    Configuration one = index.At(at);
    size_t differing = 0;
    for (size_t i = 0; i < one.values.size(); ++i)
      differing += one.values[i] != wanted.values[i] ? 1 : 0;
    if (differing >= least) continue;
    least = differing;
    nearest = std::move(one);
  }
  return nearest;
}

}  // namespace

Result<RestrictedSchedule> RestrictedSchedule::Make(const ScheduleTemplate& inner,
                                                    std::span<const std::string> conditions) {
  ParameterSpace space = inner.space();
  for (const std::string& text : conditions) {
    ATUNNER_TRY(const Expr condition, Expr::Parse(text));
    space.constraints.push_back({condition, "asked for by the request"});
  }
  const KernelSpec& spec = inner.spec();
  ATUNNER_RETURN_IF_ERROR(space.Validate(spec.dims));
  ATUNNER_TRY(const SpaceIndex index, SpaceIndex::Build(space, spec.dims));
  RestrictedSchedule restricted(inner, std::move(space));
  const Configuration start = inner.Default();
  restricted.start_ = index.IndexOf(start) < index.size() ? start : Nearest(index, start);
  return restricted;
}

}  // namespace atunner
