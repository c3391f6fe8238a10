// Where float64 references come from: the CPU or an operator's plain kernel in float64
// (here), or a user's kernel (kernel_as_given.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "atunner/verify/budget/perturbed_run.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"
#include "atunner/verify/oracle/operator_baseline.h"

namespace atunner {

class ReferenceSource {
 public:
  virtual ~ReferenceSource() = default;
  /// How references of that size are computed, for the report.
  virtual std::string Describe(const Dims& dims) const = 0;
  /// True if references of that size are computed on the CPU.
  virtual bool UseCpu(const Dims& /*dims*/) const { return false; }
  /// False if the last reference of that size carries the roundings of the task's own precision.
  virtual bool IsExact(const Dims& /*dims*/) const { return true; }
  /// False for a kernel that need not repeat its results bit by bit, because it adds floats by
  /// atomics. Then no candidate must.
  virtual bool Repeats() const { return true; }
  /// The type in which results of type `output` are kept, of eight bytes. In float64, integers are
  /// exact up to 2^53.
  virtual DType StoredType(DType /*output*/) const { return DType::kFloat64; }
  /// The number of equal parts of all outputs, in order, that can be computed one after another.
  virtual int64_t Parts(const Dims& /*dims*/) const { return 1; }
  /// Computes part `part` of all outputs from the inputs in `buffers`. `wide` gives the range of
  /// each whole output in its StoredType. In-out tensors and outputs of `buffers` may be
  /// overwritten.
  virtual Status ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) = 0;
  /// kInvalidInput if a user's kernel does not run on these inputs, or runs longer than `seconds`.
  /// In-out tensors and outputs may be overwritten.
  virtual Status Try(const TaskBuffers& /*buffers*/, double /*seconds*/) { return {}; }
};

/// Computes all parts.
Status ComputeReference(ReferenceSource& source, const TaskBuffers& buffers, const RangeOf& wide);

/// References whose values are computed part by part, with memory for one part.
class PartedReferences : public ReferenceParts {
 public:
  /// `source` must outlive it, and have more than one part.
  PartedReferences(const OracleContext& context, ReferenceSource& source)
      : context_(context), source_(source) {}
  Status Visit(const TaskBuffers& buffers, const Reference& reference,
               const std::function<Status(const Part&)>& visit) override;

 private:
  OracleContext context_;
  ReferenceSource& source_;
};

/// An operator's reference: on the CPU where that is fast enough, else by the operator's plain
/// kernel with float64 arithmetic and outputs.
class OperatorReference : public ReferenceSource {
 public:
  /// `kernels` must outlive it.
  OperatorReference(const OracleContext& context, const Operator& op, OperatorBaseline& kernels)
      : context_(context), operator_(op), kernels_(kernels) {}

  std::string Describe(const Dims& dims) const override;
  int64_t Parts(const Dims& dims) const override;
  Status ComputePart(const TaskBuffers& buffers, const RangeOf& wide, int64_t part) override;
  /// The CPU's limits are higher with a virtual GPU, where a kernel would be interpreted.
  bool UseCpu(const Dims& dims) const override;

 private:
  Status ComputeOnCpu(const TaskBuffers& buffers, const RangeOf& wide) const;

  OracleContext context_;
  const Operator& operator_;
  OperatorBaseline& kernels_;
};

}  // namespace atunner
