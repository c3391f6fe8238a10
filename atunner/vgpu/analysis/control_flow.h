// Which branches of a function decide whether a basic block runs.
#pragma once

#include <vector>

#include "atunner/vgpu/analysis/body_flow.h"

namespace atunner::vgpu {

/// The control flow graph of a function with one exit, and what follows from it.
class ControlFlow {
 public:
  explicit ControlFlow(const ptx::Function& function);

  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  /// The number that stands for the exit.
  size_t exit() const { return blocks_.size(); }
  /// Blocks that may follow, the exit among them.
  const std::vector<size_t>& Next(size_t block) const { return next_[block]; }
  size_t BlockOf(size_t instruction) const { return block_of_[instruction]; }
  /// True if every block can reach the exit; the questions below may be asked only then.
  bool always_ends() const { return always_ends_; }
  /// True if the block has several successors.
  bool Decides(size_t block) const { return next_[block].size() > 1; }
  /// The block at which all ways from `block` meet again; the exit if they do not before.
  size_t Join(size_t block) const { return join_[block]; }
  /// Blocks whose branches decide directly whether `block` runs.
  const std::vector<size_t>& Deciders(size_t block) const { return deciders_[block]; }
  /// Marks the blocks that can run between the branch of `block`, taken to `successor`, and its
  /// join.
  std::vector<bool> Side(size_t block, size_t successor) const;
  /// True if a path leads from the branch of `block` through marked blocks back to one of them, or
  /// to `block`.
  bool HasLoop(size_t block, const std::vector<bool>& marked) const;

 private:
  void FindJoins();
  void FindDeciders();

  std::vector<BasicBlock> blocks_;
  std::vector<std::vector<size_t>> next_;
  std::vector<size_t> block_of_;
  std::vector<size_t> join_;  ///< immediate postdominators
  std::vector<std::vector<size_t>> deciders_;
  bool always_ends_ = true;
};

}  // namespace atunner::vgpu
