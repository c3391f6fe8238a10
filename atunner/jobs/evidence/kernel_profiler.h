// Compiles and profiles kernels of one task on the virtual GPU.
#pragma once

#include "atunner/compile/compiler.h"
#include "atunner/jobs/evidence/profile.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::jobs {

class KernelProfiler {
 public:
  /// The arguments must outlive the object.
  KernelProfiler(const KernelSpec& spec, const Target& target, Compiler& compiler)
      : spec_(spec), target_(target), compiler_(compiler) {}

  /// The launch that takes the longest. kInvalidInput where the kernel does not compile or
  /// complete.
  Result<LaunchProfile> operator()(const RenderedKernel& kernel) const;

 private:
  const KernelSpec& spec_;
  const Target& target_;
  Compiler& compiler_;
};

}  // namespace atunner::jobs
