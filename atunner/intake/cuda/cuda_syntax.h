// Finds the declarations of a CUDA source that matter for tuning: kernels, launches, constants,
// and host functions. The parser is tolerant: it skips whatever it does not understand.
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
  bool table = false;     ///< pointer to pointers
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
  TokenRange head;  ///< from `template` or `__global__` to the body
  TokenRange body;  ///< between the braces
  int line = 0;
};

struct KernelLaunch {
  std::string kernel;                     ///< as written, without template arguments: "ns::reduce"
  std::vector<TokenRange> template_args;  ///< 128 and float of "k<128, float>"
  std::vector<TokenRange> configuration;  ///< between <<< and >>>
  std::vector<TokenRange> arguments;
  std::array<TokenRange, 3> cluster;  ///< an empty range means 1
  bool cooperative = false;
  size_t function = SIZE_MAX;  ///< index of the enclosing host function
  size_t token = 0;            ///< the kernel's name, or the call that launches it
  int line = 0;
};

/// A named constant at file level: a macro without parameters, a constexpr or const variable, or an
/// enumerator. `length` is 0 for an enumerator without a written value.
struct FileConstant {
  enum class Kind : uint8_t { kMacro, kVariable, kEnumerator };
  std::string name;
  Kind kind = Kind::kMacro;
  std::string value;  ///< text
  size_t offset = 0;  ///< where the value begins in the source, bytes
  size_t length = 0;
  bool guarded = false;  ///< inside #ifndef X: the user may set it by -DX=…
  int line = 0;
};

struct HostFunction {
  std::string name;
  std::vector<TemplateParameter> templates;
  TokenRange parameters;
  TokenRange body;
  TokenRange whole;        ///< from its first declaration token to the closing brace
  std::string of_class;    ///< the class of a member function, else empty
  bool on_device = false;  ///< also a device function, so that DeviceText keeps it
};

/// A variable at file level that is not constant.
struct FileVariable {
  std::string name;
  TokenRange type;
  TokenRange value;  ///< the initialiser, after = or in braces; may be empty
};

struct NamespaceBody {
  TokenRange range;
  std::string path;        ///< "hist::detail::"
  bool anonymous = false;  ///< it or a namespace around it has no name
};

struct CudaSyntax {
  std::string_view source;
  LexedSource lexed;
  std::vector<KernelDefinition> kernels;
  std::vector<KernelLaunch> launches;
  std::vector<FileConstant> constants;
  std::vector<HostFunction> functions;
  std::vector<FileVariable> variables;
  /// Type names by typedef and using: "real" -> "float"
  std::map<std::string, std::string, std::less<>> aliases;
  /// Full names of types in namespaces: "index_t" -> "hist::index_t"
  std::map<std::string, std::string, std::less<>> qualified;
  std::vector<NamespaceBody> namespaces;  ///< outer ones first
  std::vector<TokenRange> host_only;      ///< top-level declarations that NVRTC cannot compile

  /// Token i, or an empty token past the end, where unclosed brackets end.
  const Token& token(size_t i) const {
    static const Token kNone;
    return i < lexed.tokens.size() ? lexed.tokens[i] : kNone;
  }
  /// Source text of a range, from its first token's start to its last one's end.
  std::string_view Text(TokenRange range) const;
  const FileConstant* FindConstant(std::string_view name) const;
  const FileVariable* FindVariable(std::string_view name) const;
  /// The innermost namespace around a token; nullptr if there is none.
  const NamespaceBody* NamespaceAt(size_t token) const;
  /// The alias of that name, without namespaces; aliases.end() if the source does not define it.
  std::map<std::string, std::string, std::less<>>::const_iterator FindAlias(
      std::string_view type) const;
};

/// True if the launch names the kernel.
bool IsLaunchOf(const KernelLaunch& launch, const KernelDefinition& kernel);

CudaSyntax ParseCuda(std::string_view source);

/// The source with all host-only declarations replaced by blanks; #include lines stay. Line numbers
/// and byte offsets do not change.
std::string DeviceText(const CudaSyntax& syntax);

/// DeviceText of a whole program, i.e. a source with a main or a launch. Any other source is
/// returned unchanged: its functions may be device functions, which is how the compiler treats
/// them.
std::string CompilableText(const CudaSyntax& syntax);

/// Splits a range at commas outside of (), [], {} and, with `angles`, <>.
std::vector<TokenRange> SplitArguments(const CudaSyntax& syntax, TokenRange range, bool angles);
/// Parses the text between the angle brackets after `template`.
std::vector<TemplateParameter> ParseTemplateParameters(const CudaSyntax& syntax, TokenRange range);
/// The initialiser list of a constructor whose parameters close at `close`, up to the body's brace;
/// empty if there is none.
TokenRange InitialisersBehind(const CudaSyntax& syntax, size_t close);
/// The token that closes the bracket at `open` ("(", "[", "{" or "<"); the number of tokens if none
/// does.
size_t MatchingClose(const CudaSyntax& syntax, size_t open);

}  // namespace atunner
