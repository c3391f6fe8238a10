// Rules about times in which a GPU has nothing to do.
#include <fmt/format.h>

#include <array>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

std::optional<Finding> DataLoading(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kDataLoading);
  if (share < 0.05) return std::nullopt;
  return Finding{
      .title = "The GPU waits for data",
      .evidence = fmt::format("idle for {} of the time while the host fetched the next batch",
                              Percent(share)),
      .gain = share,
      .action =
          "raise num_workers and prefetch_factor of the DataLoader, set pin_memory=True and "
          "persistent_workers=True, copy with non_blocking=True, move decoding to the GPU"};
}

std::optional<Finding> LowUtilization(const FindingInput& input) {
  const DeviceTime total = input.analysis.Total();
  if (total.window == 0) return std::nullopt;
  const double busy = static_cast<double>(total.busy) / WindowOf(input);
  if (busy >= 0.5) return std::nullopt;
  size_t main = 0;
  for (size_t cause = 1; cause < kIdleCauses; ++cause)
    if (total.idle[cause] > total.idle[main]) main = cause;
  const auto cause = static_cast<IdleCause>(main);
  return Finding{
      .title = "The GPU is idle most of the time",
      .evidence = fmt::format("busy for {} of the time; most of the rest: {} ({})", Percent(busy),
                              Title(cause), Percent(IdleShare(input, cause))),
      .gain = 1 - busy,
      .action =
          "start with the cause that is named; faster kernels alone gain little "
          "here. Larger batches raise the work for each launch"};
}

std::optional<Finding> Synchronization(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kSynchronization);
  if (share < 0.05) return std::nullopt;
  const CallRow calls = Calls(input, [](const CallRow& row) {
    return row.activity == HostActivity::kSynchronize ||
           row.activity == HostActivity::kBlockingCopy;
  });
  return Finding{
      .title = "Waiting for the GPU empties its queue",
      .evidence = fmt::format("{} calls waited for the GPU; after them it was idle for {} of the "
                              "time until the host submitted new work",
                              calls.count, Percent(share)),
      .gain = share,
      .action =
          "remove .item(), .cpu(), print of tensors, nonzero and torch.cuda.synchronize() "
          "from the loop; collect losses on the GPU and read them every N steps"};
}

std::optional<Finding> LaunchBound(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kLaunch);
  const CallRow calls = Calls(
      input, [](const CallRow& row) { return row.activity == HostActivity::kLaunch; });
  if (share < 0.05 || calls.count == 0) return std::nullopt;
  return Finding{.title = "Kernels are shorter than their launches",
                 .evidence = fmt::format(
                     "idle for {} of the time during {} launches of {} on average", Percent(share),
                     calls.count,
                     Duration(static_cast<double>(calls.total) / static_cast<double>(calls.count))),
                 .gain = share,
                 .action =
                     "capture the step in a CUDA graph (torch.compile(mode=\"reduce-overhead\") or "
                     "torch.cuda.graph), fuse small kernels, enlarge the batch"};
}

std::optional<Finding> HostLate(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kHostWork);
  if (share < 0.1) return std::nullopt;
  return Finding{
      .title = "The host is late",
      .evidence = fmt::format("idle for {} of the time while the host ran operators or Python "
                              "before the next launch",
                              Percent(share)),
      .gain = share,
      .action =
          "torch.compile or CUDA graphs for the step, fewer and larger operators, no Python "
          "loops over tensors, the fused optimizer (fused=True)"};
}

std::optional<Finding> AllocationInLoop(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kAllocation);
  const CallRow calls = Calls(
      input, [](const CallRow& row) { return row.activity == HostActivity::kAllocate; });
  if (share < 0.01 || calls.count < 2) return std::nullopt;
  return Finding{
      .title = "Memory is allocated inside the loop",
      .evidence = fmt::format("{} calls such as cudaMalloc or cudaFree took {}; idle for {} of the "
                              "time meanwhile",
                              calls.count, Duration(static_cast<double>(calls.total)),
                              Percent(share)),
      .gain = share,
      .action =
          "keep shapes constant or pad them, set PYTORCH_CUDA_ALLOC_CONF="
          "expandable_segments:True, leave out torch.cuda.empty_cache(); `atunner memory "
          "plan` shows what the peak could be"};
}

std::optional<Finding> ModuleLoading(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kModuleLoading);
  if (share < 0.02) return std::nullopt;
  return Finding{
      .title = "Code is loaded while the GPU waits",
      .evidence = fmt::format("idle for {} of the time while modules were loaded", Percent(share)),
      .gain = share,
      .action =
          "warm up before the measured steps; in serving load at start with "
          "CUDA_MODULE_LOADING=EAGER"};
}

std::optional<Finding> HostCommunication(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kCommunication);
  if (share < 0.05) return std::nullopt;
  return Finding{
      .title = "The host waits for other processes",
      .evidence = fmt::format("idle for {} of the time in collectives of the host", Percent(share)),
      .gain = share,
      .action =
          "use the nccl backend for tensors on the GPU, take barriers out of the "
          "loop, exchange Python objects every N steps"};
}

std::optional<Finding> LongGap(const FindingInput& input) {
  constexpr int64_t kLong = 500'000'000;  // as nsys's own rule for gaps
  if (input.analysis.times.longest.empty()) return std::nullopt;
  const Gap& gap = input.analysis.times.longest.front();
  if (gap.at.length() < kLong) return std::nullopt;
  return Finding{
      .title = "The GPU stood still for more than half a second",
      .evidence = fmt::format("{} without work on GPU {}, mostly: {}",
                              Duration(static_cast<double>(gap.at.length())), gap.device,
                              Title(gap.Main())),
      .gain = static_cast<double>(gap.at.length()) / WindowOf(input),
      .action =
          "look at this place of the timeline: checkpoints, validation, logging or garbage "
          "collection can run beside the step"};
}

std::optional<Finding> Dependencies(const FindingInput& input) {
  const double share = IdleShare(input, IdleCause::kDependency);
  if (share < 0.1) return std::nullopt;
  return Finding{
      .title = "Submitted work waits on the GPU",
      .evidence = fmt::format("idle for {} of the time although the next work had been submitted",
                              Percent(share)),
      .gain = share,
      .action =
          "many short kernels in a row: fuse them, or use a CUDA graph, whose kernels follow "
          "each other faster; with several streams look for events that wait too early"};
}

constexpr std::array kRules = {
    Rule{"data_loading", "idle for 5 % or more while the host loads data", DataLoading},
    Rule{"low_utilization", "busy for less than half of the time", LowUtilization},
    Rule{"synchronization", "idle for 5 % or more after waits for the GPU", Synchronization},
    Rule{"launch_bound", "idle for 5 % or more during launches", LaunchBound},
    Rule{"host_late", "idle for 10 % or more during other host code", HostLate},
    Rule{"allocation_in_loop", "idle for 1 % or more during cudaMalloc and its like",
         AllocationInLoop},
    Rule{"module_loading", "idle for 2 % or more while code is loaded", ModuleLoading},
    Rule{"host_communication", "idle for 5 % or more in collectives of the host",
         HostCommunication},
    Rule{"long_gap", "a gap of half a second or more", LongGap},
    Rule{"dependencies", "idle for 10 % or more with work submitted", Dependencies},
};

}  // namespace

std::span<const Rule> IdleRules() { return kRules; }

}  // namespace atunner::trace
