// The body of a kernel on two axes: which elements a thread is for, and which it is not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/rewrites/source/loop_uses.h"

namespace atunner::rewrites {

/// `if (row >= m || col >= n) return; …` and `if (row < m && col < n) { … }`.
struct Guarded {
  const ThreadIndex* x = nullptr;  ///< the index on axis x
  const ThreadIndex* y = nullptr;
  std::vector<std::string> inside;    ///< all must hold: "row < m"; C++ expressions
  std::vector<Statement> statements;  ///< behind the indices and the guard
  /// The conditions that mention one name and not the other, joined by &&; "true" if there is none.
  std::string Inside(const Subject& subject, const std::string& name) const;
  std::string Inside() const;
};

/// nullopt if the kernel's body has another form.
std::optional<Guarded> AsGuarded(const Subject& subject);

}  // namespace atunner::rewrites
