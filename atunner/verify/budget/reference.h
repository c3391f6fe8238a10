// The right answer to one input instance at one problem size, with the error budget of candidates.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/budget/error_budget.h"
#include "atunner/verify/launch/judge_kernels.h"
#include "atunner/verify/launch/memory_limits.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// What all parts of the oracle work with. Everything must outlive them.
struct OracleContext {
  Device& device;
  Compiler& compiler;
  JudgeKernels& kernels;
  const KernelSpec& spec;
  MemoryLimits memory = {};
};

struct Reference;

/// Computes a reference that is too large to be kept, part by part, whenever something is compared
/// with it.
class ReferenceParts {
 public:
  /// One part of all outputs.
  struct Part {
    int64_t number = 0;
    /// By output: elements from `first`, not masked
    struct Values {
      DeviceAddress address = 0;
      uint64_t first = 0;
      uint64_t elements = 0;
    };
    std::vector<Values> outputs;
  };
  virtual ~ReferenceParts() = default;
  /// `buffers` hold the instance's inputs. The memory of a part is reused for the next, and zeroed
  /// at the end: a later candidate finds nothing in it.
  virtual Status Visit(const TaskBuffers& buffers, const Reference& reference,
                       const std::function<Status(const Part&)>& visit) = 0;
};

/// The float64 results of a task, masked in device memory.
struct Reference {
  /// Zeros, a constant or a copy of an input, which the derived budget would refuse.
  struct Trivial {
    std::string what;
    bool within_tolerance = false;  ///< whether the tolerance that the task states accepts it
  };
  struct Output {
    std::string name;
    DType dtype = DType::kFloat32;
    /// `elements` values of `stored`, XORed with a stream of `key`
    std::unique_ptr<Buffer> masked;
    /// float64, or the output's own type where a user's kernel writes 64-bit integers
    DType stored = DType::kFloat64;
    uint64_t elements = 0;
    /// False if the reference carries the roundings of the task's own precision: bounds are never
    /// below DefaultBudget then.
    bool exact = true;
    uint64_t key = 0;
    double scale = 0;  ///< ElementScale of the task's tolerance
    ErrorBudget budget;
    CompareStats self;      ///< the reference compared with itself: its norm, mean and rms
    CompareStats baseline;  ///< the largest errors of the baseline's runs, which give the budget
    std::unique_ptr<Buffer> decision_memory;
    /// Other values that are right too, where data-dependent decisions may go another way
    DecisionSlots decision_slots;
    bool nan_for_infinite = false;  ///< CompareRequest::nan_for_infinite
    uint64_t undetermined = 0;      ///< elements that such a decision may move beyond the budget
    /// False when zeros, a constant or a copy of an input would pass: this instance proves nothing.
    bool discriminates = true;
    /// True when the results of the baseline kernel leave its type's range: no candidate can be
    /// compared on this instance.
    bool overflows = false;
    std::vector<Trivial> trivial;  ///< empty unless the task states a tolerance
  };
  std::vector<Output> outputs;
  uint64_t bytes = 0;
  /// Not null: the values are never kept, `masked` is null and `bytes` is their size all the same.
  ReferenceParts* parts = nullptr;
  bool reevaluated = false;  ///< whether the budget was re-evaluated
  int decision_rounds = 0;   ///< rounds of DecisionSampler so far

  /// Frees the values. Budgets and statistics stay, so that only the values need be computed again.
  void DropValues();
  /// True if it can be compared with: its values are kept, or computed in parts.
  bool HasValues() const;
  /// Bytes of device memory that it takes.
  uint64_t HeldBytes() const;

  /// Less than 8 MiB in float64: one element's error weighs in the norm, and several runs cost
  /// little.
  bool small() const;
  bool discriminates() const;
  bool overflows() const;
  /// True if more than a quarter of an output's elements depend on decisions that roundings may
  /// turn: a candidate that passes has shown nothing.
  bool mostly_undetermined() const;
};

/// Statistics of `request.data` against the reference's output with the number `output`, whose
/// values the request need not name. Data 0 stands for the reference itself. `buffers` hold the
/// instance's inputs.
Result<CompareStats> CompareWith(const OracleContext& context, const TaskBuffers& buffers,
                                 const Reference& reference, size_t output, CompareRequest request);

/// Statistics of `data`, in the output's type, against the reference. Elements whose error is
/// beyond `element_bound` are counted. `poison` filled the data before the run.
Result<CompareStats> CompareWithReference(const OracleContext& context, const TaskBuffers& buffers,
                                          const Reference& reference, size_t output,
                                          DeviceAddress data, double element_bound = 1e300,
                                          const std::optional<Poison>& poison = {});

}  // namespace atunner
