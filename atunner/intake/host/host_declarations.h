// Declarations in host functions: variables, arrays, containers and parameters.
#pragma once

#include <optional>

#include "atunner/intake/host/host_expression.h"

namespace atunner {

struct DeclarationHead {
  TokenRange type;     ///< const, * and & are left out
  size_t declarators;  ///< the first token behind the type, * and & included
};

/// The head of the declaration that begins at a token, e.g. of `const float *a = x, b[3];`; nullopt
/// for other statements.
std::optional<DeclarationHead> DeclarationAt(const CudaSyntax& syntax, TokenRange statement);

/// Adds the variables of a declaration with their values. `named`: literals become leaves.
void Declare(HostState& state, HostFrame& frame, const DeclarationHead& head, size_t end,
             bool named);

/// Adds the parameters of a function with the values of a call; those without one have their
/// default or are unknown. Template parameters get the call's arguments, or the types that follow
/// from the others.
void BindParameters(HostState& state, HostFrame& frame, const HostCall* call,
                    const HostFrame* caller);

}  // namespace atunner
