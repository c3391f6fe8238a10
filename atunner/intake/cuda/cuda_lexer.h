// Splits CUDA C++ text into tokens, in enough detail to find kernels, launches and constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atunner {

struct Token {
  enum class Kind : uint8_t { kWord, kNumber, kText, kSymbol, kDirective };
  Kind kind = Kind::kSymbol;
  /// Points into the lexed source; a directive is a whole line with its continuations
  std::string_view text;
  size_t offset = 0;  ///< bytes from the start
  int line = 1;       ///< in the original file: #line is followed

  bool Is(std::string_view symbol) const { return kind != Kind::kText && text == symbol; }
};

/// A one-line comment such as "// atunner: tune BLOCK = 64, 128".
struct Annotation {
  std::string_view text;  ///< after "atunner:", trimmed
  int line = 1;
};

struct LexedSource {
  std::vector<Token> tokens;
  std::vector<Annotation> annotations;
};

/// Never fails: a character that begins no C++ token becomes a symbol. The source must outlive the
/// result.
LexedSource Lex(std::string_view source);

}  // namespace atunner
