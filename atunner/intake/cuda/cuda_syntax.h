// What a CUDA source declares that tuning cares about: kernels, launches, constants, host
// functions. A tolerant grammar over tokens: it copes with files as they are and reports only what
// it understood.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/intake/cuda/cuda_lexer.h"

namespace atunner {

/// Half-open range of tokens.
struct TokenRange {
  size_t begin = 0;
  size_t end = 0;
  bool empty() const { return begin >= end; }
};

struct KernelParameter {
  std::string type;  ///< without qualifiers: "float", "unsigned int", "T"
  std::string name;
  bool pointer = false;
  bool is_const = false;  ///< pointer to const
};

struct TemplateParameter {
  std::string type;  ///< "int", "typename"
  std::string name;
  std::string fallback;  ///< default argument; may be empty
};

struct KernelDefinition {
  std::string name;       ///< "reduce"
  std::string qualified;  ///< "ns::reduce": what a name expression needs
  std::vector<TemplateParameter> templates;
  std::vector<KernelParameter> parameters;
  TokenRange head;  ///< from template or __global__ to the body
  TokenRange body;  ///< between the braces
  int line = 0;
};

struct KernelLaunch {
  std::string kernel;                     ///< as written, without template arguments: "ns::reduce"
  std::vector<TokenRange> template_args;  ///< of "k<128, float>"
  std::vector<TokenRange> configuration;  ///< between <<< and >>>
  /// A cudaLaunchConfig_t, where what it holds stands elsewhere
  TokenRange configured_by;
  std::vector<TokenRange> arguments;
  std::array<TokenRange, 3> cluster;  ///< empty ones are 1
  bool cooperative = false;
  size_t function = SIZE_MAX;  ///< index of the enclosing host function
  size_t token = 0;            ///< of the kernel's name, or of the call that launches it
  int line = 0;
};

/// A named constant of the whole file: macro without parameters, constexpr, const, enumerator (its
/// value is written nowhere where it only follows the one before).
struct FileConstant {
  enum class Kind : uint8_t { kMacro, kVariable, kEnumerator };
  std::string name;
  Kind kind = Kind::kMacro;
  std::string value;  ///< text
  size_t offset = 0;  ///< of the value in the source
  size_t length = 0;
  bool guarded = false;  ///< #ifndef X around #define X
  int line = 0;
};

struct HostFunction {
  std::string name;
  std::vector<TemplateParameter> templates;
  TokenRange parameters;
  TokenRange body;
  TokenRange whole;      ///< from its first declaration token to the closing brace
  std::string of_class;  ///< the class that it is a member of; empty for a function of its own
  bool constructor = false;
  TokenRange initialisers;  ///< of a constructor: what stands between the colon and the body
  bool on_device = false;   ///< may be called there as well: it stays in the device's text
  /// The first token of the declaration that it stands in: of the class, where that has it
  size_t outermost = 0;
};

/// A data member of a class.
struct ClassField {
  std::string name;
  TokenRange type;
  TokenRange value;  ///< behind = or between the braces; may be empty
};

struct ClassDefinition {
  std::string name;
  std::string base;  ///< the first; may be empty
  std::vector<TemplateParameter> templates;
  std::vector<ClassField> fields;
  std::map<std::string, std::string, std::less<>> aliases;  ///< using Policy = Tile<16, 8>;

  const ClassField* FindField(std::string_view field) const;
};

struct NamespaceBody {
  TokenRange range;
  std::string path;        ///< "hist::detail::"
  bool anonymous = false;  ///< or in one that is
};

struct CudaSyntax {
  std::string_view source;
  LexedSource lexed;
  std::vector<KernelDefinition> kernels;
  std::vector<KernelLaunch> launches;
  std::vector<FileConstant> constants;
  std::vector<HostFunction> functions;
  std::vector<ClassDefinition> classes;
  /// Of the file, that the host may change
  std::vector<ClassField> variables;
  /// Typedef and using: "real" -> "float"
  std::map<std::string, std::string, std::less<>> aliases;
  /// Types in namespaces: "index_t" -> "hist::index_t"
  std::map<std::string, std::string, std::less<>> qualified;
  std::vector<NamespaceBody> namespaces;  ///< from the outside in
  std::vector<TokenRange> host_only;  ///< top-level declarations that a device compiler cannot take

  /// Behind the last one an empty one: brackets that nothing closes end there.
  const Token& token(size_t i) const {
    static const Token kNone;
    return i < lexed.tokens.size() ? lexed.tokens[i] : kNone;
  }
  /// Source text of a range, from its first token's start to its last one's end.
  std::string_view Text(TokenRange range) const;
  const FileConstant* FindConstant(std::string_view name) const;
  const ClassField* FindVariable(std::string_view name) const;
  /// The innermost around a token; null outside of all.
  const NamespaceBody* NamespaceAt(size_t token) const;
  /// By name, without namespaces; the end where the source does not define it.
  std::map<std::string, std::string, std::less<>>::const_iterator FindAlias(
      std::string_view type) const;
  /// By name, without namespaces and template arguments; null where the source does not define it.
  const ClassDefinition* FindClass(std::string_view type) const;
  /// Of the class or of what it derives from.
  const ClassField* FindField(const ClassDefinition* of, std::string_view field) const;
  bool IsA(std::string_view type, std::string_view base) const;
};

bool IsLaunchOf(const KernelLaunch& launch, const KernelDefinition& kernel);

CudaSyntax ParseCuda(std::string_view source);

/// The source with everything blanked that only a host compiler understands: host functions, their
/// includes stay (the compiler knows them). Lines keep their numbers and every remaining byte its
/// offset.
std::string DeviceText(const CudaSyntax& syntax);

/// DeviceText of a whole program (it has a main or launches kernels); any other source as it is:
/// what its functions are meant for cannot be told, and the compiler takes them for device
/// functions.
std::string CompilableText(const CudaSyntax& syntax);

/// Pieces of a range at commas outside of (), [], {} and, with `angles`, <>.
std::vector<TokenRange> SplitArguments(const CudaSyntax& syntax, TokenRange range, bool angles);
/// Of what stands between the angles behind `template`.
std::vector<TemplateParameter> ParseTemplateParameters(const CudaSyntax& syntax, TokenRange range);
/// Where the declaration at `begin` has a list of initialisers behind its parameters, their range,
/// which the body's brace follows; else empty.
TokenRange InitialisersBehind(const CudaSyntax& syntax, size_t close);
/// The token that closes the bracket at `open` ("(", "[", "{" or "<"); the end of the tokens when
/// nothing does.
size_t MatchingClose(const CudaSyntax& syntax, size_t open);

}  // namespace atunner
