// Whether a tolerance that the task states can tell a right result from a trivial one.
//
// Example: a softmax over rows of 20000 columns with `absolute = 1e-2`. Its results are about 5e-5,
// so that zeros are within the tolerance, whatever the inputs. Every kernel would be correct. Such
// a task is refused when it begins.
//
// The tolerance is at fault only if the derived budget would refuse the trivial result. A kernel
// that copies its input is honest work, and there a copy is right; a result that happens to be zero
// in one instance says nothing about the others.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Whether the task bounds errors itself, by `relative` or `absolute`.
bool StatesTolerance(const KernelSpec& spec);

/// Fills Reference::Output::trivial of all floating-point outputs. Outputs of `buffers` are
/// overwritten, its inputs are the instance's. Call it only if the task states a tolerance.
Status CompareTrivialOutputs(const OracleContext& context, const TaskBuffers& buffers,
                             Reference& reference);

/// Collects the instances of one problem size.
class ToleranceTest {
 public:
  void Add(const Reference& reference);
  /// True if every trivial output so far was refused in some instance.
  bool passed() const;
  /// kInvalidInput that names all outputs which the tolerance cannot tell from trivial ones.
  Status Check(const KernelSpec& spec) const;

 private:
  /// By output and trivial output; whether some instance refused it.
  std::map<std::pair<std::string, std::string>, bool> refused_;
};

}  // namespace atunner
