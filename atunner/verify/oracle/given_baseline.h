// A user's kernel as given as the baseline: its error against the reference gives the budget.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "atunner/verify/budget/baseline.h"

namespace atunner {

class GivenBaseline : public ErrorBaseline {
 public:
  /// `given` must outlive it.
  GivenBaseline(const OracleContext& context, Program& given) : context_(context), given_(given) {}

  /// Measures, once per size, how many terms results have: see fan_in.h.
  Status Prepare(const TaskBuffers& buffers) override;
  Status Run(const TaskBuffers& buffers, const RangeOf& elsewhere) override;
  /// Nobody knows where it rounds.
  Result<bool> RunPerturbed(const TaskBuffers&, const RangeOf&, uint64_t) override { return false; }
  Result<uint64_t> WorkspaceBytes(const Dims& dims) override;
  TermCounts Terms(const Dims& dims, const std::string& output) const override;
  bool AddsInUnknownOrder(const Dims& dims) const override;
  bool MayNudge(const Dims& dims, InputFamily family) const override;

 private:
  OracleContext context_;
  Program& given_;
  std::map<Dims, std::map<std::string, double>> fan_in_;  ///< by output
};

/// True if a kernel adds floats by atomics, so that its results depend on the order of threads.
bool AddsFloatsByAtomics(std::string_view ptx);

}  // namespace atunner
