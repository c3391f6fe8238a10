// Runs a kernel once on the virtual GPU and looks at its memory.
#pragma once

#include <string>
#include <vector>

#include "atunner/jobs/kernels/loaded_kernel.h"

namespace atunner::jobs {

/// A tensor of the task after the launches.
struct TensorValues {
  std::string name;
  Role role = Role::kInput;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<double> first;  ///< its first elements
  /// Over all elements, NaNs and infinities left out; 0 where there are none
  double least = 0;
  double greatest = 0;
  uint64_t not_finite = 0;
};

struct KernelRun {
  std::string configuration;
  std::string outcome;  ///< "completed", or why not
  bool completed = false;
  uint64_t blocks = 0;
  std::string printed;
  std::vector<Hazard> hazards;  ///< accesses outside of memory
  std::vector<TensorValues> tensors;
};

/// Inputs are drawn as `sanitize` draws them. `elements`: of each tensor to return.
Result<KernelRun> RunKernel(const LoadedKernel& kernel, const Target& target, Compiler& compiler,
                            size_t elements, double timeout_seconds);

}  // namespace atunner::jobs
