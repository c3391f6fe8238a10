// A user's kernel as given as the baseline: its error against the reference gives the budget.
#pragma once

#include <string>

#include "atunner/verify/baseline.h"

namespace atunner {

class GivenBaseline : public ErrorBaseline {
 public:
  /// `given` must outlive it.
  GivenBaseline(const OracleContext& context, Program& given) : context_(context), given_(given) {}

  Status Run(const TaskBuffers& buffers, const RangeOf& elsewhere) override;
  /// Nobody knows where it rounds.
  Result<bool> RunPerturbed(const TaskBuffers&, const RangeOf&, uint64_t) override { return false; }
  Result<uint64_t> WorkspaceBytes(const Dims& dims) override;
  /// A guess from the sizes of tensors, see given_baseline.cpp.
  TermCounts Terms(const Dims& dims, const std::string& output) const override;
  bool adds_in_unknown_order() const override { return true; }

 private:
  OracleContext context_;
  Program& given_;
};

/// True if a kernel adds floats by atomics, so that its results depend on the order of threads.
bool AddsFloatsByAtomics(std::string_view ptx);

}  // namespace atunner
