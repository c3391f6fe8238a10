#include "atunner/verify/in_place_alias.h"

#include <memory>

#include "atunner/verify/budget/baseline.h"

namespace atunner {
namespace {

constexpr double kLaunchSeconds = 20;

/// Inputs and in-out tensors of equal type and size, with ordinary inputs in both: an index or a
/// state of a generator is no such tensor.
std::vector<AliasPair> Candidates(const TaskBuffers& buffers) {
  std::vector<AliasPair> pairs;
  for (const TaskBuffers::Tensor& input : buffers.tensors()) {
    for (const TaskBuffers::Tensor& in_out : buffers.tensors()) {
      if (input.spec->role != Role::kInput || in_out.spec->role != Role::kInOut) continue;
      if (input.spec->dtype != in_out.spec->dtype || input.elements() != in_out.elements() ||
          input.spec->fill.kind != Fill::Kind::kFamilies ||
          in_out.spec->fill.kind != Fill::Kind::kFamilies)
        continue;
      pairs.push_back({input.spec->name, in_out.spec->name});
    }
  }
  return pairs;
}

}  // namespace

Result<std::vector<uint64_t>> InPlaceAlias::Outputs(LoadedModule& module, const LaunchPlan& plan,
                                                    const TaskBuffers& buffers,
                                                    const InputInstance& instance,
                                                    const AliasPair& pair, bool one_buffer) {
  Device& device = context_.device;
  const TaskBuffers::Tensor& input = *buffers.Find(pair.input);
  const TaskBuffers::Tensor& in_out = *buffers.Find(pair.in_out);
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(context_.kernels, instance));
  ATUNNER_RETURN_IF_ERROR(
      device.CopyWithin(input.address, in_out.address, static_cast<uint64_t>(in_out.shape.bytes)));
  // The poison of unwritten elements must not make a difference here.
  const Poison poison{instance.seed, false};
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs(context_.kernels, poison));
  const AddressOf elsewhere = [&](const std::string& name) -> std::optional<DeviceAddress> {
    if (!one_buffer || name != pair.input) return std::nullopt;
    return in_out.address;
  };
  ATUNNER_TRY(const BoundPlan bound,
              BindPlan(device, plan, context_.spec, buffers, elsewhere, Workspaces::kFresh));
  ATUNNER_RETURN_IF_ERROR(PoisonWorkspaces(device, context_.kernels, bound, poison));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, module, bound));
  ATUNNER_TRY(const LaunchOutcome outcome,
              RunPlan(device, module, bound,
                      {.check_hazards = false, .timeout_seconds = kLaunchSeconds, .blocks = {}}));
  if (!outcome.completed()) return std::vector<uint64_t>{};
  std::vector<MemoryRange> outputs;
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.is_output())
      outputs.push_back({tensor.address, static_cast<uint64_t>(tensor.shape.bytes)});
  }
  return context_.kernels.Fingerprints(outputs);
}

Result<bool> InPlaceAlias::WorksInPlace(LoadedModule& module, const LaunchPlan& plan,
                                        const TaskBuffers& buffers, const InputInstance& instance,
                                        const AliasPair& pair) {
  ATUNNER_TRY(const auto two, Outputs(module, plan, buffers, instance, pair, false));
  ATUNNER_TRY(const auto one, Outputs(module, plan, buffers, instance, pair, true));
  return one == two;
}

Result<const std::vector<AliasPair>*> InPlaceAlias::PairsOf(const TaskBuffers& buffers,
                                                            const InputInstance& instance) {
  if (pairs_) return &*pairs_;
  pairs_.emplace();
  const Oracle& oracle = context_.spec.oracle;
  if (oracle.kind != Oracle::Kind::kKernel || !oracle.kernel ||
      oracle.kernel->source.text.find("restrict") != std::string::npos)
    return &*pairs_;
  const std::vector<AliasPair> candidates = Candidates(buffers);
  if (candidates.empty()) return &*pairs_;
  ATUNNER_TRY(const auto program, BuildProgram(context_, *oracle.kernel));
  for (const AliasPair& pair : candidates) {
    ATUNNER_TRY(const bool works,
                WorksInPlace(*program->module, program->plan, buffers, instance, pair));
    if (works) pairs_->push_back(pair);
  }
  return &*pairs_;
}

Result<std::optional<AliasPair>> InPlaceAlias::Broken(LoadedModule& module, const LaunchPlan& plan,
                                                      const TaskBuffers& buffers,
                                                      const InputInstance& instance) {
  ATUNNER_TRY(const std::vector<AliasPair>* pairs, PairsOf(buffers, instance));
  for (const AliasPair& pair : *pairs) {
    ATUNNER_TRY(const bool works, WorksInPlace(module, plan, buffers, instance, pair));
    if (!works) return std::optional(pair);
  }
  return std::optional<AliasPair>();
}

}  // namespace atunner
