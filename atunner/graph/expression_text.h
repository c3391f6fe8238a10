// Reads and writes scalar expressions as text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/lexer.h"
#include "atunner/graph/scalar.h"

namespace atunner::graph {

/// The hint for a call inside of an expression, and for an operand of a call that is not a name.
inline constexpr const char* kOwnLine = "give it a name on a line of its own";

/// Maps a free name of an expression to a node of the builder.
using NameMeaning = std::function<Result<int>(const std::string& name)>;

/// Reads one expression from `lexer` and returns its node in `builder`. kInvalidInput with line and
/// column, also for expressions deeper than kDeepestExpression.
Result<int> ReadExpression(Lexer& lexer, ScalarBuilder& builder, const NameMeaning& meaning);

/// An expression whose operands are called a, b, c, … and have these types.
Result<ScalarExpression> ParseExpression(std::string_view text, const std::vector<DType>& types);

/// The text that ReadExpression reads; `names` are the names of the operands. Subexpressions that
/// are used twice get names: `let t0 = exp(a) in t0 * t0`.
std::string PrintExpression(const ScalarExpression& expression,
                            const std::vector<std::string>& names);

/// "0.1", "1e-05", "-inf": the shortest text that reads back as the same float64.
std::string PrintNumber(double value);

}  // namespace atunner::graph
