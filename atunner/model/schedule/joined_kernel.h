// Kernels of several tasks as one source and one plan.
#pragma once

#include <map>
#include <set>
#include <string>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

class JoinedKernel {
 public:
  /// `early`: blocks of a stage may start while those of the stage before end
  /// (LaunchStep::programmatic), where it is small.
  JoinedKernel(const KernelSpec& whole, bool early) : whole_(whole), early_(early) {}

  /// Adds a kernel of `task` behind the others, as a stage. `names`: how the whole calls the task's
  /// tensors; what is no argument of the whole lies in a workspace. Sizes of the task are the
  /// whole's, but for those that `sizes` has expressions for. Texts find IS_GIVEN_ and a tensor's
  /// name defined where the tensor is an input of the whole, and say by await_launch_before() when
  /// they wait; others wait first of all.
  Status Add(RenderedKernel kernel, const KernelSpec& task,
             const std::map<std::string, std::string>& names,
             const std::map<std::string, std::string>& sizes);

  RenderedKernel Finish() &&;

 private:
  bool IsArgument(const std::string& name) const { return whole_.FindArg(name) != nullptr; }
  bool StartsEarly(const KernelSpec& task) const;
  Status AddPlan(LaunchPlan plan, bool early, const std::string& prefix,
                 const std::map<std::string, std::string>& sizes,
                 const std::map<std::string, std::string>& names);
  std::string WithoutIncludes(const std::string& source);

  const KernelSpec& whole_;
  bool early_;
  RenderedKernel all_;
  std::set<std::string> includes_;
  std::string text_;
  int stages_ = 0;
};

}  // namespace atunner
