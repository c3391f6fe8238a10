// The statements of a device function as a tree, over the tokens of the source.
//
// Example: `for (int i = 0; i < n; ++i) sum += x[i];` is a kFor with init "int i = 0", condition
// "i < n", step "++i" and one child, the kExpression "sum += x[i];".
//
// Expressions are not parsed: rewrites look at their tokens. What is no known statement becomes a
// kExpression up to its semicolon.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner::rewrites {

struct Statement {
  enum class Kind : uint8_t {
    kBlock,  ///< { … }
    kFor,
    kWhile,  ///< while, and do … while
    kIf,     ///< one or two children
    kReturn,
    kDeclaration,  ///< of one or more variables
    kExpression,
    kDirective,  ///< a line of the preprocessor, e.g. #pragma unroll
  };
  Kind kind = Kind::kExpression;
  TokenRange range;      ///< all of it, with its semicolon or its children
  TokenRange init;       ///< of a kFor
  TokenRange condition;  ///< of kFor, kWhile, kIf
  TokenRange step;       ///< of a kFor
  std::vector<Statement> children;

  bool IsLoop() const { return kind == Kind::kFor || kind == Kind::kWhile; }
};

/// The statements of a function's body.
std::vector<Statement> ParseStatements(const CudaSyntax& syntax, TokenRange body);

/// Calls `visit` for each statement and its descendants, outer ones first.
void Walk(const std::vector<Statement>& statements,
          const std::function<void(const Statement&)>& visit);

/// True if the range has a word of that name that is no member (not behind . or ->).
bool Mentions(const CudaSyntax& syntax, TokenRange range, std::string_view name);
/// The texts of the range's tokens with single blanks: "x [ i ] + = 1" is "x [ i ] += 1".
std::string Joined(const CudaSyntax& syntax, TokenRange range);
/// The tokens from `begin` to before the first of that text at bracket depth 0, or to the end.
TokenRange UpTo(const CudaSyntax& syntax, TokenRange range, std::string_view symbol);

}  // namespace atunner::rewrites
