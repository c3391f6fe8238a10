// Two candidates may compile to the same binary with the same launches. The result of the first one
// then holds for the second.
#pragma once

#include <map>

#include "atunner/base/digest.h"
#include "atunner/judge/judge.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

class KnownKernels {
 public:
  /// The number of the first candidate that runs the same code in the same launches, at the task's
  /// sizes and at every size it is checked at; `number`, this one's own, when there was none.
  int64_t FirstOf(const CandidateKernel& candidate, const KernelSpec& spec, int64_t number);

 private:
  std::map<Digest, int64_t> first_;
};

}  // namespace atunner
