// Rules about operators of PyTorch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

/// Sums over the operators of these names. An operator inside another of them counts once if only
/// the outer name is given.
OperatorRow Operators(const FindingInput& input, std::initializer_list<std::string_view> names) {
  OperatorRow sum;
  for (const OperatorRow& row : input.analysis.tables.operators) {
    if (std::ranges::find(names, Text(input, row.name)) == names.end()) continue;
    sum.count += row.count;
    sum.device_total += row.device_total;
    sum.host_total += row.host_total;
    sum.launches += row.launches;
  }
  return sum;
}

double DeviceShare(const FindingInput& input, const OperatorRow& row) {
  return static_cast<double>(row.device_total) / WindowOf(input);
}

std::optional<Finding> ScalarReads(const FindingInput& input) {
  const OperatorRow reads = Operators(input, {"aten::_local_scalar_dense"});
  const size_t steps = std::max<size_t>(1, input.analysis.iterations.at.size());
  if (reads.count < 2 * steps) return std::nullopt;
  const double share = static_cast<double>(reads.host_total) / WindowOf(input);
  return Finding{.title = "Scalars are read back in each step",
                 .evidence = fmt::format(
                     "{} reads of one number ({} a step); the host waited {} in them", reads.count,
                     reads.count / steps, Duration(static_cast<double>(reads.host_total))),
                 .gain = std::min(share, IdleShare(input, IdleCause::kSynchronization)),
                 .action =
                     "no .item(), float(tensor) or `if tensor:` in the step; clip gradients with "
                     "foreach=True, keep metrics on the GPU"};
}

std::optional<Finding> Casts(const FindingInput& input) {
  const OperatorRow casts = Operators(input, {"aten::_to_copy"});
  const double share = DeviceShare(input, casts);
  if (share < 0.05) return std::nullopt;
  return Finding{.title = "Tensors are converted between types",
                 .evidence = fmt::format("{} of the time in {} conversions (aten::_to_copy)",
                                         Percent(share), casts.count),
                 .gain = share,
                 .action =
                     "keep weights in bfloat16 where autocast converts them in each step, or "
                     "let torch.compile fuse the conversions"};
}

std::optional<Finding> OptimizerLoop(const FindingInput& input) {
  double share = 0;
  uint64_t launches = 0, calls = 0;
  for (const OperatorRow& row : input.analysis.tables.operators) {
    if (!Text(input, row.name).starts_with("Optimizer.step")) continue;
    share += DeviceShare(input, row);
    launches += row.launches;
    calls += row.count;
  }
  if (calls == 0 || launches < 64 * calls) return std::nullopt;
  return Finding{.title = "The optimizer launches a kernel for each parameter",
                 .evidence = fmt::format("{} launches in each of {} steps, {} of the time",
                                         launches / calls, calls, Percent(share)),
                 .gain = share / 2,
                 .action =
                     "torch.optim with fused=True or foreach=True; `atunner optimize --operator "
                     "adamw` shows what one kernel can reach"};
}

std::optional<Finding> DenseCopies(const FindingInput& input) {
  const OperatorRow copies = Operators(input, {"aten::contiguous", "aten::clone"});
  const double share = DeviceShare(input, copies);
  if (share < 0.05) return std::nullopt;
  return Finding{.title = "Tensors are copied to make them contiguous",
                 .evidence = fmt::format("{} of the time in {} calls of contiguous and clone",
                                         Percent(share), copies.count),
                 .gain = share,
                 .action =
                     "use operators that take strides, reshape once instead of in each layer, "
                     "and look for clones of gradients and caches"};
}

std::optional<Finding> ZeroGradients(const FindingInput& input) {
  const OperatorRow zeros = Operators(input, {"aten::zero_", "aten::fill_"});
  const double share = DeviceShare(input, zeros);
  if (share < 0.03 || zeros.count < 16) return std::nullopt;
  return Finding{.title = "Memory is filled with zeros",
                 .evidence = fmt::format("{} of the time in {} calls", Percent(share), zeros.count),
                 .gain = share,
                 .action =
                     "optimizer.zero_grad(set_to_none=True), torch.empty where every element "
                     "is written"};
}

constexpr std::array kRules = {
    Rule{"scalar_reads", "two or more reads of a scalar in each step", ScalarReads},
    Rule{"type_conversions", "5 % or more in aten::_to_copy", Casts},
    Rule{"optimizer_loop", "64 or more launches in each step of the optimizer", OptimizerLoop},
    Rule{"contiguous_copies", "5 % or more in aten::contiguous and aten::clone", DenseCopies},
    Rule{"zero_fills", "3 % or more in fills", ZeroGradients},
};

}  // namespace

std::span<const Rule> OperatorRules() { return kRules; }

}  // namespace atunner::trace
