// Functions on host expressions that name objects of classes.
#pragma once

#include <memory>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/host/host_scope.h"

namespace atunner {

/// The expression that gives the value of a member or of a call, and the scope in which it stands.
struct HostScope::Found {
  std::shared_ptr<HostScope> scope;
  /// An expression in that scope; for a list of values the text between the brackets
  TokenRange range;
  std::string allocation;  ///< instead of an expression: a buffer that is allocated in that scope
  std::string name;        ///< the name under which the object's owner knows it; may be empty
};

/// The range without parentheses around it, pointer casts, * and &.
TokenRange BareObject(const CudaSyntax& syntax, TokenRange range);
/// The text of a member access with dots and without spaces: "config.grid" of `config -> grid`.
std::string ObjectText(const CudaSyntax& syntax, TokenRange range);
/// The object before the dot or arrow of a member's name; empty if there is none.
TokenRange ObjectBefore(const CudaSyntax& syntax, size_t name);
/// True if the function can be called with so many arguments.
bool Accepts(const CudaSyntax& syntax, const HostFunction& function, size_t arguments);
/// True for a copy or move constructor.
bool Copies(const CudaSyntax& syntax, const HostFunction& function);

}  // namespace atunner
