#include "atunner/verify/budget/trivial_outputs.h"

#include <algorithm>
#include <cmath>

#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

/// True if zeros, a constant or an output whose second half is zero is within the budget. Their
/// relative errors against the reference r follow from its sums: zeros err by 1, the best constant
/// (the mean) by √(1 - n·mean² / Σr²), the half by √(Σ of the second half r² / Σr²).
bool ConstantPasses(const Reference::Output& output) {
  const CompareStats& self = output.self;
  if (!(self.squared_reference > 0)) return true;  // the reference is zero everywhere
  const double bound = output.budget.norm;
  const auto n = static_cast<double>(self.finite);
  const double mean = self.sum_reference / n;
  const double constant = std::sqrt(std::max(0.0, 1.0 - n * mean * mean / self.squared_reference));
  const double half = std::sqrt(self.squared_reference_second_half / self.squared_reference);
  return 1.0 <= bound || (output.elements > 1 && (constant <= bound || half <= bound));
}

}  // namespace

Status TestTrivialOutputs(const OracleContext& context, const TaskBuffers& buffers,
                          Reference& reference, size_t number) {
  Reference::Output& output = reference.outputs[number];
  output.discriminates = !output.overflows && !ConstantPasses(output);
  if (!(output.self.squared_reference > 0)) return {};
  // An output of a multi-tensor task depends on few of the inputs; others need not be compared.
  const auto sources = SourcesOf(context.spec, output.name);
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.spec->role != Role::kInput ||
        static_cast<uint64_t>(tensor.shape.elements) != output.elements)
      continue;
    if (sources && std::ranges::find(*sources, tensor.spec->name) == sources->end()) continue;
    const CompareRequest copy{
        .data = tensor.address, .dtype = tensor.spec->dtype, .scale = output.scale};
    ATUNNER_TRY(const CompareStats stats, CompareWith(context, buffers, reference, number, copy));
    if (stats.RelativeNorm() <= output.budget.norm) output.discriminates = false;
  }
  return {};
}

}  // namespace atunner
