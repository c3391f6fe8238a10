#include "atunner/verify/own_size/own_size_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "atunner/base/random.h"

namespace atunner {
namespace {

/// Wall clock that no launch reaches unless the host is stuck: work is limited by instructions.
constexpr double kGenerousSeconds = 3600;

std::array<uint64_t, 3> CoordinatesOf(uint64_t block, const Dim3& grid) {
  return {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
}

/// Keeps the first of equal blocks.
void DropRepeats(std::vector<uint64_t>& blocks) {
  std::vector<uint64_t> kept;
  for (const uint64_t block : blocks) {
    if (std::ranges::find(kept, block) == kept.end()) kept.push_back(block);
  }
  blocks = std::move(kept);
}

/// Indices along an axis of `size` blocks that cover the part of block `at` among `of`.
std::pair<uint64_t, uint64_t> RangeAlong(uint64_t at, uint64_t of, uint64_t size) {
  const uint64_t begin = at * size / of;
  return {begin, std::max(begin + 1, ((at + 1) * size + of - 1) / of)};
}

}  // namespace

uint64_t OwnSizeRun::elements() const {
  uint64_t total = 0;
  for (const auto& output : written) total += SizeOf(output);
  return total;
}

Result<OwnSizeKernel> OwnSizeKernel::Make(const OwnSizeContext& context, LoadedModule& module,
                                          const LaunchPlan& plan, uint8_t hazards) {
  OwnSizeKernel made(context, module, plan, hazards);
  ATUNNER_TRY(const ConcretePlan concrete,
              Resolve(plan, context.spec.dims, context.spec.attributes));
  made.launches_ = concrete.steps.size();
  for (const ConcreteStep& step : concrete.steps) made.blocks_ += step.grid.Count();
  if (concrete.steps.empty()) return Invalid("the plan launches nothing");
  const ConcreteStep& first = concrete.steps.front();
  made.shape_ = {first.grid, first.block, first.cluster, first.shared_bytes, first.cooperative};
  return made;
}

bool OwnSizeKernel::CanBeSampled() const { return launches_ == 1 && !shape_.cooperative; }

Result<OwnSizeRun> OwnSizeKernel::Run(const InputInstance& instance, uint64_t poison,
                                      const std::vector<uint64_t>& blocks, uint64_t most_work) {
  Device& device = context_->device;
  const TaskBuffers& buffers = context_->memory.buffers();
  ATUNNER_RETURN_IF_ERROR(context_->memory.Renew(context_->kernels, instance, poison));
  ATUNNER_TRY(const BoundPlan plan,
              BindPlan(device, *plan_, context_->spec, buffers, Workspaces::kFresh));
  ATUNNER_RETURN_IF_ERROR(PoisonWorkspaces(device, context_->kernels, plan, Poison{poison}));
  ATUNNER_RETURN_IF_ERROR(CopySymbols(device, *module_, plan));
  LaunchOptions options;
  options.timeout_seconds = kGenerousSeconds;
  options.max_warp_instructions = most_work;
  options.blocks = blocks;
  options.log_writes = true;
  // Races across blocks are searched for at the check sizes.
  options.check_hazards = !blocks.empty();
  options.groups = hazards_;
  OwnSizeRun run;
  run.blocks = blocks_;
  ATUNNER_TRY(run.outcome, RunPlan(device, *module_, plan, options));
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (tensor.is_output()) run.written.push_back(WrittenElements(tensor, run.outcome.written));
  }
  return run;
}

Result<OwnSizeRun> OwnSizeKernel::RunSome(const InputInstance& instance, uint64_t poison,
                                          const std::vector<uint64_t>& blocks, uint64_t most_work) {
  // The first block may do far more than the others, or all of the work.
  constexpr uint64_t kTimes = 4;
  ATUNNER_TRY(OwnSizeRun first, Run(instance, poison, {blocks.front()}, kTimes * most_work));
  const uint64_t work = std::max<uint64_t>(1, first.outcome.warp_instructions);
  const auto count = std::min<size_t>(blocks.size(), most_work / work);
  if (!first.outcome.completed() || count <= 1) return first;
  const std::vector<uint64_t> some(blocks.begin(), blocks.begin() + static_cast<int64_t>(count));
  return Run(instance, poison, some, kTimes * most_work);
}

std::vector<uint64_t> SampleBlocks(const Dim3& grid, uint64_t count, uint64_t seed) {
  const uint64_t total = grid.Count();
  std::vector<uint64_t> blocks;
  if (total <= count) {
    for (uint64_t i = 0; i < total; ++i) blocks.push_back(i);
    return blocks;
  }
  blocks = {total / 2, 0, total - 1};
  Random random(seed);
  for (uint64_t i = blocks.size(); i < count; ++i) {
    const uint64_t begin = total * i / count;
    blocks.push_back(begin + random.Below(total * (i + 1) / count - begin));
  }
  DropRepeats(blocks);
  return blocks;
}

std::vector<uint64_t> BlocksBeside(const std::vector<uint64_t>& blocks, const Dim3& of,
                                   const Dim3& grid, uint64_t most) {
  std::vector<uint64_t> beside;
  for (const uint64_t block : blocks) {
    const auto at = CoordinatesOf(block, of);
    const auto [x, x_end] = RangeAlong(at[0], of.x, grid.x);
    const auto [y, y_end] = RangeAlong(at[1], of.y, grid.y);
    const auto [z, z_end] = RangeAlong(at[2], of.z, grid.z);
    for (uint64_t k = z; k < z_end && beside.size() < most; ++k) {
      for (uint64_t j = y; j < y_end && beside.size() < most; ++j) {
        for (uint64_t i = x; i < x_end && beside.size() < most; ++i)
          beside.push_back((k * grid.y + j) * grid.x + i);
      }
    }
  }
  DropRepeats(beside);
  return beside;
}

}  // namespace atunner
