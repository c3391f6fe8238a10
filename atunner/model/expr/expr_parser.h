// The grammar of the expression language. What expressions mean is in expr.h.
#pragma once

#include <string_view>

#include "atunner/model/expr/expr.h"

namespace atunner {

/// kInvalidInput points at the column.
Result<Expr::Node> ParseExprTree(std::string_view text);

}  // namespace atunner
