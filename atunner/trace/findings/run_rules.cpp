// Rules about the run as a whole: steps, memory, and the recording itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::optional<Finding> UnevenSteps(const FindingInput& input) {
  const Iterations& steps = input.analysis.iterations;
  const auto median = static_cast<double>(steps.Median());
  const auto longest = static_cast<double>(steps.Longest());
  if (steps.at.size() < 3 || longest < 1.3 * median) return std::nullopt;
  double excess = 0, total = 0;
  for (const Interval& one : steps.at) {
    excess += std::max(0.0, static_cast<double>(one.length()) - median);
    total += static_cast<double>(one.length());
  }
  return Finding{.title = "Steps take different times",
                 .evidence = fmt::format("the longest of {} steps takes {}, the median {}",
                                         steps.at.size(), Duration(longest), Duration(median)),
                 .gain = excess / std::max(1.0, total),
                 .action =
                     "look at the longest step: garbage collection (gc.freeze), checkpoints, "
                     "new shapes that are compiled, data that arrives late"};
}

std::optional<Finding> MemoryNearlyFull(const FindingInput& input) {
  for (const MemoryUse& use : input.analysis.memory) {
    const int64_t used = std::max(use.peak_reserved, use.peak_allocated);
    if (use.capacity == 0 || used * 10 < use.capacity * 9) continue;
    return Finding{
        .title = "The GPU's memory is nearly full",
        .evidence = fmt::format("GPU {}: {:.2f} of {:.2f} GB", use.device, Gigabytes(used),
                                Gigabytes(use.capacity)),
        .gain = 0,
        .action =
            "activation checkpointing, smaller micro-batches with gradient accumulation, "
            "sharded optimizer state; `atunner memory plan` shows the lower bound"};
  }
  return std::nullopt;
}

std::optional<Finding> Fragmentation(const FindingInput& input) {
  for (const MemoryUse& use : input.analysis.memory) {
    constexpr int64_t kLeast = 256 << 20;
    const int64_t lost = use.peak_reserved - use.peak_allocated;
    if (lost < kLeast || use.peak_reserved * 10 < use.peak_allocated * 13) continue;
    return Finding{
        .title = "Reserved memory is not used",
        .evidence = fmt::format("GPU {}: {:.2f} GB reserved at the peak for {:.2f} GB in use",
                                use.device, Gigabytes(use.peak_reserved),
                                Gigabytes(use.peak_allocated)),
        .gain = 0,
        .action =
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, constant shapes; `atunner "
            "memory plan TRACE` places the buffers of the step"};
  }
  return std::nullopt;
}

std::optional<Finding> ProfilerOverhead(const FindingInput& input) {
  const double share = static_cast<double>(input.analysis.overhead) /
                       static_cast<double>(std::max<int64_t>(1, input.analysis.window.length()));
  if (share < 0.05) return std::nullopt;
  return Finding{
      .title = "The profiler itself takes time",
      .evidence = fmt::format("{} of the window is overhead of the profiler", Percent(share)),
      .gain = 0,
      .action =
          "record fewer things (with_stack=False, record_shapes=False) and warm up "
          "with schedule(wait=1, warmup=1, active=3)"};
}

std::optional<Finding> IncompleteTrace(const FindingInput& input) {
  uint64_t work = 0;
  for (const KernelRow& row : input.analysis.tables.kernels) work += row.count;
  for (const CopyRow& row : input.analysis.tables.copies) work += row.count;
  if (work == 0 || input.analysis.tables.unlinked * 10 < work) return std::nullopt;
  return Finding{
      .title = "Launches are missing in the trace",
      .evidence = fmt::format("{} of {} pieces of work have no call that submitted them",
                              input.analysis.tables.unlinked, work),
      .gain = 0,
      .action =
          "record CPU and CUDA activities together; causes of idle time are unknown for the "
          "rest"};
}

std::optional<Finding> SmallGraphs(const FindingInput& input) {
  const Tables& tables = input.analysis.tables;
  if (tables.graph_launches < 8 || tables.graph_work >= 4 * tables.graph_launches ||
      tables.graph_work < tables.graph_launches)
    return std::nullopt;
  return Finding{
      .title = "CUDA graphs are small",
      .evidence = fmt::format(
          "{} launches of graphs with {:.1f} pieces of work on average", tables.graph_launches,
          static_cast<double>(tables.graph_work) / static_cast<double>(tables.graph_launches)),
      .gain = IdleShare(input, IdleCause::kLaunch) / 2,
      .action =
          "capture whole steps: remove what breaks graphs (synchronisations, changing shapes, "
          "Python control flow on tensors)"};
}

std::optional<Finding> OnlyHost(const FindingInput& input) {
  const Analysis& analysis = input.analysis;
  if (!analysis.times.devices.empty() || analysis.tables.operators.empty()) return std::nullopt;
  return Finding{
      .title = "The trace has no work of a GPU",
      .evidence = fmt::format("{} operators, no kernels", analysis.tables.operators.size()),
      .gain = 0,
      .action =
          "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] on "
          "a machine with a GPU"};
}

constexpr std::array kRules = {
    Rule{"uneven_steps", "the longest step takes 1.3 times the median or more", UnevenSteps},
    Rule{"memory_nearly_full", "90 % or more of the memory in use", MemoryNearlyFull},
    Rule{"fragmentation", "30 % or more reserved than used, 256 MiB or more", Fragmentation},
    Rule{"profiler_overhead", "5 % or more for the profiler", ProfilerOverhead},
    Rule{"incomplete_trace", "a tenth of the work without a launch", IncompleteTrace},
    Rule{"small_graphs", "CUDA graphs with fewer than four pieces of work", SmallGraphs},
    Rule{"only_host", "operators, but no work of a GPU", OnlyHost},
};

}  // namespace

std::span<const Rule> RunRules() { return kRules; }

}  // namespace atunner::trace
