// What a kernel wrote against the oracle, as the verifier judges it.
#pragma once

#include <gtest/gtest.h>

#include "atunner/verify/budget/error_budget.h"
#include "atunner/verify/launch/judge_kernels.h"
#include "atunner/verify/oracle/oracle.h"

namespace atunner {

inline void ExpectCorrect(JudgeKernels& kernels, const TaskBuffers& buffers,
                          const Reference::Output& output) {
  const CompareStats stats = kernels
                                 .Compare({buffers.Find(output.name)->address, output.dtype,
                                           output.masked->address(), output.elements, output.key,
                                           output.scale, output.budget.element})
                                 .value();
  const OutputJudgement judgement = JudgeOutput(output.name, stats, output.budget, false);
  EXPECT_EQ(Name(judgement.kind), Name(VerdictKind::kCorrect)) << judgement.reason;
}

}  // namespace atunner
