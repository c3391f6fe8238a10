// Runs of a user's kernel carried in float64 (atunner/shadow) on a task's inputs.
//
// All tensors and workspaces lie in one allocation, the arena, beside which the shadow keeps its
// values. Nothing of the task's own buffers is written.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/shadow/shadow.h"
#include "atunner/shadow/shadow_space.h"
#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

class ShadowRun {
 public:
  /// The shadow of `given`, which must outlive it. kUnsupported where there is none: integers only,
  /// a binary without PTX, instructions without a counterpart in double precision, or through which
  /// the values in double precision do not pass (ShadowKernel::lossy).
  static Result<std::unique_ptr<ShadowRun>> Make(const OracleContext& context,
                                                 const Program& given);

  /// False if its memory would exceed half of the free memory, or its results what the host reads
  /// in seconds.
  Result<bool> Fits(const TaskBuffers& buffers);
  /// Runs on the inputs in `buffers`. Results in float64 by the names of floating-point outputs;
  /// what the kernel leaves unwritten has any value. kUnavailable if it does not run to its end.
  Result<std::map<std::string, std::vector<double>>> Run(const TaskBuffers& buffers);

 private:
  /// Where everything lies at one problem size.
  struct Layout {
    std::map<std::string, uint64_t> tensors, workspaces;  ///< offsets in the arena
    shadow::ShadowSpace::Extent extent;
  };
  struct Space {
    Dims dims;
    Layout layout;
    std::unique_ptr<Buffer> arena;
    std::optional<shadow::ShadowSpace> cells;
  };
  ShadowRun(const OracleContext& context, const Program& given)
      : context_(context), given_(given) {}
  Result<Layout> LayoutOf(const TaskBuffers& buffers) const;
  Status PrepareSpace(const TaskBuffers& buffers);
  Status CopyTensors(const TaskBuffers& buffers);
  Status Launch(const TaskBuffers& buffers);

  OracleContext context_;
  const Program& given_;
  uint64_t static_shared_bytes_ = 0;  ///< of the kernel with most
  bool uses_shared_ = false;
  std::unique_ptr<LoadedModule> module_;
  Space space_;
};

}  // namespace atunner
