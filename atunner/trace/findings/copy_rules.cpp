// Rules about copies and memory sets.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/findings/measures.h"

namespace atunner::trace {
namespace {

CopyRow Sum(const FindingInput& input, const std::function<bool(const CopyRow&)>& fits) {
  CopyRow sum;
  for (const CopyRow& row : input.analysis.tables.copies) {
    if (!fits(row)) continue;
    sum.count += row.count;
    sum.bytes += row.bytes;
    sum.total += row.total;
  }
  return sum;
}

double Share(const FindingInput& input, const CopyRow& row) {
  return static_cast<double>(row.total) / WindowOf(input);
}

std::optional<Finding> PageableCopies(const FindingInput& input) {
  const CopyRow copies = Sum(input, [](const CopyRow& row) {
    return !row.set && (row.from == MemorySpace::kPageable || row.to == MemorySpace::kPageable);
  });
  constexpr int64_t kSmall = 1 << 20;
  if (Share(input, copies) < 0.01 || copies.bytes < kSmall) return std::nullopt;
  return Finding{
      .title = "Copies use pageable memory",
      .evidence = fmt::format(
          "{} copies of {:.1f} MB take {} of the time; the driver stages them and "
          "they cannot overlap",
          copies.count, static_cast<double>(copies.bytes) / 1e6, Percent(Share(input, copies))),
      .gain = Share(input, copies),
      .action =
          "pin_memory=True in the DataLoader or tensor.pin_memory(), then "
          ".to(device, non_blocking=True)"};
}

std::optional<Finding> BlockingCopies(const FindingInput& input) {
  const CallRow calls = Calls(input, [&](const CallRow& row) {
    return row.activity == HostActivity::kBlockingCopy &&
           Text(input, row.name).find("Memcpy") != std::string_view::npos;
  });
  const double share = static_cast<double>(calls.total) / WindowOf(input);
  if (share < 0.01 || calls.count < 2) return std::nullopt;
  return Finding{.title = "Copies block the host",
                 .evidence = fmt::format("{} calls of cudaMemcpy held the host for {} of the time",
                                         calls.count, Percent(share)),
                 .gain = std::min(share, IdleShare(input, IdleCause::kSynchronization)),
                 .action = "cudaMemcpyAsync with pinned memory on a stream of its own"};
}

std::optional<Finding> BlockingSets(const FindingInput& input) {
  const CallRow calls = Calls(input, [&](const CallRow& row) {
    return row.activity == HostActivity::kBlockingCopy &&
           Text(input, row.name).find("Memset") != std::string_view::npos;
  });
  if (calls.count < 2) return std::nullopt;
  return Finding{.title = "Memory sets block the host",
                 .evidence = fmt::format("{} calls of cudaMemset took {}", calls.count,
                                         Duration(static_cast<double>(calls.total))),
                 .gain = std::min(static_cast<double>(calls.total) / WindowOf(input),
                                  IdleShare(input, IdleCause::kSynchronization)),
                 .action = "cudaMemsetAsync on the stream of the work that follows"};
}

std::optional<Finding> SmallCopies(const FindingInput& input) {
  const CopyRow copies = Sum(input, [](const CopyRow& row) {
    const bool host = row.from == MemorySpace::kPageable || row.from == MemorySpace::kPinned ||
                      row.to == MemorySpace::kPageable || row.to == MemorySpace::kPinned;
    return !row.set && host;
  });
  constexpr int64_t kSmall = 65536;
  if (copies.count < 32 || copies.bytes / static_cast<int64_t>(copies.count) >= kSmall ||
      Share(input, copies) < 0.005)
    return std::nullopt;
  return Finding{
      .title = "Many small copies between host and GPU",
      .evidence = fmt::format("{} copies of {} bytes on average, {} of the time", copies.count,
                              copies.bytes / static_cast<int64_t>(copies.count),
                              Percent(Share(input, copies))),
      .gain = Share(input, copies),
      .action =
          "put them into one pinned buffer and copy once; create tensors on the GPU "
          "(device=\"cuda\") instead of moving them"};
}

std::optional<Finding> DeviceCopies(const FindingInput& input) {
  const CopyRow copies = Sum(input, [](const CopyRow& row) {
    return !row.set && !row.peer && row.from == MemorySpace::kDevice &&
           row.to == MemorySpace::kDevice;
  });
  if (Share(input, copies) < 0.05) return std::nullopt;
  return Finding{.title = "Memory of the GPU is copied within the GPU",
                 .evidence = fmt::format("{} copies of {:.1f} MB, {} of the time", copies.count,
                                         static_cast<double>(copies.bytes) / 1e6,
                                         Percent(Share(input, copies))),
                 .gain = Share(input, copies),
                 .action =
                     "write results where they are needed (out=, in-place updates of caches), "
                     "and avoid clone and torch.cat of large tensors"};
}

std::optional<Finding> ManagedMemory(const FindingInput& input) {
  const CopyRow copies = Sum(input, [](const CopyRow& row) {
    return row.from == MemorySpace::kManaged || row.to == MemorySpace::kManaged;
  });
  if (Share(input, copies) < 0.01) return std::nullopt;
  return Finding{.title = "Managed memory moves between host and GPU",
                 .evidence = fmt::format("{} copies of managed memory, {} of the time",
                                         copies.count, Percent(Share(input, copies))),
                 .gain = Share(input, copies),
                 .action =
                     "cudaMemPrefetchAsync before the kernels, or cudaMalloc and explicit "
                     "copies"};
}

constexpr std::array kRules = {
    Rule{"pageable_copies", "1 % or more in copies of pageable memory, 1 MiB or more",
         PageableCopies},
    Rule{"blocking_copies", "1 % or more of the host in cudaMemcpy", BlockingCopies},
    Rule{"blocking_sets", "two or more calls of cudaMemset", BlockingSets},
    Rule{"small_copies", "32 or more copies below 64 KiB on average", SmallCopies},
    Rule{"device_copies", "5 % or more in copies within the GPU", DeviceCopies},
    Rule{"managed_memory", "1 % or more in copies of managed memory", ManagedMemory},
};

}  // namespace

std::span<const Rule> CopyRules() { return kRules; }

}  // namespace atunner::trace
