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
  std::string_view text;  ///< a string's without its quotes
  int line = 1;
  int column = 1;
};

/// Letters, digits and _, not beginning with a digit, and no word of the language.
bool IsName(std::string_view text);

/// Reads tokens one after the other. Comments go from # to the end of the line; line ends inside of
/// brackets are nothing. Unknown characters are symbols of their own: the parser refuses them where
/// they stand.
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
  /// Takes the symbol if it is there.
  bool Accept(std::string_view symbol);
  Status Expect(std::string_view symbol);
  Result<std::string> Name(std::string_view what);
  /// A whole number, with a sign.
  Result<int64_t> Integer();
  /// A number, with a sign; also inf and nan.
  Result<double> Number();

  /// An error that says where.
  std::unexpected<Error> Wrong(std::string what, std::string hint = {}) const {
    return WrongAt(peek(), std::move(what), std::move(hint));
  }
  std::unexpected<Error> WrongAt(const Token& token, std::string what, std::string hint = {}) const;
  std::string LocationOf(const Token& token) const;
  /// "found 'x'".
  std::string Found() const;

 private:
  void Scan(std::string_view text);
  std::string file_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace atunner::graph
