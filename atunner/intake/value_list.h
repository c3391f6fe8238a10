// Lists of values in Python's notation, as T1 files and annotations write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/expr/expr.h"

namespace atunner {

/// Parses "[1, 2, 4]", "[32 * i for i in range(1, 32) if i % 2 == 0]", "list(range(32, 1025, 32))",
/// "linspace(0, 1, 5)", "geomspace(0.1, 10, 5)", sums of these, and "1, 2, 4" without brackets.
/// kInvalidInput says what is wrong; at most 65 536 values.
Result<std::vector<Value>> ParseValueList(std::string_view text);

/// Splits at `separator` outside of brackets and quotes; pieces are trimmed. An empty text has no
/// pieces.
std::vector<std::string> SplitOutsideBrackets(std::string_view text, char separator);

std::string Trim(std::string_view text);

}  // namespace atunner
