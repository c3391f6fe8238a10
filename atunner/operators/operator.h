// The interface of operators: signature, float64 reference, baseline kernels, FLOP and byte counts.
// Schedules are in codegen.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// A user's request for an operator.
struct OperatorRequest {
  std::vector<std::vector<int64_t>> shapes;  ///< as OperatorInfo::shape_help describes them
  DType dtype = DType::kFloat32;
  Attributes attributes;
};

struct AttributeInfo {
  std::string name;
  Value fallback;
  std::string meaning;
};

struct OperatorInfo {
  std::string name;
  std::string summary;
  std::string
      shape_help;  ///< the shapes it takes, with an example: "M,N,K: request.shapes 64,64,64"
  std::vector<AttributeInfo> attributes;
  std::vector<std::vector<int64_t>> example;  ///< small shapes for tests; may be empty
};

/// A task as `count` equal tasks, each on its own contiguous slice of all tensors.
struct EqualTasks {
  KernelSpec each;
  int64_t count = 1;
};

/// A variant of the baseline kernels that stores every computed value on which a comparison, argmax
/// or rounding depends, so that the verifier can perturb it between two launches.
struct DecisionKernels {
  RenderedKernel kernel;
  std::vector<graph::StepRounding> steps;
  std::set<std::string>
      index_outputs;  ///< outputs that are indices: a near index is as wrong as any
};

class Operator {
 public:
  virtual ~Operator() = default;
  virtual const OperatorInfo& info() const = 0;
  /// The task: dims, arguments, FLOP and byte counts. kInvalidInput for wrong shapes, types or
  /// attributes, with an example of right ones.
  Result<KernelSpec> Instantiate(const OperatorRequest& request) const;
  /// True if the operator can be computed in this type.
  virtual bool Serves(DType dtype) const;
  /// All attributes: the given ones, and the fallbacks of the others. kInvalidInput for an unknown
  /// name, a value of the wrong kind, and a value that the operator cannot take.
  Result<Attributes> CompleteAttributes(const Attributes& given) const;
  /// Computes the outputs in float64 on the CPU. `inputs` and `outputs` are the spec's input and
  /// output tensors in order, dense and row-major.
  virtual Status Reference(const KernelSpec& spec, const Dims& dims,
                           std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) const = 0;
  /// The baseline "naive": simple kernels with the task's types and float32 arithmetic.
  RenderedKernel Naive(const KernelSpec& spec) const {
    return Baseline(spec, BaselineForm::kNaive);
  }
  /// Kernels with bit for bit the results of Naive, maybe faster. The error budget is derived from
  /// their error.
  RenderedKernel ErrorBaseline(const KernelSpec& spec) const {
    return Baseline(spec, BaselineForm::kErrorBaseline);
  }
  /// The roundings of each step of ErrorBaseline; empty if they are not known.
  virtual std::vector<graph::StepRounding> Roundings(const KernelSpec&) const { return {}; }
  /// nullopt if no decision depends on a computed value.
  virtual std::optional<DecisionKernels> Decisions(const KernelSpec&) const { return std::nullopt; }
  /// The algorithm of ErrorBaseline in float64 with float64 outputs: the reference for problems
  /// that are too large for the CPU.
  RenderedKernel OracleKernel(const KernelSpec& spec) const {
    return Baseline(spec, BaselineForm::kReference);
  }
  /// The number of products that are summed in one element of an output that is a plain sum of
  /// products (a matrix product: K); 0 for other outputs.
  virtual double ProductsSummed(const KernelSpec&, const Dims&, std::string_view /*output*/) const {
    return 0;
  }
  /// Among the sums that an output depends on and that have fewer than `few` results, the number of
  /// terms of the longest; 0 if there is none. The error of such a sum is in many elements of the
  /// output.
  virtual double TermsOfFewSums(const KernelSpec&, const Dims&, std::string_view /*output*/,
                                int64_t /*few*/) const {
    return 0;
  }
  /// The task, at its own dims, as the smallest number of equal tasks for which `fits(task)` is
  /// true; nullopt if it cannot be split.
  virtual std::optional<EqualTasks> SplitIntoEqualTasks(
      const KernelSpec&, const std::function<bool(const KernelSpec&)>&) const {
    return std::nullopt;
  }

 protected:
  /// Checks the values of all attributes; names and kinds are known to be right.
  virtual Status CheckValues(const Attributes&) const { return {}; }
  /// Fills dims, arguments, FLOP and byte counts; the attributes are checked.
  virtual Status Describe(const OperatorRequest& request, KernelSpec& spec) const = 0;
  using BaselineForm = graph::BaselineForm;
  virtual RenderedKernel Baseline(const KernelSpec& spec, BaselineForm form) const = 0;
  std::unexpected<Error> WrongShape(const std::string& what) const;
};

/// The operator that computes the reference of a task; nullptr if a user's kernel is its oracle.
const Operator* OracleOf(const KernelSpec& spec);

/// The operator of that name; nullptr if there is none. Hyphens and underscores are equal.
const Operator* FindOperator(std::string_view name);
std::vector<const Operator*> AllOperators();

}  // namespace atunner
