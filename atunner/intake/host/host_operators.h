// Operators of host expressions on values, and the tokens of expressions.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "atunner/intake/host/host_state.h"

namespace atunner {

/// C's precedence of a binary operator, larger binds tighter; -1 for other symbols.
int PrecedenceOf(std::string_view op);
/// The number of a literal such as 1'000u or 0.5f.
HostValue NumberOf(std::string_view literal);
/// The value of `left op right`: an expression of the same form, or what is missing.
HostValue Combined(const HostState& state, std::string_view op, const HostValue& left,
                   const HostValue& right);
/// The value of `condition ? one : other`; `holds`: the condition's truth, if it is known.
HostValue Chosen(const HostValue& condition, std::optional<bool> holds, HostValue one,
                 HostValue other);
/// An array of `count` elements of a type.
HostValue ArrayOf(HostState& state, const HostFrame& frame, const std::string& type,
                  const HostValue& count);
/// The text of a number, in brackets if it is more than a name, a literal or a call.
std::string Bracketed(const HostValue& value);

/// The token that closes the bracket at `open`, or the number of tokens.
size_t ClosingToken(std::span<const Token> tokens, size_t open);

}  // namespace atunner
