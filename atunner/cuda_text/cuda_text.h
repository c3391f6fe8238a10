// Expressions as CUDA C++: what plain kernels and schedule families put into their loops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "atunner/graph/scalar.h"

namespace atunner::graph {

/// How an expression stands in a kernel.
struct CudaContext {
  bool wide = false;                  ///< floats below float64 are computed in double
  std::vector<std::string> operands;  ///< by number: values of type CudaArithmetic(…)
  /// The text of index(axis) and extent(axis), as long long.
  std::function<std::string(ScalarOp op, int axis)> place;
  std::string temporary = "t";  ///< names of intermediate values begin so
  /// Float32 results are rounded to 16 bits: functions of kernels/graph/narrow.cuh serve
  bool narrow = false;
};

/// Does the expression have operators that `narrow` makes cheaper?
bool HasNarrowForms(const ScalarExpression& expression);

/// The type in which elements of `dtype` are computed: "float", "double", "int", …
std::string CudaArithmetic(DType dtype, bool wide);

/// Statements that compute `expression`, one to a line without indentation, and the text of its
/// value. Values that are used once stand inside of others.
struct CudaText {
  std::vector<std::string> statements;
  std::string value;
};
CudaText ToCuda(const ScalarExpression& expression, const CudaContext& context);

/// "0.5f", "(-3)", "0x1p-24": a literal of the type of arithmetic.
std::string CudaLiteral(DType dtype, Cell value, bool wide);

/// Floating-point operations of one element: one per operator, as for the other tasks.
double ScalarFlops(const ScalarExpression& expression);

}  // namespace atunner::graph
