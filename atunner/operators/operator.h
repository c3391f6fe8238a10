// What an operator computes: its signature, its float64 reference, its plain kernels and its work.
// How fast is no concern here.
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

/// An operator with shapes, as a user asks for it.
struct OperatorRequest {
  std::vector<std::vector<int64_t>> shapes;  ///< one per shape the operator's signature names
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
  std::string shape_help;  ///< "ROWS…,COLS, e.g. 8,1024,4096"
  std::vector<AttributeInfo> attributes;
  std::vector<std::vector<int64_t>> example;  ///< small shapes, where any are stated
};

/// `count` tasks of one kind, on stretches of the tensors one behind the other.
struct EqualTasks {
  KernelSpec each;
  int64_t count = 1;
};

/// Plain kernels that take what they decide by, values that they compute, from memory, so that it
/// can be moved there.
struct DecisionKernels {
  RenderedKernel kernel;
  std::vector<graph::StepRounding> steps;
  std::set<std::string> places;  ///< outputs of which no element is nearer to another
};

class Operator {
 public:
  virtual ~Operator() = default;
  virtual const OperatorInfo& info() const = 0;
  /// The task: dims, arguments, work. kInvalidInput says what is wrong with the shapes or
  /// attributes and shows a right one.
  Result<KernelSpec> Instantiate(const OperatorRequest& request) const;
  /// True if the operator can be computed in this type.
  virtual bool Serves(DType dtype) const;
  /// All attributes: the given ones, and the fallbacks of the others. kInvalidInput for an unknown
  /// name, a value of the wrong kind, and a value that the operator cannot take.
  Result<Attributes> CompleteAttributes(const Attributes& given) const;
  /// float64 on the CPU. `inputs` and `outputs` are the spec's input and output tensors in order,
  /// dense and row-major.
  virtual Status Reference(const KernelSpec& spec, const Dims& dims,
                           std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) const = 0;
  /// The honest plain kernel: the task's types, float32 arithmetic. Baseline "naive".
  RenderedKernel Naive(const KernelSpec& spec) const { return Plain(spec, BaselineForm::kNaive); }
  /// Bit for bit the results of `Naive`, maybe sooner: what the error budget is derived from.
  RenderedKernel ErrorBaseline(const KernelSpec& spec) const {
    return Plain(spec, BaselineForm::kErrorBaseline);
  }
  /// Of each step of `ErrorBaseline` where it rounds; empty where that is not known.
  virtual std::vector<graph::StepRounding> Roundings(const KernelSpec&) const { return {}; }
  /// nullopt where no computed value decides anything.
  virtual std::optional<DecisionKernels> Decisions(const KernelSpec&) const { return std::nullopt; }
  /// The same algorithm in float64 with float64 outputs: the reference for problems too large for
  /// the CPU.
  RenderedKernel OracleKernel(const KernelSpec& spec) const {
    return Plain(spec, BaselineForm::kReference);
  }
  /// Products that are added up in an element of an output which is nothing but their sum; 0 of
  /// others.
  virtual double ProductsSummed(const KernelSpec&, const Dims&, std::string_view /*output*/) const {
    return 0;
  }
  /// Terms of the longest sum behind an output of which there are fewer than `few`, so that its
  /// error is in many elements; 0 where there is none.
  virtual double TermsOfFewSums(const KernelSpec&, const Dims&, std::string_view /*output*/,
                                int64_t /*few*/) const {
    return 0;
  }
  /// The task, at its own size, as the fewest equal ones of which each `fits`; nullopt where it is
  /// none such.
  virtual std::optional<EqualTasks> SplitIntoEqualTasks(
      const KernelSpec&, const std::function<bool(const KernelSpec&)>&) const {
    return std::nullopt;
  }

 protected:
  /// Checks the values of all attributes; names and kinds are known to be right.
  virtual Status CheckValues(const Attributes&) const { return {}; }
  /// Fills dims, args and work for checked attributes.
  virtual Status Describe(const OperatorRequest& request, KernelSpec& spec) const = 0;
  using BaselineForm = graph::BaselineForm;
  virtual RenderedKernel Plain(const KernelSpec& spec, BaselineForm form) const = 0;
  std::unexpected<Error> WrongShape(const std::string& what) const;
};

/// What computes the right answer of a task; nullptr where that is no operator and no graph.
const Operator* OracleOf(const KernelSpec& spec);

/// nullptr when there is none; hyphens and underscores are the same.
const Operator* FindOperator(std::string_view name);
std::vector<const Operator*> AllOperators();

}  // namespace atunner
