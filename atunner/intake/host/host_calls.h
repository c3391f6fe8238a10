// Calls in host code: those of CUDA's runtime and of the C library that matter, macros, lambdas and
// the program's own functions.
#pragma once

#include <span>
#include <string>

#include "atunner/intake/host/host_expression.h"

namespace atunner {

/// The result of a call with its effects on variables and buffers; unknown if the function is not
/// known. An unknown function may change the variables whose addresses it receives.
HostValue CallHost(HostState& state, HostFrame& frame, const HostCall& call);

/// The result of `object.member(arguments)`: size and data of buffers; unknown for others.
/// `variable` is the object; it may be nullptr.
HostValue CallMember(HostState& state, const HostValue& object, const HostCell& variable,
                     const std::string& member, std::span<const HostValue> arguments);

}  // namespace atunner
