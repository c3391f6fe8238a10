#include "atunner/intake/cuda/cuda_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace atunner {
namespace {

constexpr std::string_view kAnnotation = "atunner:";
constexpr std::string_view kLine = "#line ";
constexpr int kMostLines = 1 << 30;
/// Operators, longest first. `<` and `>` stay single characters; the parser distinguishes
/// templates, launches and comparisons.
constexpr std::array<std::string_view, 22> kSymbols = {
    "->*", "...", "::", "->", "++", "--", "+=", "-=", "*=", "/=", "%=",
    "&=",  "|=",  "^=", "==", "!=", "<=", ">=", "&&", "||", "##", ".*"};

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}
bool IsWord(char c) { return IsWordStart(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  LexedSource Run() {
    while (at_ < source_.size()) Step();
    return std::move(result_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void Step() {
    const char c = Peek();
    if (c == '\n') {
      Skip(1);
      fresh_line_ = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) || (c == '\\' && Peek(1) == '\n')) {
      Skip(c == '\\' ? 2 : 1);
    } else if (c == '/' && Peek(1) == '/') {
      Comment(LineEnd(at_));
    } else if (c == '/' && Peek(1) == '*') {
      const size_t close = source_.find("*/", at_ + 2);
      Comment(close == std::string_view::npos ? source_.size() : close + 2);
    } else if (c == '#' && fresh_line_) {
      Directive();
    } else {
      fresh_line_ = false;
      Plain(c);
    }
  }

  void Plain(char c) {
    if (const size_t raw = RawStringEnd(); raw != 0) return Emit(Token::Kind::kText, raw);
    if (IsWordStart(c)) {
      size_t end = at_;
      while (end < source_.size() && IsWord(source_[end])) ++end;
      return Emit(Token::Kind::kWord, end);
    }
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1)))))
      return Emit(Token::Kind::kNumber, NumberEnd());
    if (c == '"' || c == '\'') return Emit(Token::Kind::kText, TextEnd(c));
    for (std::string_view symbol : kSymbols) {
      if (source_.substr(at_).starts_with(symbol))
        return Emit(Token::Kind::kSymbol, at_ + symbol.size());
    }
    Emit(Token::Kind::kSymbol, at_ + 1);
  }

  /// End of R"tag(...)tag" if one starts here, else 0.
  size_t RawStringEnd() const {
    std::string_view rest = source_.substr(at_);
    for (std::string_view prefix : {"R\"", "LR\"", "u8R\"", "uR\"", "UR\""}) {
      if (!rest.starts_with(prefix)) continue;
      const size_t open = rest.find('(', prefix.size());
      if (open == std::string_view::npos || open - prefix.size() > 16) return 0;
      const std::string close = ")" +
                                std::string(rest.substr(prefix.size(), open - prefix.size())) +
                                "\"";
      const size_t end = rest.find(close, open);
      return end == std::string_view::npos ? source_.size() : at_ + end + close.size();
    }
    return 0;
  }

  size_t NumberEnd() const {
    size_t end = at_;
    while (end < source_.size()) {
      const char c = source_[end];
      const bool sign = (c == '+' || c == '-') && end > at_ &&
                        std::string_view("eEpP").find(source_[end - 1]) != std::string_view::npos &&
                        !(source_.substr(at_).starts_with("0x") &&
                          std::string_view("eE").find(source_[end - 1]) != std::string_view::npos);
      const bool digit_mark = c == '\'' && end + 1 < source_.size() &&
                              std::isalnum(static_cast<unsigned char>(source_[end + 1]));
      if (!IsWord(c) && c != '.' && !sign && !digit_mark) break;
      ++end;
    }
    return end;
  }

  size_t TextEnd(char quote) const {
    for (size_t i = at_ + 1; i < source_.size(); ++i) {
      if (source_[i] == '\\') {
        ++i;
      } else if (source_[i] == quote) {
        return i + 1;
      } else if (source_[i] == '\n') {
        return i;  // an apostrophe that begins no literal: the token ends with the line
      }
    }
    return source_.size();
  }

  size_t LineEnd(size_t from) const {
    const size_t end = source_.find('\n', from);
    return end == std::string_view::npos ? source_.size() : end;
  }

  void Comment(size_t end) {
    std::string_view text = source_.substr(at_ + 2, end - at_ - 2);
    if (text.ends_with("*/")) text.remove_suffix(2);
    const auto trim = [&] {
      while (!text.empty() &&
             (std::isspace(static_cast<unsigned char>(text.front())) || text.front() == '/'))
        text.remove_prefix(1);
      while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
        text.remove_suffix(1);
    };
    trim();
    if (text.starts_with(kAnnotation) && text.find('\n') == std::string_view::npos) {
      text.remove_prefix(kAnnotation.size());
      trim();
      result_.annotations.push_back({text, line_});
    }
    Skip(end - at_);
  }

  void Directive() {
    size_t end = LineEnd(at_);
    while (end < source_.size() && end > 0 &&
           (source_[end - 1] == '\\' || source_.substr(0, end).ends_with("\\\r")))
      end = LineEnd(end + 1);
    // A trailing comment may be an annotation, so that the directive ends before it.
    const size_t comment = std::min(source_.substr(at_, end - at_).find("//"),
                                    source_.substr(at_, end - at_).find("/*"));
    if (comment != std::string_view::npos) end = at_ + comment;
    const std::string_view text = source_.substr(at_, end - at_);
    Emit(Token::Kind::kDirective, end);
    fresh_line_ = false;
    if (text.starts_with(kLine)) {
      int next = 0;
      std::from_chars(text.data() + kLine.size(), text.data() + text.size(), next);
      if (next > 0 && next < kMostLines) line_ = next - 1;
    }
  }

  void Emit(Token::Kind kind, size_t end) {
    result_.tokens.push_back({kind, source_.substr(at_, end - at_), at_, line_});
    Skip(end - at_);
  }

  void Skip(size_t count) {
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, count), '\n'));
    at_ += count;
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool fresh_line_ = true;
  LexedSource result_;
};

}  // namespace

LexedSource Lex(std::string_view source) { return Lexer(source).Run(); }

}  // namespace atunner
