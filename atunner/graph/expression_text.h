// Expressions as text: reading and writing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/graph/lexer.h"
#include "atunner/graph/scalar.h"

namespace atunner::graph {

/// What to do with a call, or with an operand of one, that is no line.
inline constexpr const char* kOwnLine = "give it a name on a line of its own";

/// What an expression's free names mean: a node of the builder.
using NameMeaning = std::function<Result<int>(const std::string& name)>;

/// Reads one expression from `lexer` up to where it ends. Errors say line and column.
Result<int> ReadExpression(Lexer& lexer, ScalarBuilder& builder, const NameMeaning& meaning);

/// An expression whose operands are called a, b, c, … and have these types.
Result<ScalarExpression> ParseExpression(std::string_view text, const std::vector<DType>& types);

/// As ReadExpression reads it; `names` are the operands'. Parts that are used twice get names of
/// their own.
std::string PrintExpression(const ScalarExpression& expression,
                            const std::vector<std::string>& names);

/// "0.1", "1e-05", "-inf": the shortest text that reads back as the same float64.
std::string PrintNumber(double value);

}  // namespace atunner::graph
