// The cases of `test --operators`: every operator and gradient, in every type that it takes, at
// three shapes.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/operators/operator.h"

namespace atunner::jobs {

/// The shapes of "8,16 16,4".
std::vector<std::vector<int64_t>> ParsedShapes(const std::string& text);

/// Shapes of an operator: a tiny one, one of primes and a large one. What takes no primes (halves,
/// groups) has the nearest that it takes.
struct OperatorShapes {
  std::string name;
  std::string size;  ///< "tiny", "primes" or "large"
  std::string text;  ///< for ParsedShapes
  Attributes attributes;
};

/// Sizes for the virtual GPU, or `full` ones for a GPU: 10^6 to 10^8 elements.
std::vector<OperatorShapes> ShapesOf(const Operator& op, bool full);

/// True if the operator's name contains one of `only`, or if `only` is empty.
bool Wanted(const Operator& op, const std::vector<std::string>& only);

/// One task to verify: an operator, or several pointwise ones as outputs of one graph.
struct OperatorCase {
  std::vector<const Operator*> operators;
  DType dtype = DType::kFloat32;
  OperatorShapes shapes;
};

/// The task of a case. kInvalidInput or kUnsupported where the operator does not take the type.
Result<KernelSpec> SpecOf(const OperatorCase& one);

/// Every case that the request asks for. Pointwise operators share a case unless they are to be
/// apart.
std::vector<OperatorCase> OperatorCases(const OperatorTestRequest& request);

}  // namespace atunner::jobs
