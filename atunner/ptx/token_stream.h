// The tokens of a module with a position: what all parts of the parser read from.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/ptx/lexer.h"

namespace atunner::ptx {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  bool End() const { return at_ >= tokens_.size(); }
  /// The token `ahead` of the current one; "" behind the end.
  std::string_view Peek(size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string_view{};
  }
  /// Consumes the current token; "" at the end.
  std::string_view Next() { return End() ? std::string_view{} : tokens_[at_++].text; }
  void Skip(size_t count) { at_ = std::min(at_ + count, tokens_.size()); }
  /// Skips to the token behind the next `text`.
  void SkipPast(std::string_view text) {
    while (!End() && Next() != text) {
    }
  }
  /// Consumes the current token if it is `text`.
  bool Accept(std::string_view text) {
    if (Peek() != text) return false;
    ++at_;
    return true;
  }
  /// Line of the current token; at the end, of the last token.
  uint32_t Line() const {
    return tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line;
  }
  /// An error at the current line.
  std::unexpected<Error> Bad(std::string what) const { return BadAt(Line(), std::move(what)); }
  static std::unexpected<Error> BadAt(uint32_t line, std::string what) {
    return Invalid(std::move(what), "PTX line " + std::to_string(line));
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace atunner::ptx
