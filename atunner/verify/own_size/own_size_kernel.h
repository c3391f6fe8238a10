// Runs a kernel at the task's own size on the virtual GPU: all blocks, or a few.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/verify/own_size/own_size_memory.h"
#include "atunner/verify/own_size/written_values.h"

namespace atunner {

/// One run, and the elements that it wrote.
struct OwnSizeRun {
  LaunchOutcome outcome;
  uint64_t blocks = 0;  ///< of all launches
  /// Per output, in the order of TaskBuffers::tensors
  std::vector<std::vector<ElementRange>> written;

  bool whole() const { return outcome.completed() && outcome.blocks_executed >= blocks; }
  uint64_t elements() const;
  /// Instructions of warps, and written elements, if all blocks did as those that ran.
  double WholeWork() const { return PerBlock(outcome.warp_instructions); }
  double WholeElements() const { return PerBlock(elements()); }

 private:
  double PerBlock(uint64_t sum) const {
    return outcome.blocks_executed == 0 ? 0.0
                                        : static_cast<double>(sum) * static_cast<double>(blocks) /
                                              static_cast<double>(outcome.blocks_executed);
  }
};

/// What all runs of a task share. Everything must outlive them.
struct OwnSizeContext {
  Device& device;
  JudgeKernels& kernels;
  const KernelSpec& spec;
  const OwnSizeMemory& memory;
};

/// Hazards that do not end a program on a GPU. The kernel as given may have them.
constexpr uint8_t kToleratedHazards = static_cast<uint8_t>(HazardGroup::kInit) |
                                      static_cast<uint8_t>(HazardGroup::kRace);

class OwnSizeKernel {
 public:
  /// `module` and `plan` must outlive it. `hazards`: bits of HazardGroup to search for.
  static Result<OwnSizeKernel> Make(const OwnSizeContext& context, LoadedModule& module,
                                    const LaunchPlan& plan, uint8_t hazards);

  /// True for a single launch whose blocks do not wait for each other: a sample of them can run.
  bool CanBeSampled() const;
  const Dim3& grid() const { return shape_.grid; }  ///< of the first launch

  /// Runs these blocks (all, if none are named) on fresh inputs and outputs. `most_work`: warp
  /// instructions after which the run ends as kTimeout.
  Result<OwnSizeRun> Run(const InputInstance& instance, uint64_t poison,
                         const std::vector<uint64_t>& blocks, uint64_t most_work);
  /// Runs as many of the blocks, in their order, as take about `most_work` warp instructions
  /// together, at least one.
  Result<OwnSizeRun> RunSome(const InputInstance& instance, uint64_t poison,
                             const std::vector<uint64_t>& blocks, uint64_t most_work);

 private:
  OwnSizeKernel(const OwnSizeContext& context, LoadedModule& module, const LaunchPlan& plan,
                uint8_t hazards)
      : context_(&context), module_(&module), plan_(&plan), hazards_(hazards) {}

  const OwnSizeContext* context_;
  LoadedModule* module_;
  const LaunchPlan* plan_;
  uint8_t hazards_;
  size_t launches_ = 0;
  LaunchShape shape_;
  uint64_t blocks_ = 0;
};

/// `count` blocks of a grid: the middle one, the first, the last, and random ones of equal parts of
/// the grid; all blocks of a smaller grid.
std::vector<uint64_t> SampleBlocks(const Dim3& grid, uint64_t count, uint64_t seed);

/// The blocks of `grid` that lie where `blocks` lie in the grid `of`, at most `most`. Kernels
/// mostly assign blocks to results in the order of the results, whatever a block's size is.
std::vector<uint64_t> BlocksBeside(const std::vector<uint64_t>& blocks, const Dim3& of,
                                   const Dim3& grid, uint64_t most);

}  // namespace atunner
