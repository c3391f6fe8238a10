// Walks through the statements of host functions in the order in which they run, up to a launch.
//
// Conditions with known values choose the branch. Of a condition with an unknown value both
// branches are walked, and variables that they leave different become unknown; a branch that
// returns is taken to be an error's. Loops run while their condition is known to hold, for some
// rounds; what a longer one changes becomes unknown.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "atunner/intake/host/host_expression.h"

namespace atunner {

/// The functions of the source that may make one of the launches, allocate memory or fill a device
/// variable, themselves or in a function that they call.
RelevantNames RelevantFunctions(const CudaSyntax& syntax,
                                const std::vector<const KernelLaunch*>& launches);

bool IsFunction(const CudaSyntax& syntax, std::string_view name);

/// Walks through a function with unknown arguments; `argc` is the value of main's first parameter,
/// if it is known. Ends at the first launch of HostState::launches, which HostState::reached and
/// at_launch then describe.
void WalkFrom(HostState& state, size_t function, std::optional<int64_t> argc);

/// The result of calling a function or a lambda of the source; nullopt if there is no such
/// function.
std::optional<HostValue> CallFunction(HostState& state, HostFrame& frame, const HostCall& call);

}  // namespace atunner
