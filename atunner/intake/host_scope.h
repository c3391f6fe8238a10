// Values of host expressions at one place of a source: what `threads`, `grid` or `n * sizeof(float)` is when a kernel
// is launched there. Follows definitions in the function, its caller's arguments, and constants of the file.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/intake/cuda_syntax.h"
#include "atunner/model/value.h"

namespace atunner {

/// A name with a literal value that expressions keep as a name: a problem size or a tunable.
struct Leaf {
  std::string name;
  int64_t value = 0;
  bool of_file = false;  ///< a macro or constant of the file: device code may see it too
};

class HostScope {
 public:
  /// `stated` are values from annotations; they come before everything else.
  HostScope(const CudaSyntax& syntax, size_t function, size_t position, const Dims& stated);

  /// Another place of the same source, whose leaves count among this one's.
  HostScope At(size_t function, size_t position) const { return {*this, function, position, level_}; }

  /// The expression in the language of model/expr. kInvalidInput names what could not be resolved.
  Result<std::string> Expression(TokenRange range);
  /// Three extents of a dim3 or a number; missing ones are "1".
  Result<std::array<std::string, 3>> Extents(TokenRange range);
  /// Bytes of the buffer that a pointer argument names, and its name. Follows casts and containers.
  struct Buffer {
    std::string name;
    std::string bytes;
    std::string type;     ///< declared element type; may be empty
    bool zeroed = false;  ///< by cudaMemset
  };
  Result<Buffer> BufferOf(TokenRange range);
  /// False where nobody calls the function, or a condition around the place is known not to hold.
  bool IsReached();
  /// The type of a pointer's elements, or of a number; empty where it is not declared plainly.
  std::string TypeOf(TokenRange range, bool pointer);
  /// What a name stands for where the function is a template with a type of that name; any other name is itself.
  std::string TypeNamed(const std::string& name) const;
  /// The elements that an array is initialised with: float c[2] = {0.4f, 0.1f}; empty for any other name.
  std::vector<TokenRange> ElementsOf(const std::string& name) const;

  /// The variable whose value the last expression that failed wanted; empty when it failed for another reason.
  const std::string& unknown() const { return *unknown_; }
  /// Every leaf that an expression of this scope (or of its callers') referred to.
  const std::map<std::string, Leaf, std::less<>>& leaves() const { return *leaves_; }

 private:
  using Tokens = std::vector<Token>;
  struct Pieces;  // one conversion under way

  HostScope(const HostScope& parent, size_t function, size_t position, int level);
  void Collect();
  void CollectDefinition(size_t name, size_t end);
  void CollectAllocation(size_t call, size_t end);
  void CollectMemset(size_t call, size_t end);
  void CollectDeclaredType(size_t star);
  void CollectScalarType(size_t name);
  std::optional<size_t> DeclaratorOf(size_t name, std::string_view type) const;
  void CollectContainer(const std::string& name, size_t angle, TokenRange inside);
  TokenRange CountOf(TokenRange range) const;
  Tokens Copy(TokenRange range) const;
  Result<std::string> Convert(const Tokens& tokens, int depth);
  Result<std::string> ConvertPlain(const Tokens& tokens, int depth);
  Result<std::string> Choice(const Tokens& tokens, size_t question, int depth);
  Result<size_t> Word(const Tokens& tokens, size_t i, int depth, Pieces& out);
  Result<std::string> Element(const std::string& list, const Tokens& index, int depth);
  Result<Buffer> BufferOf(TokenRange range, int depth);
  Result<std::string> Called(const std::string& name, const std::vector<Tokens>& arguments, int depth, bool& real);
  std::pair<std::vector<std::string_view>, Tokens> DefinitionOf(const std::string& name);
  std::unexpected<Error> UnknownVariable(const std::string& name);
  Result<std::string> NameValue(const std::string& name, int depth);
  Result<std::string> PitchOf(TokenRange row, int depth);
  Result<std::string> BytesOf(const std::string& buffer);
  std::optional<int64_t> NumberNow(TokenRange range);
  Result<std::string> NamedTokens(const std::string& name, const Tokens& tokens, bool of_file, int depth);
  Result<std::array<std::string, 3>> ExtentsOf(const Tokens& tokens, int depth);
  struct Call {
    std::unique_ptr<HostScope> scope;  ///< of who calls
    std::vector<TokenRange> template_args;
    std::vector<TokenRange> arguments;
  };
  /// A call that a scope is for, where it is known which of them is meant.
  struct Pin {
    size_t function = 0;
    size_t token = 0;
    std::vector<TokenRange> template_args;
    std::vector<TokenRange> arguments;
  };
  std::optional<Pin> CallAt(size_t name) const;
  std::optional<Buffer> AllocatedBy(size_t name, const std::string& parameter);
  std::optional<Buffer> AllocatedFor(const std::string& name);
  std::optional<std::string> StaticMember(const std::string& type, std::string_view member, int depth);
  std::optional<Call> CallWith(size_t template_args, size_t arguments) const;
  std::optional<std::pair<std::unique_ptr<HostScope>, TokenRange>> InCaller(const std::string& name) const;

  const CudaSyntax& syntax_;
  size_t function_;
  size_t position_;
  Dims stated_;
  int level_ = 0;
  std::optional<Pin> pin_;
  std::map<std::string, TokenRange, std::less<>> definitions_;
  std::map<std::string, TokenRange, std::less<>> lists_;                   ///< what stands between the braces
  std::map<std::string, std::array<TokenRange, 3>, std::less<>> members_;  ///< grid.x = …
  std::map<std::string, TokenRange, std::less<>> allocations_;             ///< bytes; of pitched ones: of a row
  std::map<std::string, TokenRange, std::less<>> pitched_;                 ///< rows of such allocations
  std::map<std::string, TokenRange, std::less<>> pitches_;                 ///< variables: bytes of a row
  std::set<std::string, std::less<>> zeroed_;                              ///< buffers
  std::map<std::string, TokenRange, std::less<>> containers_;              ///< element count
  std::map<std::string, std::string, std::less<>> types_;  ///< of declared variables, pointers and containers
  std::shared_ptr<std::map<std::string, Leaf, std::less<>>> leaves_;
  std::shared_ptr<std::string> unknown_;
  std::shared_ptr<std::deque<std::string>> texts_;  ///< of re-lexed constants
};

}  // namespace atunner
