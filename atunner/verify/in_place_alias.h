// In-out tensors and inputs that are one buffer.
//
// A program may pass one buffer for an input x and an in-out tensor y of equal size and type, if
// the kernel works in place: with one buffer it computes what it computes with two of equal
// contents. Where the kernel as given does, so must every candidate. A source that says
// `__restrict__` promises that no two of its buffers are one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Names of an input and an in-out tensor that may be one buffer.
struct AliasPair {
  std::string input;
  std::string in_out;
};

class InPlaceAlias {
 public:
  explicit InPlaceAlias(const OracleContext& context) : context_(context) {}

  /// The pairs for which a kernel as given that repeats its results works in place, at the size of
  /// `buffers`, whose inputs are drawn anew. Found once; empty for operators, which have no
  /// buffers.
  Result<const std::vector<AliasPair>*> PairsOf(const TaskBuffers& buffers,
                                                const InputInstance& instance);
  /// The first of these pairs for which a kernel does not work in place; nullopt if it does for
  /// all. It also does if a launch fails: other checks refuse that.
  Result<std::optional<AliasPair>> Broken(LoadedModule& module, const LaunchPlan& plan,
                                          const TaskBuffers& buffers,
                                          const InputInstance& instance);

 private:
  /// Whether the kernel computes the same with one buffer as with two of equal contents.
  Result<bool> WorksInPlace(LoadedModule& module, const LaunchPlan& plan,
                            const TaskBuffers& buffers, const InputInstance& instance,
                            const AliasPair& pair);
  /// Fingerprints of all outputs after a launch; empty if it fails.
  Result<std::vector<uint64_t>> Outputs(LoadedModule& module, const LaunchPlan& plan,
                                        const TaskBuffers& buffers, const InputInstance& instance,
                                        const AliasPair& pair, bool one_buffer);

  OracleContext context_;
  std::optional<std::vector<AliasPair>> pairs_;
};

}  // namespace atunner
