// Rules about collectives and ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

double Exposed(const FindingInput& input) {
  return static_cast<double>(input.analysis.Total().exposed_communication) / WindowOf(input);
}

double Overlap(const DeviceTime& total) {
  const auto hidden = static_cast<double>(total.communication - total.exposed_communication);
  return total.communication == 0 ? 1 : hidden / static_cast<double>(total.communication);
}

bool IsCollective(const KernelRow& row) { return row.kernel_class == KernelClass::kCommunication; }

std::optional<Finding> ExposedCommunication(const FindingInput& input) {
  const double exposed = Exposed(input);
  if (exposed < 0.1) return std::nullopt;
  return Finding{
      .title = "The GPU only communicates for a tenth of the time or more",
      .evidence = fmt::format("for {} of the time collectives run and nothing computes",
                              Percent(exposed)),
      .gain = exposed,
      .action =
          "start collectives earlier: bucket sizes of DDP (bucket_cap_mb), prefetch of FSDP, "
          "gradients as bucket views; reduce in bfloat16; look for stragglers first, because "
          "waiting for them looks like communication"};
}

std::optional<Finding> NoOverlap(const FindingInput& input) {
  const DeviceTime total = input.analysis.Total();
  const double share = static_cast<double>(total.communication) / WindowOf(input);
  if (share < 0.05 || Overlap(total) >= 0.3) return std::nullopt;
  return Finding{
      .title = "Communication hardly overlaps with computing",
      .evidence = fmt::format(
          "communication takes {} of the time; {} of it is hidden behind kernels", Percent(share),
          Percent(Overlap(total))),
      .gain = Exposed(input),
      .action =
          "run collectives on their own stream and asynchronously (async_op=True), leave out "
          "waits right after them; static_graph=True in DDP"};
}

std::optional<Finding> SmallCollectives(const FindingInput& input) {
  const KernelRow* largest = LargestKernel(input, IsCollective);
  if (largest == nullptr) return std::nullopt;
  uint64_t count = 0;
  int64_t total = 0;
  for (const KernelRow& row : input.analysis.tables.kernels) {
    if (!IsCollective(row)) continue;
    count += row.count;
    total += row.total;
  }
  const size_t steps = std::max<size_t>(1, input.analysis.iterations.at.size());
  const double mean = static_cast<double>(total) / static_cast<double>(count);
  constexpr double kShort = 50e3;  // ns: latency, not bandwidth, decides below
  if (count < 32 * steps || mean >= kShort) return std::nullopt;
  return Finding{.title = "Many small collectives",
                 .evidence = fmt::format("{} a step of {} on average: latency, not bandwidth",
                                         count / steps, Duration(mean)),
                 .gain = Exposed(input) / 2,
                 .action =
                     "larger buckets (bucket_cap_mb), one flat tensor for small messages, "
                     "coalesced collectives"};
}

std::optional<Finding> GlooOnGpu(const FindingInput& input) {
  const bool work = !input.analysis.tables.kernels.empty();
  if (!work || input.analysis.timeline->backend != "gloo") return std::nullopt;
  return Finding{.title = "Tensors on the GPU travel over gloo",
                 .evidence = fmt::format("the process group's backend is gloo, with {} ranks",
                                         input.analysis.timeline->world_size),
                 .gain = IdleShare(input, IdleCause::kCommunication),
                 .action = "init_process_group(\"nccl\")"};
}

std::optional<Finding> DataParallel(const FindingInput& input) {
  for (const OperatorRow& row : input.analysis.tables.operators) {
    const std::string_view name = Text(input, row.name);
    if (!name.starts_with("DataParallel.forward")) continue;
    return Finding{.title = "torch.nn.DataParallel copies the model in each step",
                   .evidence = fmt::format("{} calls of {}", row.count, name),
                   .gain = static_cast<double>(row.host_total) / WindowOf(input) / 4,
                   .action = "DistributedDataParallel with one process for each GPU"};
  }
  return std::nullopt;
}

std::optional<Finding> PeerCopies(const FindingInput& input) {
  const double share = CopyShare(input, [](const CopyRow& row) { return row.peer; });
  if (share < 0.05) return std::nullopt;
  return Finding{
      .title = "Tensors are copied between GPUs",
      .evidence = fmt::format("{} of the time in copies from GPU to GPU", Percent(share)),
      .gain = share,
      .action =
          "overlap them with computing on a stream of their own, or use collectives "
          "of NCCL, which use all links"};
}

std::optional<Finding> Straggler(const FindingInput& input) {
  if (input.ranks == nullptr || input.ranks->straggler < 0) return std::nullopt;
  const RankRow& row = input.ranks->ranks[static_cast<size_t>(input.ranks->straggler)];
  return Finding{
      .title = fmt::format("The others wait for rank {}", row.rank),
      .evidence = fmt::format("it came last to {} of {} collectives; the others waited {} for it",
                              row.last_arrivals, input.ranks->collectives,
                              Duration(static_cast<double>(row.caused_wait))),
      .gain = static_cast<double>(row.caused_wait) /
              static_cast<double>(std::max<int64_t>(1, row.window)),
      .action =
          "compare this rank's timeline with another's: data loading, other processes on its "
          "host, clocks and temperature of its GPU, uneven batches"};
}

std::optional<Finding> Imbalance(const FindingInput& input) {
  if (input.ranks == nullptr || input.ranks->ranks.size() < 2) return std::nullopt;
  const double imbalance = input.ranks->Imbalance();
  if (imbalance < 1.1) return std::nullopt;
  return Finding{
      .title = "The ranks compute unevenly",
      .evidence = fmt::format("the slowest rank computes {:.2f} times the mean", imbalance),
      .gain = 1 - 1 / imbalance,
      .action = "sort or bucket sequences by length, balance pipeline stages and experts"};
}

constexpr std::array kRules = {
    Rule{"exposed_communication", "10 % or more of the time only communicates",
         ExposedCommunication},
    Rule{"no_overlap", "less than 30 % of the communication is hidden", NoOverlap},
    Rule{"small_collectives", "32 or more collectives a step, below 50 us on average",
         SmallCollectives},
    Rule{"gloo_on_gpu", "backend gloo with kernels on a GPU", GlooOnGpu},
    Rule{"data_parallel", "torch.nn.DataParallel", DataParallel},
    Rule{"peer_copies", "5 % or more in copies between GPUs", PeerCopies},
    Rule{"straggler", "one rank comes last to most collectives", Straggler},
    Rule{"imbalance", "a rank computes 10 % more than the mean", Imbalance},
};

}  // namespace

std::span<const Rule> CommunicationRules() { return kRules; }

}  // namespace atunner::trace
