// Which cases a candidate is checked on: problem sizes times inputs, in the order in which they
// run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/code/mined_values.h"
#include "atunner/verify/inputs/input_family.h"

namespace atunner {

/// One check of a candidate: inputs at one problem size.
struct Case {
  Dims dims;
  InputInstance instance;
  uint32_t slot = 0;    ///< which of the size's buffers, see Verifier::BuffersAt
  bool repeat = false;  ///< the same inputs again must give equal bits
  /// The kernel as given need not bear these inputs: if it does not run, they are not compared.
  bool optional = false;
  /// For mined values that are not the candidate's alone: those of the candidate, which are tried
  /// where nothing can be compared on all.
  std::optional<MinedValues> own;
};

/// Cases at all `sizes`, from the smallest to the largest. The largest gets the families that show
/// errors which depend on the size, the smallest, which costs least, those that look for certain
/// values.
std::vector<Case> PlanCases(const KernelSpec& spec, const std::vector<Dims>& sizes, uint64_t seed);

/// Cases at the smallest size with constants of the code among the inputs: those of the kernel as
/// given, which are the same for all candidates, and those that only the candidate has, among those
/// of earlier ones in `pool`.
std::vector<Case> PlanMinedCases(const KernelSpec& spec, const Dims& smallest, uint64_t seed,
                                 const MinedValues& given, const MinedValues& candidates,
                                 MinedPool& pool);

}  // namespace atunner
