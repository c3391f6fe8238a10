#include "atunner/verify/budget/scratch_outputs.h"

#include <algorithm>

namespace atunner {
namespace {

constexpr double kMostMemory = 0.5;  // share of the free memory
/// Versions of the workspaces in a perturbed run, and copies of operands.
constexpr uint64_t kWorkspaceCopies = 4;

/// Bytes that may be taken now: of a large task, what the reference leaves of the judge's share.
uint64_t MostBytes(const OracleContext& context, const Dims& dims, const Reference& reference,
                   uint64_t free_bytes) {
  const auto most = static_cast<uint64_t>(kMostMemory * static_cast<double>(free_bytes));
  if (!context.memory.IsLarge(context.device, context.spec, dims)) return most;
  const uint64_t extra = context.memory.Extra(context.spec, dims);
  return std::min(most, extra - std::min(extra, reference.HeldBytes()));
}

}  // namespace

Result<std::optional<ScratchOutputs>> AllocateScratchOutputs(const OracleContext& context,
                                                             ErrorBaseline& baseline,
                                                             const TaskBuffers& buffers,
                                                             const Reference& reference) {
  ATUNNER_TRY(const uint64_t workspace_bytes, baseline.WorkspaceBytes(buffers.dims()));
  uint64_t bytes = kWorkspaceCopies * workspace_bytes;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors())
    bytes += tensor.is_output() ? 2 * static_cast<uint64_t>(tensor.shape.bytes) : 0;
  ATUNNER_TRY(const uint64_t free_bytes, context.device.FreeBytes());
  if (bytes > MostBytes(context, buffers.dims(), reference, free_bytes)) return std::nullopt;
  ScratchOutputs outputs;
  for (const Reference::Output& output : reference.outputs) {
    ATUNNER_TRY(outputs.emplace_back(),
                context.device.Allocate(output.elements * SizeOf(output.dtype)));
  }
  return outputs;
}

RangeOf RangesOf(const Reference& reference, const ScratchOutputs& outputs) {
  return [&](const std::string& name) -> std::optional<MemoryRange> {
    const auto found = std::ranges::find(reference.outputs, name, &Reference::Output::name);
    if (found == reference.outputs.end()) return std::nullopt;
    const Buffer& memory = *outputs[static_cast<size_t>(found - reference.outputs.begin())];
    return MemoryRange{memory.address(), found->elements * SizeOf(found->dtype)};
  };
}

}  // namespace atunner
