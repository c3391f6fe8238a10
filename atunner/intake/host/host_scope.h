// Evaluates host expressions at one place of a source: the values of `threads`, `grid` or
// `n * sizeof(float)` where a kernel is launched.
//
// An expression is converted into the language of model/expr by following definitions in the
// function before the place, the arguments of its callers, and constants of the file. Literals are
// kept as names ("leaves"), because they are problem sizes or tunables:
//
//     #define THREADS 256
//     void run(int rows) { int blocks = (rows * 64 + THREADS - 1) / THREADS;
//                          k<<<blocks, THREADS>>>(…); }
//     int main() { run(1000); }
//
// At the launch `blocks` converts to ((rows * 64 + THREADS - 1) // THREADS) with the leaves
// rows = 1000 (from the caller) and THREADS = 256 (of the file).
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
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/model/value/value.h"

namespace atunner {

/// A name with a literal value, which expressions keep as a name: a problem size or a tunable.
struct Leaf {
  std::string name;
  int64_t value = 0;
  bool of_file = false;  ///< a macro or constant of the file, which device code may use too
};

class HostScope {
 public:
  /// `stated` are values from annotations; they override everything else.
  HostScope(const CudaSyntax& syntax, size_t function, size_t position, const Dims& stated);

  /// A scope for another place of the same source that shares the leaves.
  HostScope At(size_t function, size_t position) const {
    return {*this, function, position, level_};
  }

  /// The expression in the language of model/expr. kInvalidInput names the part that is unknown.
  Result<std::string> Expression(TokenRange range);
  /// The three extents of a dim3 or a number; missing ones are "1".
  Result<std::array<std::string, 3>> Extents(TokenRange range);
  /// Name and size of the buffer that a pointer argument points to. Casts and containers are
  /// followed.
  struct Buffer {
    std::string name;
    std::string bytes;
    std::string type;      ///< declared element type; may be empty
    bool zeroed = false;   ///< filled with 0 by cudaMemset
    std::string elements;  ///< number of elements of a PyTorch tensor, instead of bytes
  };
  Result<Buffer> BufferOf(TokenRange range);
  /// The extents of a member of an object, e.g. of the `gridDim` of a cudaLaunchConfig_t.
  Result<std::array<std::string, 3>> ExtentsOfMember(TokenRange object, const std::string& member);
  /// False if the function is never called, or if a condition around the place is known to be
  /// false.
  bool IsReached();
  /// The element type of a pointer, or the type of a number; "" if its declaration is not found.
  std::string TypeOf(TokenRange range, bool pointer);
  /// The template argument if the function is a template with a type parameter of that name; other
  /// names are returned unchanged.
  std::string TypeNamed(const std::string& name) const;
  /// The initialisers of an array, e.g. of float c[2] = {0.4f, 0.1f}; empty for other names.
  std::vector<TokenRange> ElementsOf(const std::string& name) const;

  /// The variable without a known value that made the last expression fail; "" if it failed for
  /// another reason.
  const std::string& unknown() const { return *unknown_; }
  /// All leaves to which expressions of this scope and of its callers have referred.
  const std::map<std::string, Leaf, std::less<>>& leaves() const { return *leaves_; }

 private:
  static constexpr int kMostLevels = 8;  ///< depth of nested calls
  using Tokens = std::vector<Token>;
  struct Pieces;  // the state of one conversion

  HostScope(const HostScope& parent, size_t function, size_t position, int level);
  void Begin();
  void Collect();
  void Forget(size_t name);
  void CollectDefinition(size_t name, size_t end);
  void CollectAllocation(size_t call, size_t end);
  std::string PointerText(TokenRange range) const;
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
  Result<size_t> MemberWord(const Tokens& tokens, size_t i, int depth, Pieces& out);
  Result<std::array<std::string, 3>> ExtentsNamed(const std::string& name, int depth);
  std::optional<std::array<std::string, 3>> ExtentsFound(const Tokens& tokens, int depth);
  Result<std::string> Element(const std::string& list, const Tokens& index, int depth);
  Result<Buffer> BufferOf(TokenRange range, int depth);
  Result<Buffer> BufferOfWords(TokenRange range, int depth);
  Result<Buffer> BufferFromElement(TokenRange range, int depth);
  std::optional<Buffer> BufferOfMember(TokenRange range, int depth);
  std::string ElementType(const std::string& pointer) const;
  Result<std::string> Called(const std::string& name, const std::vector<Tokens>& arguments,
                             int depth, bool& real);
  std::pair<std::vector<std::string_view>, Tokens> DefinitionOf(const std::string& name);
  std::unexpected<Error> UnknownVariable(const std::string& name);
  std::unexpected<Error> UnknownBehind(const std::string& name);
  Result<std::string> NameValue(const std::string& name, int depth);
  Result<std::string> PitchOf(TokenRange row, int depth);
  Result<std::string> BytesOf(const std::string& buffer);
  bool IsRuledOut(size_t place) const;
  bool ConditionsMayHold();
  std::optional<TokenRange> Definition(const std::string& name) const;
  void Define(const std::string& name, TokenRange value);
  std::optional<int64_t> NumberNow(TokenRange range);
  Result<std::string> NamedTokens(const std::string& name, const Tokens& tokens, bool of_file,
                                  int depth);
  Result<std::array<std::string, 3>> ExtentsOf(const Tokens& tokens, int depth);
  /// A call of a function, or the construction of an object.
  struct Call {
    std::shared_ptr<HostScope> scope;  ///< the caller's scope
    std::vector<TokenRange> template_args;
    std::vector<TokenRange> arguments;
    TokenRange object;  ///< whose member is called; empty for the caller's own object
    std::string made;   ///< the type that a constructor makes, e.g. "Buffer<float>"
  };
  std::optional<Call> CallAt(size_t name) const;
  std::optional<Call> MakingAt(size_t type) const;
  std::optional<Buffer> AllocatedBy(size_t name, const std::string& parameter);
  std::optional<Buffer> AllocatedFor(const std::string& name);
  std::optional<std::string> StaticMember(const std::string& type, std::string_view member,
                                          int depth);
  std::optional<Call> CallWith(size_t template_args, size_t arguments) const;
  std::optional<std::pair<std::shared_ptr<HostScope>, TokenRange>> InCaller(
      const std::string& name) const;
  HostScope Inside(size_t function, Call call) const;

  // Objects of classes: host_objects.cpp.
  using Path = std::vector<std::string>;  ///< {"a", "b"} of object.a.b
  struct Found;
  struct Declared {
    std::string type;
    TokenRange made_of;  ///< the arguments of its construction; may be empty
  };
  std::shared_ptr<HostScope> Self() const;
  std::optional<Found> MemberOf(TokenRange object, const Path& path, int depth) const;
  std::optional<Found> Returned(TokenRange object, size_t open, const Path& path, int depth) const;
  std::optional<Found> ReturnedBy(size_t function, Call call, const Path& path, int depth) const;
  std::optional<Found> CountOfContainer(TokenRange object, int depth) const;
  std::optional<Found> Named(const Path& path, int depth) const;
  std::optional<Found> Written(const Path& path, int depth, bool of_object = false) const;
  std::optional<Found> WrittenByCalls(const std::string& object, const Path& rest, int depth) const;
  std::optional<Found> OfFile(const Path& path, int depth) const;
  std::optional<Found> OfThis(const Path& path, int depth) const;
  std::optional<Found> Initialised(const Path& path, int depth) const;
  std::optional<Found> OfField(const ClassField& field, TokenRange value, const Path& rest,
                               int depth) const;
  std::optional<Found> Made(const std::string& type, TokenRange made_of, const Path& path,
                            int depth) const;
  std::optional<Found> ElementOf(TokenRange list, const ClassDefinition* of, const Path& path,
                                 int depth) const;
  std::optional<Found> ReturnedHere() const;
  std::vector<size_t> Callees(size_t name, TokenRange object, size_t arguments) const;
  std::string TypeOfClass(const std::string& name) const;
  std::string WithConstants(const std::string& type) const;
  TokenRange ValueOfMember(size_t name) const;
  const ClassField* FieldOfThis(std::string_view name) const;
  std::string ClassWith(std::string_view field) const;
  bool IsConstantOfThis(std::string_view name) const;
  const ClassDefinition* ClassIn(TokenRange range) const;
  std::string ClassOf(TokenRange object, int depth) const;
  std::string TypeOfObject(TokenRange object, int depth) const;
  std::string TypeNamedIn(TokenRange range) const;
  std::string TypeMade(TokenRange value) const;
  bool IsFunction(std::string_view name) const;
  bool IsParameter(std::string_view name) const;
  bool IsRealParameter(std::string_view name) const;
  bool IsRealConstant(const std::string& name) const;
  bool IsRealType(const std::string& name) const;
  bool IsReal(const std::string& name, const std::string& value) const;
  std::string DeclaredClass(size_t name) const;

  // Tensors of PyTorch: host_tensors.cpp.
  bool IsTensor(const std::string& name) const;
  std::vector<std::string> TensorsIn(TokenRange range) const;
  std::optional<TokenRange> MadeOfExtents(TokenRange value) const;
  Result<std::string> ElementsOfTensor(const std::string& name, int depth);
  Result<std::string> ElementsBySizes(const std::string& name);
  Result<std::string> ProductOf(const std::vector<TokenRange>& extents);

  void CollectObject(size_t name, size_t end);
  void CollectBound(size_t bracket, size_t end);
  std::optional<TokenRange> RangeOf(const Tokens& tokens, size_t begin, size_t end) const;
  Result<std::string> ValueFound(const Found& found, const std::string& name, int depth);
  Result<std::string> MemberValue(const Tokens& tokens, size_t begin, size_t end, int depth);
  std::string KeptAsLeaf(const std::string& name, int64_t value, bool of_file);

  const CudaSyntax& syntax_;
  size_t function_;
  size_t position_;
  Dims stated_;
  int level_ = 0;
  /// The call through which this scope was entered, if it is known
  std::optional<Call> pin_;
  /// Earlier definitions of a name than the one in definitions_
  std::map<std::string, std::vector<TokenRange>, std::less<>> redefined_;
  /// The defining expression, by "n" or "config.n"
  std::map<std::string, TokenRange, std::less<>> definitions_;
  /// The text between the braces of an initialiser list, by array
  std::map<std::string, TokenRange, std::less<>> lists_;
  /// Variables whose type is a class of the source
  std::map<std::string, Declared, std::less<>> objects_;
  /// Structured bindings, auto [a, b] = …: the value and the index of the name
  std::map<std::string, std::pair<TokenRange, size_t>, std::less<>> bound_;
  /// Bytes of an allocation, or of one row if it is pitched
  std::map<std::string, TokenRange, std::less<>> allocations_;
  /// Number of rows of a pitched allocation
  std::map<std::string, TokenRange, std::less<>> pitched_;
  /// Bytes of a row, by the variable that holds the pitch
  std::map<std::string, TokenRange, std::less<>> pitches_;
  std::set<std::string, std::less<>> zeroed_;                  ///< buffers filled with 0
  std::map<std::string, TokenRange, std::less<>> containers_;  ///< number of elements
  /// Declared types of variables, pointers and containers
  std::map<std::string, std::string, std::less<>> types_;
  std::shared_ptr<std::map<std::string, Leaf, std::less<>>> leaves_;
  std::shared_ptr<std::string> unknown_;
  std::shared_ptr<std::deque<std::string>> texts_;  ///< keeps the texts of lexed constants alive
  /// Limit of nested scopes, so that functions that call each other end too
  std::shared_ptr<int> scopes_left_;
};

}  // namespace atunner
