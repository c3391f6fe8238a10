#include "atunner/graph/lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace atunner::graph {
namespace {

bool Starts(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool Continues(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool Digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

size_t NameLength(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && Continues(text[n])) ++n;
  return n;
}

/// The length of a number: 12, 1.5, .5, 1e-5. In 1..4 it is the 1.
size_t NumberLength(std::string_view text) {
  size_t n = 0;
  const auto digits = [&] {
    while (n < text.size() && Digit(text[n])) ++n;
  };
  digits();
  if (n < text.size() && text[n] == '.' && text.substr(n, 2) != "..") {
    ++n;
    digits();
  }
  if (n < text.size() && (text[n] == 'e' || text[n] == 'E')) {
    size_t exponent = n + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (exponent < text.size() && Digit(text[exponent])) {
      n = exponent;
      digits();
    }
  }
  return n;
}

constexpr std::string_view kLongSymbols[] = {"**", "<=", ">=", "==", "!=", "<<", ">>", "..", "->"};

size_t SymbolLength(std::string_view text) {
  return std::ranges::find(kLongSymbols, text.substr(0, 2)) != std::end(kLongSymbols) ? 2 : 1;
}

}  // namespace

bool IsName(std::string_view text) {
  static constexpr std::string_view kReserved[] = {"graph", "dim", "input", "output", "let",
                                                   "in",    "inf", "nan",   "true",   "false"};
  return !text.empty() && Starts(text[0]) && NameLength(text) == text.size() &&
         std::ranges::find(kReserved, text) == std::end(kReserved);
}

Lexer::Lexer(std::string_view text, std::string file) : file_(std::move(file)) { Scan(text); }

void Lexer::Scan(std::string_view text) {
  int line = 1;
  size_t line_start = 0;
  int depth = 0;
  size_t at = 0;
  const auto push = [&](Token::Kind kind, size_t length, size_t quotes = 0) {
    tokens_.push_back({kind, text.substr(at + quotes, length - 2 * quotes), line,
                       static_cast<int>(at - line_start) + 1});
    at += length;
  };
  while (at < text.size()) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    if (c == '\n') {
      if (depth == 0)
        push(Token::Kind::kNewLine, 1);
      else
        ++at;
      ++line;
      line_start = at;
    } else if (c == '#') {
      at += std::min(rest.find('\n'), rest.size());
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (Starts(c)) {
      push(Token::Kind::kName, NameLength(rest));
    } else if (Digit(c) || (c == '.' && rest.size() > 1 && Digit(rest[1]))) {
      push(Token::Kind::kNumber, NumberLength(rest));
    } else if (c == '"' && rest.substr(0, rest.find('\n')).find('"', 1) != std::string_view::npos) {
      push(Token::Kind::kString, rest.find('"', 1) + 1, 1);
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      push(Token::Kind::kSymbol, SymbolLength(rest));
    }
  }
  tokens_.push_back({Token::Kind::kNewLine, {}, line, static_cast<int>(at - line_start) + 1});
  tokens_.push_back({Token::Kind::kEnd, {}, line, static_cast<int>(at - line_start) + 1});
}

bool Lexer::Accept(std::string_view symbol) {
  if (!Is(symbol)) return false;
  Take();
  return true;
}

Status Lexer::Expect(std::string_view symbol) {
  if (Accept(symbol)) return {};
  return Wrong("expected '" + std::string(symbol) + "', " + Found());
}

Result<std::string> Lexer::Name(std::string_view what) {
  if (peek().kind != Token::Kind::kName)
    return Wrong("expected " + std::string(what) + ", " + Found());
  return std::string(Take().text);
}

Result<int64_t> Lexer::Integer() {
  const bool negative = Accept("-");
  const Token& token = peek();
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(token.text.data(),
                                              token.text.data() + token.text.size(), value);
  const uint64_t largest = (uint64_t{1} << 63) - (negative ? 0 : 1);
  if (token.kind != Token::Kind::kNumber || failure != std::errc{} ||
      end != token.text.data() + token.text.size() || value > largest)
    return Wrong("expected a whole number, " + Found());
  Take();
  return static_cast<int64_t>(negative ? 0 - value : value);
}

Result<double> Lexer::Number() {
  const bool negative = Accept("-");
  double value = 0;
  if (IsWord("inf") || IsWord("nan")) {
    value = peek().text == "inf" ? INFINITY : NAN;
  } else {
    const Token& token = peek();
    const auto [end, failure] = std::from_chars(token.text.data(),
                                                token.text.data() + token.text.size(), value);
    const bool whole = end == token.text.data() + token.text.size() && failure == std::errc{};
    if (token.kind != Token::Kind::kNumber || !whole)
      return Wrong("expected a number that float64 can hold, " + Found());
  }
  Take();
  return negative ? -value : value;
}

std::string Lexer::LocationOf(const Token& token) const {
  return (file_.empty() ? "" : file_ + ":") + std::to_string(token.line) + ":" +
         std::to_string(token.column);
}

std::unexpected<Error> Lexer::WrongAt(const Token& token, std::string what,
                                      std::string hint) const {
  return Invalid(std::move(what), LocationOf(token), std::move(hint));
}

std::string Lexer::Found() const {
  if (peek().kind == Token::Kind::kEnd) return "found the end";
  if (peek().kind == Token::Kind::kNewLine) return "found the end of the line";
  return "found '" + std::string(peek().text) + "'";
}

}  // namespace atunner::graph
