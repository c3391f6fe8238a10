#include "atunner/verify/case_plan.h"

#include <algorithm>

#include "atunner/base/random.h"

namespace atunner {
namespace {

/// Cases of a task without float inputs. Families and changed elements are for floats, so that
/// every case has a seed of its own instead.
std::vector<Case> SeedCases(const Dims& dims, uint64_t seed, bool last) {
  std::vector<Case> cases;
  for (uint32_t k = 0; k < (last ? 5u : 2u); ++k)
    cases.push_back({dims, {InputFamily::kNormal, Mix64(seed + k), false}, k / 2 % 2, k == 0});
  return cases;
}

/// Cases at one size: normal inputs and a needle, at the last size all families.
std::vector<Case> FamilyCases(const Dims& dims, uint64_t seed, bool last) {
  using enum InputFamily;
  // Each family has a seed of its own: from one seed their elements would have the same order, and
  // the largest would be at the same indices in all of them.
  const auto instance = [&](InputFamily family) {
    return InputInstance{
        family, family == kNormal ? seed : Mix64(seed + static_cast<uint64_t>(family)), false};
  };
  const InputInstance first = instance(kNormal);
  std::vector<Case> cases = {{dims, first, 0, true}};
  // The same inputs right afterwards, at the same pointers, with one element changed: a result that
  // was remembered by pointer, by a prefix or by a checksum of a sample is stale.
  if (last) cases.push_back({dims, {first.family, first.seed, true}, 0, false});
  cases.push_back({dims, instance(kNeedle), 1, false});
  if (!last) return cases;
  cases.push_back({dims, instance(kCancelling), 1, false});
  cases.push_back({dims, instance(kHeavyTail), 0, false});
  cases.push_back({dims, instance(kLargeLogits), 1, false});
  cases.push_back({dims, instance(kDenormal), 0, false});
  cases.push_back({dims, instance(kNan), 1, false});
  return cases;
}

}  // namespace

std::vector<Case> PlanCases(const KernelSpec& spec, const std::vector<Dims>& sizes, uint64_t seed) {
  std::vector<Case> cases;
  const bool has_float_input = std::ranges::any_of(spec.args, [](const ArgSpec& arg) {
    return (arg.role == Role::kInput || arg.role == Role::kInOut) && IsFloat(arg.dtype) &&
           arg.fill.kind == Fill::Kind::kFamilies;
  });
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool last = i + 1 == sizes.size();  // the largest, on a real device the task's own
    const uint64_t at = Mix64(seed + i);
    const auto at_size = has_float_input ? FamilyCases(sizes[i], at, last)
                                         : SeedCases(sizes[i], at, last);
    cases.insert(cases.end(), at_size.begin(), at_size.end());
  }
  return cases;
}

}  // namespace atunner
