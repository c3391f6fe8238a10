// Expressions of the host that name objects of classes.
#pragma once

#include <memory>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/host/host_scope.h"

namespace atunner {

/// What gives the value of a member, or of a call.
struct HostScope::Found {
  std::shared_ptr<HostScope> scope;
  /// An expression there; of several values what stands between the brackets
  TokenRange range;
  std::string allocation;  ///< or a buffer that is allocated there
  std::string name;        ///< how the one who has the object calls it; empty where nobody did yet
};

/// Without brackets around it, casts of pointers, * and &.
TokenRange BareObject(const CudaSyntax& syntax, TokenRange range);
/// "config.grid", whatever arrows and spaces it is written with.
std::string ObjectText(const CudaSyntax& syntax, TokenRange range);
/// What stands in front of the dot or arrow before a member's name; empty where there is none.
TokenRange ObjectBefore(const CudaSyntax& syntax, size_t name);
/// May the function be called with so many arguments?
bool Accepts(const CudaSyntax& syntax, const HostFunction& function, size_t arguments);
/// Is it a constructor that copies or moves?
bool Copies(const CudaSyntax& syntax, const HostFunction& function);

}  // namespace atunner
