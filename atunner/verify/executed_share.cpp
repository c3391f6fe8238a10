// What of a candidate is executed: the problem sizes, and on the virtual GPU the blocks of a grid.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/verify/verifier_session.h"

namespace atunner {
namespace {

/// Up to 24 blocks of a grid of `total`: the first and last two, the middle one and random ones;
/// empty
/// (= all) for a grid of at most 48.
std::vector<uint64_t> SampleBlocks(uint64_t total, uint64_t seed) {
  constexpr uint64_t kSample = 24;
  std::vector<uint64_t> blocks;
  if (total <= 2 * kSample) return blocks;
  blocks = {0, 1, total / 2, total - 2, total - 1};
  Random random(seed);
  while (blocks.size() < kSample) blocks.push_back(random.Below(total));
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

uint64_t TotalBlocks(const BoundPlan& plan) {
  uint64_t total = 0;
  for (const BoundStep& step : plan.steps) total = std::max(total, step.shape.grid.Count());
  return total;
}

}  // namespace

std::vector<Dims> Verifier::SizesFor(const CandidateKernel& candidate) const {
  std::vector<Dims> sizes = candidate.check_dims;
  // The virtual GPU cannot run a full problem in useful time when there is a small one that the
  // same binary serves.
  const bool too_slow = device_.evidence() == Evidence::kPredicted && !sizes.empty();
  if (options_.full_size && !too_slow && std::ranges::find(sizes, spec_.dims) == sizes.end())
    sizes.push_back(spec_.dims);
  if (sizes.empty()) sizes.push_back(spec_.dims);
  return sizes;
}

std::optional<std::string> Verifier::TooLargeToExecute(const CandidateKernel& candidate) const {
  // A user's kernel is its own reference; a sample of its blocks is enough.
  if (device_.evidence() != Evidence::kPredicted || spec_.oracle.kind == Oracle::Kind::kKernel)
    return std::nullopt;
  if (!candidate.check_dims.empty() || oracle_->UseCpu(spec_.dims)) return std::nullopt;
  return "the task is too large to be executed on the virtual GPU, and this kernel is right at no "
         "smaller size";
}

/// Examine for in-out tensors with a sample of blocks. Without the other blocks a sum may be
/// unfinished, or the only element unwritten. A sample can show that the result is right, but not
/// that it is wrong: if it fails, all blocks run.
Result<bool> Verifier::ExamineSampleFirst(Session& session, const Case& one,
                                          const TaskBuffers& buffers, const Reference& reference,
                                          const BoundPlan& plan) {
  const Verdict so_far = session.verdict;
  ATUNNER_TRY(const bool passed, Examine(session, one, buffers, reference, plan));
  if (passed || session.verdict.checks.back().check != "oracle") return passed;
  session.verdict = so_far;
  session.blocks.clear();
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(*kernels_, one.instance));
  return Examine(session, one, buffers, reference, plan);
}

/// A sample of the grid for a slow user's kernel on a virtual GPU; empty = all blocks.
std::vector<uint64_t> Verifier::BlocksToRun(const Case& one, const BoundPlan& plan) {
  const bool slow = device_.evidence() == Evidence::kPredicted &&
                    reference_seconds_[one.dims] > options_.sample_above_seconds &&
                    spec_.oracle.kind == Oracle::Kind::kKernel;
  if (!slow || plan.steps.size() != 1) return {};
  return SampleBlocks(TotalBlocks(plan), one.instance.seed);
}

}  // namespace atunner
