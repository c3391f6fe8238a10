// The state of a host program while it is read, and access to its variables and types.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/intake/host/host_value.h"

namespace atunner {

/// Names of host functions
using RelevantNames = std::set<std::string, std::less<>>;

struct HostState {
  HostState(const CudaSyntax& of, const Dims& sizes) : syntax(of), stated(sizes) {}

  const CudaSyntax& syntax;
  const Dims& stated;  ///< sizes by annotations, which replace what the program says
  std::vector<const KernelLaunch*> launches;  ///< those that end the walk
  RelevantNames relevant;  ///< functions that may launch, allocate or fill device variables

  Leaves leaves;  ///< by unique name: a second value of `n` is "n__2"
  std::map<std::string, HostCell, std::less<>> variables;   ///< of the file
  std::map<std::string, HostValue, std::less<>> constants;  ///< of the file, as far as evaluated
  std::map<std::string, HostValue, std::less<>> symbols;    ///< what device variables were given
  std::deque<std::string> texts;  ///< keeps the texts of lexed constants and macros alive

  const KernelLaunch* reached = nullptr;
  HostFrame at_launch;  ///< of the function that launches
  bool exited = false;  ///< the program has called exit
  int loops = 0;        ///< loops around the statement
  int calls = 0;        ///< calls around the statement
  int steps_left = 10'000;
  int depth = 0;  ///< statements and expressions in each other

  bool TooDeep() const {
    constexpr int kMostNested = 400;
    return depth > kMostNested;
  }
};

/// Counts a statement or an expression inside of another one.
class Nested {
 public:
  explicit Nested(HostState& state) : state_(state) { ++state_.depth; }
  ~Nested() { --state_.depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  HostState& state_;
};

/// Half-open range of the tokens of an expression, of the source or of a macro's text.
using Tokens = std::vector<Token>;
Tokens CopyTokens(const CudaSyntax& syntax, TokenRange range);

/// The name of the leaf; with another value of the same name before it, a variant of the name.
std::string NameLeaf(HostState& state, const std::string& name, int64_t value, bool of_file);

/// The variable at a path such as "n", "grid.x" or "d[2]"; nullptr if there is none.
HostCell FindCell(HostState& state, const HostFrame& frame, std::string_view path);
/// The same; a missing one is added.
HostCell CellAt(HostState& state, HostFrame& frame, const std::string& path);
/// The value of the name: a stated size, a variable, or a constant of the file.
HostValue ReadName(HostState& state, HostFrame& frame, const std::string& path);
/// Gives a variable a value. With `named`, a literal of at least 1 becomes a leaf of its name.
void Store(HostState& state, HostVariable& variable, HostValue value, bool named);
/// Converts a number to a type: an integer loses its fraction.
HostValue Converted(HostState& state, const HostFrame& frame, HostValue value,
                    const std::string& type);

/// A type with template parameters and aliases replaced, without const and struct.
std::string ResolvedType(const HostState& state, const HostFrame& frame, std::string_view type);
/// The bytes of a type; nullopt for types that are not numbers, vectors, pointers or structures of
/// these.
std::optional<int64_t> BytesOfType(const HostState& state, const HostFrame& frame,
                                   std::string_view type);

}  // namespace atunner
