// Evaluates host expressions, with their effects on variables and buffers.
//
// Texts keep the source's own operators and brackets, since tunables are found in them: with n =
// 1000 and threads = 256, `(n + threads - 1) / threads` gives "(n + threads - 1) // threads".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "atunner/intake/host/host_state.h"

namespace atunner {

/// The value of an expression; unknown if it is not understood. Calls of host functions are
/// followed, and assignments are made.
HostValue Evaluate(HostState& state, HostFrame& frame, std::span<const Token> tokens);
HostValue Evaluate(HostState& state, HostFrame& frame, TokenRange range);

/// A call with its evaluated arguments.
struct HostCall {
  std::string name;  ///< without namespaces
  std::vector<Tokens> template_args;
  std::vector<Tokens> tokens;  ///< of the arguments
  std::vector<HostValue> arguments;
  std::vector<HostCell> cells;  ///< the variables that arguments are; nullptr for others
};

/// Splits tokens at commas outside of brackets.
std::vector<Tokens> SplitTokens(std::span<const Token> tokens);

}  // namespace atunner
