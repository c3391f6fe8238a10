// CUDA C++ text as tokens: enough of the language to find kernels, launches and constants in files
// as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atunner {

struct Token {
  enum class Kind : uint8_t { kWord, kNumber, kText, kSymbol, kDirective };
  Kind kind = Kind::kSymbol;
  /// Of the lexed source; a directive is its whole line, continuations included
  std::string_view text;
  size_t offset = 0;  ///< bytes from the start
  int line = 1;       ///< of the file that it was written in: #line is followed

  bool Is(std::string_view symbol) const { return kind != Kind::kText && text == symbol; }
};

/// "atunner: tune BLOCK = 64, 128" from a comment of one line.
struct Annotation {
  std::string_view text;  ///< after "atunner:", trimmed
  int line = 1;
};

struct LexedSource {
  std::vector<Token> tokens;
  std::vector<Annotation> annotations;
};

/// Never fails: what is no token of C++ becomes a symbol of one character. The source must outlive
/// the result.
LexedSource Lex(std::string_view source);

}  // namespace atunner
