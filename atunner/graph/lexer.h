// Tokens of the text form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::graph {

struct Token {
  enum class Kind { kName, kNumber, kString, kSymbol, kNewLine, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  ///< without the quotes of a string
  int line = 1;
  int column = 1;
};

/// True for letters, digits and _ that do not begin with a digit and are not a keyword.
bool IsName(std::string_view text);

/// Splits text into tokens. Comments go from # to the end of the line. Line ends inside of brackets
/// are ignored. An unknown character becomes a symbol, which the parser refuses with its position.
class Lexer {
 public:
  Lexer(std::string_view text, std::string file);

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token Take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool Is(std::string_view symbol) const {
    return peek().kind == Token::Kind::kSymbol && peek().text == symbol;
  }
  bool IsWord(std::string_view word) const {
    return peek().kind == Token::Kind::kName && peek().text == word;
  }
  /// Takes the next token if it is this symbol.
  bool Accept(std::string_view symbol);
  Status Expect(std::string_view symbol);
  Result<std::string> Name(std::string_view what);
  /// A whole number, with a sign.
  Result<int64_t> Integer();
  /// A number, with a sign; also inf and nan.
  Result<double> Number();

  /// kInvalidInput at the next token.
  std::unexpected<Error> Wrong(std::string what, std::string hint = {}) const {
    return WrongAt(peek(), std::move(what), std::move(hint));
  }
  std::unexpected<Error> WrongAt(const Token& token, std::string what, std::string hint = {}) const;
  /// "file:line:column".
  std::string LocationOf(const Token& token) const;
  /// "found 'x'", where x is the next token.
  std::string Found() const;

 private:
  void Scan(std::string_view text);
  std::string file_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace atunner::graph
