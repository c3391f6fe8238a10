// How a loop uses variables and arrays: what decides whether its iterations are independent.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/rewrites/subject.h"

namespace atunner::rewrites {

/// The names that a declaration declares.
std::vector<std::string> DeclaredIn(const CudaSyntax& syntax, TokenRange range);

/// `for (int j = begin; j < end; ++j)`, also with <= and other steps of one.
struct CountedLoop {
  const Statement* loop = nullptr;
  std::string variable;
  TokenRange begin;
  TokenRange end;
  TokenRange step;
};
/// nullopt for a loop of another form.
std::optional<CountedLoop> AsCountedLoop(const Subject& subject, const Statement& statement);

/// An assignment as a statement of its own: `x += e;`, `a[i] = e;`, `++n;`.
struct Assignment {
  std::string target;    ///< the variable's or the array's name
  std::string op;        ///< "=", "+=", "++", …
  TokenRange subscript;  ///< between the brackets; empty for a scalar
  TokenRange value;      ///< behind the operator; empty for ++ and --
  const Statement* statement = nullptr;
  bool is_element() const { return !subscript.empty(); }
};
/// nullopt for other statements, and for targets that are neither a name nor one of its elements.
std::optional<Assignment> AsAssignment(const Subject& subject, const Statement& statement);

/// What a loop's body does.
struct LoopUses {
  std::vector<Assignment> assignments;
  std::set<std::string> locals;  ///< declared within
  std::string obstacle;          ///< a statement whose effects are not known, or ""
  /// True if the value of the range can differ between iterations.
  bool Varies(const Subject& subject, TokenRange range) const;
};
LoopUses UsesOf(const Subject& subject, const CountedLoop& loop);

/// An element of an array that an expression reads: `a[row * k + i]`.
struct ElementRead {
  std::string array;
  TokenRange whole;
  TokenRange subscript;
};
std::vector<ElementRead> ReadsIn(const Subject& subject, TokenRange range);

/// The last statement among `before` that is the declaration or assignment of `name`, if it gives
/// the literal zero and no statement behind it mentions the name.
bool StartsAtZero(const Subject& subject, const std::vector<Statement>& before, size_t count,
                  const std::string& name);
/// The type in the declaration of a local variable, e.g. "float"; "" if it is not found.
std::string TypeOfLocal(const Subject& subject, const std::vector<Statement>& statements,
                        const std::string& name);
/// True if neighbouring values of the name give neighbouring elements: it is added, not multiplied.
bool IsUnitStride(const Subject& subject, TokenRange subscript, const std::string& name);
/// True for 0, 0.0, 0.f, …
bool IsZero(std::string_view number);

}  // namespace atunner::rewrites
