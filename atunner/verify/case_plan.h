// Which cases a candidate is checked on: problem sizes times inputs, in the order in which they
// run.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/input_family.h"

namespace atunner {

/// One check of a candidate: inputs at one problem size.
struct Case {
  Dims dims;
  InputInstance instance;
  uint32_t slot = 0;    ///< which of the size's buffers, see Verifier::BuffersAt
  bool repeat = false;  ///< the same inputs again must give equal bits
};

/// Cases at all `sizes`, of which the largest comes last and gets the most inputs.
std::vector<Case> PlanCases(const KernelSpec& spec, const std::vector<Dims>& sizes, uint64_t seed);

}  // namespace atunner
