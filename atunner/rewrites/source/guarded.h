// The body of a kernel on two axes: which elements a thread is for, and which it is not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// A kernel's body without the conditions under which a thread has something to do.
struct Conditions {
  std::vector<std::string> inside;    ///< all must hold: "row < m"; C++ expressions
  std::vector<Statement> indices;     ///< declarations of a thread's indices
  std::vector<Statement> statements;  ///< all others
};
/// nullopt if a condition is no comparison.
std::optional<Conditions> AsConditions(const Subject& subject);

/// `int i = …; if (i >= n) return; …`, `int i = …; if (i < n) …`: one thread for each element.
struct RowBody {
  std::string type;                   ///< of the index
  std::string name;                   ///< of the index
  std::string value;                  ///< of the index
  std::string inside;                 ///< "i < n"
  TokenRange range;                   ///< of the statements
  std::vector<Statement> statements;  ///< behind the index and the guard
};

/// nullopt if the kernel's body has another form, or returns or synchronises within.
std::optional<RowBody> AsRowBody(const Subject& subject);
/// The body with `statements` for several elements of each thread:
/// `for (int i = …; i < n; i += gridDim.x * blockDim.x) { statements }`.
std::string GridStride(const RowBody& body, const std::string& statements,
                       const std::string& indent);
/// How often the range has a word of that name that is no member.
size_t CountMentions(const Subject& subject, TokenRange range, std::string_view name);
/// The range's text with another name for a variable.
std::string Renamed(const Subject& subject, TokenRange range, const std::string& from,
                    const std::string& to);
/// The same for several variables at once, by their old names.
std::string Renamed(const Subject& subject, TokenRange range,
                    const std::map<std::string, std::string>& names);
/// The same for an expression.
std::string RenamedText(const std::string& expression, const std::string& from,
                        const std::string& to);

/// nullopt if the kernel's body has another form.
std::optional<Guarded> AsGuarded(const Subject& subject);

}  // namespace atunner::rewrites
