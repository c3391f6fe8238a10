#include "atunner/verify/case_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "atunner/base/random.h"
#include "atunner/model/kernel/tensor_totals.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/inputs/input_values.h"

namespace atunner {
namespace {

/// A size with more elements than this in a tensor, or more operations, gets few families of
/// values. The virtual GPU takes about a tenth of a second for so many.
constexpr double kCheapElements = 1 << 20;
constexpr double kCheapFlops = 2e7;

/// Arrays of fewer elements are indexed by ordinary integers, too; arrays that are tried.
constexpr int64_t kLeastIndexed = 16;
constexpr size_t kMostIndexed = 3;

/// What the inputs of a task are.
struct InputKinds {
  bool floats = false;    ///< floats of all families
  bool integers = false;  ///< integers without a stated range
  bool ranges = false;    ///< values from a stated range
  bool varied = false;    ///< constant, zero or ascending fills
  bool users = false;     ///< of a user's kernel
  bool chooses = false;   ///< an output is an integer, and may be the place of a value
};

InputKinds KindsOf(const KernelSpec& spec) {
  const bool users = spec.oracle.kind == Oracle::Kind::kKernel;
  InputKinds kinds;
  kinds.users = users;
  for (const ArgSpec& arg : spec.args) {
    kinds.chooses |= (arg.role == Role::kOutput || arg.role == Role::kInOut) && !IsFloat(arg.dtype);
    if (arg.role != Role::kInput && arg.role != Role::kInOut) continue;
    const bool open = arg.fill.kind == Fill::Kind::kFamilies;
    kinds.floats |= open && IsFloat(arg.dtype);
    kinds.integers |= open && !IsFloat(arg.dtype);
    kinds.ranges |= arg.fill.kind == Fill::Kind::kUniform || arg.fill.kind == Fill::Kind::kIndices;
    kinds.varied |= users && CanVary(arg);
  }
  return kinds;
}

/// Families that look for certain values, for tasks with such inputs.
std::vector<InputFamily> ValueFamilies(const InputKinds& kinds, bool cheap) {
  using enum InputFamily;
  struct Row {
    InputFamily family;
    bool applies;
    bool always;  ///< at any cost
  };
  const auto& [floats, integers, ranges, varied, users, chooses] = kinds;
  const Row rows[] = {
      {kVariedFill, varied, true},
      // In float sums of few different values the roundings add up, which no budget expects.
      {kTies, (floats || integers || ranges) && chooses, true},
      {kDecades, (floats || integers || ranges) && (users || !floats), true},
      {kEdges, integers || ranges, true},
      {kWide, integers, true},
      // An operator's decisions (argmax, comparisons) are open on such inputs, and its formula may
      // have a NaN where another one has none.
      {kWhole, floats && users, false},
      {kMonotone, (floats || integers || ranges) && (users || !floats), false},
      {kFalling, (floats || integers || ranges) && (users || !floats), false},
      {kInfinities, floats && users, false},
      {kZeros, floats || integers, false},
      {kLargeMean, floats && users, false},
      {kNearOne, floats && users, false},
      {kHuge, floats && users, false},
  };
  std::vector<InputFamily> families;
  for (const Row& row : rows) {
    if (row.applies && (cheap || row.always)) families.push_back(row.family);
  }
  return families;
}

/// Cases of a task without float inputs. Needles and changed elements are for floats, so that every
/// case has a seed of its own instead.
std::vector<Case> SeedCases(const Dims& dims, uint64_t seed, bool last) {
  std::vector<Case> cases;
  for (uint32_t k = 0; k < (last ? 5u : 2u); ++k)
    cases.push_back({dims, {InputFamily::kNormal, Mix64(seed + k), false, {}}, k / 2 % 2, k == 0});
  return cases;
}

/// Each family has a seed of its own: from one seed their elements would have the same order, and
/// the largest would be at the same indices in all of them.
InputInstance InstanceOf(InputFamily family, uint64_t seed) {
  const bool first = family == InputFamily::kNormal;
  return {family, first ? seed : Mix64(seed + static_cast<uint64_t>(family)), false, {}};
}

/// Cases at one size: normal inputs and a needle, at the last size the families whose errors grow
/// with the size.
std::vector<Case> FamilyCases(const Dims& dims, uint64_t seed, bool last) {
  using enum InputFamily;
  const InputInstance first = InstanceOf(kNormal, seed);
  std::vector<Case> cases = {{dims, first, 0, true}};
  // The same inputs right afterwards, at the same pointers, with one element changed: a result that
  // was remembered by pointer, by a prefix or by a checksum of a sample is stale.
  if (last) cases.push_back({dims, {first.family, first.seed, true, {}}, 0, false});
  cases.push_back({dims, InstanceOf(kNeedle, seed), 1, false});
  if (!last) return cases;
  cases.push_back({dims, InstanceOf(kCancelling, seed), 1, false});
  cases.push_back({dims, InstanceOf(kHeavyTail, seed), 0, false});
  cases.push_back({dims, InstanceOf(kLargeLogits, seed), 1, false});
  cases.push_back({dims, InstanceOf(kDenormal, seed), 0, false});
  cases.push_back({dims, InstanceOf(kNan, seed), 1, false});
  return cases;
}

/// True if the second argument takes floats of all families, and so a NaN.
bool HasSecondInput(const KernelSpec& spec) {
  if (spec.args.size() < 2) return false;
  const ArgSpec& arg = spec.args[1];
  return (arg.role == Role::kInput || arg.role == Role::kInOut) && IsFloat(arg.dtype) &&
         arg.fill.kind == Fill::Kind::kFamilies;
}

/// True if the task at that size is small.
bool IsCheap(const KernelSpec& spec, const Dims& dims) {
  return FlopCount(spec, dims).value_or(0) <= kCheapFlops &&
         TotalsOf(spec, dims).largest <= kCheapElements;
}

}  // namespace

std::vector<Case> PlanCases(const KernelSpec& spec, const std::vector<Dims>& sizes, uint64_t seed) {
  std::vector<Case> cases;
  const bool users = spec.oracle.kind == Oracle::Kind::kKernel;
  const InputKinds kinds = KindsOf(spec);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool last = i + 1 == sizes.size();  // the largest, on a real device the task's own
    const uint64_t at = Mix64(seed + i);
    const auto at_size = kinds.floats ? FamilyCases(sizes[i], at, last)
                                      : SeedCases(sizes[i], at, last);
    cases.insert(cases.end(), at_size.begin(), at_size.end());
    if (last && users && HasSecondInput(spec)) {
      InputInstance second = InstanceOf(InputFamily::kNan, at);
      second.mutated = true;
      cases.push_back({sizes[i], second, 0, false});
    }
    if (i != 0) continue;
    uint32_t slot = 0;
    for (InputFamily family : ValueFamilies(kinds, IsCheap(spec, sizes[i])))
      cases.push_back({sizes[i], InstanceOf(family, at), slot++ % 2, false, users});
  }
  return cases;
}

namespace {

/// The ends of arrays, as a kernel may index them with its inputs: for each number of elements
/// the last and some index halfway. One that the kernel as given does not bear is no input.
std::vector<MinedValues> IndicesOf(const KernelSpec& spec, const Dims& dims) {
  std::set<int64_t> counts;
  for (const ArgSpec& arg : spec.args) {
    const auto shape = ShapeOf(arg, spec, dims);
    if (!shape || arg.role == Role::kScalar || shape->elements < kLeastIndexed) continue;
    counts.insert(shape->elements);
  }
  std::vector<MinedValues> indices;
  for (const int64_t count : counts) {
    if (indices.size() == kMostIndexed) break;
    indices.push_back({{}, {count / 2, count - 2}});  // mined with the numbers beside them
  }
  return indices;
}

}  // namespace

std::vector<Case> PlanMinedCases(const KernelSpec& spec, const Dims& smallest, uint64_t seed,
                                 const MinedValues& given, const MinedValues& candidates,
                                 MinedPool& pool) {
  const bool users = spec.oracle.kind == Oracle::Kind::kKernel;
  std::vector<Case> cases;
  const auto add = [&](MinedValues values, std::optional<MinedValues> own) {
    const auto slot = static_cast<uint32_t>(cases.size() % 2);
    if (!AnyMined(values, spec, smallest)) return;
    InputInstance instance = InstanceOf(InputFamily::kMined, Mix64(seed));
    instance.mined = std::move(values);
    cases.push_back({smallest, std::move(instance), slot, false, users, std::move(own)});
  };
  const MinedValues known = UsableOf(given, spec);
  add(ModerateOf(known), {});
  // A number beyond all others makes sums infinite, and the other numbers in them invisible.
  if (users) {
    add(ExtremeOf(known), {});
    for (const MinedValues& indices : IndicesOf(spec, smallest)) add(UsableOf(indices, spec), {});
  }
  if (!IsCheap(spec, smallest)) return cases;  // each set needs a reference of its own
  const MinedValues news = Without(UsableOf(candidates, spec), known);
  const MinedValues moderate = ModerateOf(news);
  if (AnyMined(moderate, spec, smallest)) {
    MinedValues all = pool.Extended(moderate);

    const bool others = all != moderate;
    add(std::move(all), others ? std::optional(moderate) : std::nullopt);
  }
  if (users) add(ExtremeOf(news), {});
  return cases;
}

}  // namespace atunner
