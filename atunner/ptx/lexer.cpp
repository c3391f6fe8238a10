#include "atunner/ptx/lexer.h"

#include <algorithm>
#include <cctype>

namespace atunner::ptx {
namespace {

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' ||
         c == ':';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (Skip()) {
      const size_t start = at_;
      ATUNNER_RETURN_IF_ERROR(ReadToken());
      tokens.push_back({text_.substr(start, at_ - start), line_});
    }
    return tokens;
  }

 private:
  /// Moves behind the token that begins here.
  Status ReadToken() {
    const char c = text_[at_];
    if (c == '"') return ReadString();
    if (std::isdigit(static_cast<unsigned char>(c)) || (c == '.' && DigitAt(at_ + 1))) {
      ReadNumber();
    } else if (IsWordStart(c)) {
      ReadWord();
    } else if (std::string_view("{}()[]<>,;:+-|!@=*&~^/%?").find(c) != std::string_view::npos) {
      ++at_;
    } else {
      return Invalid(std::string("unexpected character '") + c + "'",
                     "PTX line " + std::to_string(line_));
    }
    return {};
  }

  Status ReadString() {
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos)
      return Invalid("string without end", "PTX line " + std::to_string(line_));
    at_ = end + 1;
    return {};
  }

  void ReadNumber() {
    const std::string_view prefix = text_.substr(at_, 2);
    const bool hexadecimal = prefix == "0x" || prefix == "0X";
    const auto is_exponent_sign = [&](size_t at) {
      return !hexadecimal && (text_[at] == '+' || text_[at] == '-') &&
             (text_[at - 1] == 'e' || text_[at - 1] == 'E');
    };
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '.' || is_exponent_sign(at_)))
      ++at_;
  }

  /// A single ':' ends a label; '::' is part of a modifier (".shared::cta").
  void ReadWord() {
    const size_t directive = DirectivePrefix(at_);
    ++at_;
    while (at_ < text_.size() && IsWord(text_[at_]) && at_ != directive) {
      if (text_[at_] == ':') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != ':') break;
        ++at_;
      }
      ++at_;
    }
  }

  bool Skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = std::min(text_.find("*/", at_), text_.size());
        line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<long>(at_),
                                                  text_.begin() + static_cast<long>(end), '\n'));
        at_ = std::min(end + 2, text_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  bool DigitAt(size_t at) const {
    return at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at]));
  }

  /// Hand-written assembly contains ".reg.b32": the end of the directive's name, or npos.
  size_t DirectivePrefix(size_t start) const {
    for (std::string_view name :
         {".reg.", ".shared.", ".local.", ".param.", ".const.", ".global.", ".v2.", ".v4."}) {
      if (text_.substr(start).starts_with(name)) return start + name.size() - 1;
    }
    return std::string_view::npos;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

Result<std::vector<Token>> Tokens(std::string_view text) { return Lexer(text).Run(); }

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

std::vector<std::string> SplitDots(std::string_view word) {
  std::vector<std::string> parts;
  while (!word.empty()) {
    const size_t dot = word.find('.', 1);
    std::string_view part = word.substr(0, dot);
    if (part.starts_with('.')) part.remove_prefix(1);
    parts.emplace_back(part);
    if (dot == std::string_view::npos) break;
    word.remove_prefix(dot);
  }
  return parts;
}

}  // namespace atunner::ptx
