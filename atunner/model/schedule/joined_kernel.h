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
  /// `early`: blocks of a small stage may start while those of the previous stage end
  /// (LaunchStep::programmatic).
  JoinedKernel(const KernelSpec& whole, bool early) : whole_(whole), early_(early) {}

  /// Appends a kernel of `task` as a stage. `names` maps the task's tensors to those of the whole;
  /// a tensor that is no argument of the whole becomes a workspace. The sizes of the task equal
  /// those of the whole of the same name, except where `sizes` has an expression. In the text,
  /// IS_GIVEN_<tensor> is defined for tensors that are inputs of the whole. A text that calls
  /// await_launch_before() waits there for the previous stage; other texts wait at their beginning.
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
