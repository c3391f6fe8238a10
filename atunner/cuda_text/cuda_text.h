// Scalar expressions as CUDA C++, for baseline kernels and schedule families.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "atunner/graph/scalar.h"

namespace atunner::graph {

/// The kernel around an expression.
struct CudaContext {
  bool wide = false;                  ///< floats below float64 are computed in double
  std::vector<std::string> operands;  ///< the operands' values, of type CudaArithmetic(…)
  /// Returns the text of index(axis) and extent(axis), of type long long.
  std::function<std::string(ScalarOp op, int axis)> place;
  std::string temporary = "t";  ///< prefix of the names of intermediate values
  /// Results are rounded to 16 bits, so that the faster functions of kernels/graph/narrow.cuh
  /// suffice
  bool narrow = false;
};

/// True if the expression has operators with a faster form for 16-bit results (exp, tanh, division,
/// …).
bool HasNarrowForms(const ScalarExpression& expression);

/// The type in which elements of `dtype` are computed: "float", "double", "int", …
std::string CudaArithmetic(DType dtype, bool wide);

/// The statements that compute an expression, one per line without indentation, and the text of its
/// value. Values that are used once are written into the expression that uses them.
struct CudaText {
  std::vector<std::string> statements;
  std::string value;
};
CudaText ToCuda(const ScalarExpression& expression, const CudaContext& context);

/// A literal of type CudaArithmetic(dtype, wide): "0.5f", "(-3)", "9ll".
std::string CudaLiteral(DType dtype, Cell value, bool wide);

/// The floating-point operations for one element; each operator counts as one.
double ScalarFlops(const ScalarExpression& expression);

}  // namespace atunner::graph
