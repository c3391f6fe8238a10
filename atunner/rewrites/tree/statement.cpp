#include "atunner/rewrites/tree/statement.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

bool Opens(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
bool Closes(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

/// Words that begin no declaration although a word follows them.
bool IsKeyword(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kWords = {"return", "goto", "delete",  "new",
                                                              "throw",  "else", "case",    "sizeof",
                                                              "using",  "asm",  "typedef", "not"};
  return std::ranges::find(kWords, word) != kWords.end();
}

class Parser {
 public:
  Parser(const CudaSyntax& syntax, TokenRange range)
      : syntax_(syntax), at_(range.begin), end_(range.end) {}

  std::vector<Statement> All() {
    std::vector<Statement> statements;
    while (at_ < end_) {
      if (Here().Is(";"))
        ++at_;  // an empty statement
      else
        statements.push_back(One());
    }
    return statements;
  }

 private:
  const Token& Here() const { return syntax_.token(at_); }
  /// One past the bracket that closes the one here.
  size_t PastBracket(size_t open) const { return std::min(end_, MatchingClose(syntax_, open) + 1); }

  Statement One() {
    const size_t begin = at_;
    Statement statement = Parse();
    at_ = std::max(at_, begin + 1);  // always goes on
    statement.range = {begin, std::min(at_, end_)};
    return statement;
  }

  Statement Parse() {
    const Token& first = Here();
    if (first.kind == Token::Kind::kDirective) return ++at_, Leaf(Kind::kDirective);
    if (first.Is("{")) return Block();
    if (first.Is("for")) return For();
    if (first.Is("while") || first.Is("if")) return Conditional();
    if (first.Is("do")) return Do();
    const Kind kind = first.Is("return") ? Kind::kReturn
                      : IsDeclaration()  ? Kind::kDeclaration
                                         : Kind::kExpression;
    SkipToSemicolon();
    return Leaf(kind);
  }

  static Statement Leaf(Kind kind) {
    Statement statement;
    statement.kind = kind;
    return statement;
  }

  Statement Block() {
    Statement statement = Leaf(Kind::kBlock);
    const size_t past = PastBracket(at_);
    statement.children = Parser(syntax_, {at_ + 1, past - 1}).All();
    at_ = past;
    return statement;
  }

  /// The tokens between the parentheses here; stands behind them afterwards.
  TokenRange Parenthesised() {
    if (at_ < end_ && Here().Is("constexpr")) ++at_;
    if (at_ >= end_ || !Here().Is("(")) return {};
    const size_t past = PastBracket(at_);
    const TokenRange inside{at_ + 1, past - 1};
    at_ = past;
    return inside;
  }

  void Child(Statement& of) {
    if (at_ < end_ && !Here().Is(";"))
      of.children.push_back(One());
    else
      ++at_;
  }

  Statement For() {
    Statement statement = Leaf(Kind::kFor);
    ++at_;
    const TokenRange head = Parenthesised();
    statement.init = UpTo(syntax_, head, ";");
    const size_t second = std::min(statement.init.end + 1, head.end);
    statement.condition = UpTo(syntax_, {second, head.end}, ";");
    statement.step = {std::min(statement.condition.end + 1, head.end), head.end};
    Child(statement);
    return statement;
  }

  Statement Conditional() {
    Statement statement = Leaf(Here().Is("if") ? Kind::kIf : Kind::kWhile);
    ++at_;
    statement.condition = Parenthesised();
    Child(statement);
    if (statement.kind == Kind::kIf && at_ < end_ && Here().Is("else")) {
      ++at_;
      Child(statement);
    }
    return statement;
  }

  Statement Do() {
    Statement statement = Leaf(Kind::kWhile);
    ++at_;
    Child(statement);
    if (at_ < end_ && Here().Is("while")) ++at_;
    statement.condition = Parenthesised();
    SkipToSemicolon();
    return statement;
  }

  void SkipToSemicolon() { at_ = std::min(end_, UpTo(syntax_, {at_, end_}, ";").end + 1); }

  /// `float x`, `const int* p`, `__shared__ float t[32]`, `unsigned n`.
  bool IsDeclaration() const {
    if (Here().kind != Token::Kind::kWord || IsKeyword(Here().text)) return false;
    size_t i = at_ + 1;
    if (syntax_.token(i).Is("<")) i = std::min(end_, MatchingClose(syntax_, i) + 1);
    while (i < end_ &&
           (syntax_.token(i).Is("*") || syntax_.token(i).Is("&") || syntax_.token(i).Is("::")))
      ++i;
    if (i >= end_ || syntax_.token(i).kind != Token::Kind::kWord) return false;
    const Token& next = syntax_.token(i + 1);
    // `a * b;` would be a declaration; as a statement of its own it has no effect
    return next.kind == Token::Kind::kWord || next.Is("=") || next.Is(";") || next.Is(",") ||
           next.Is("[") || next.Is("(") || next.Is("{") || next.Is("*") || next.Is("<") ||
           next.Is("::");
  }

  const CudaSyntax& syntax_;
  size_t at_;
  size_t end_;
};

}  // namespace

std::vector<Statement> ParseStatements(const CudaSyntax& syntax, TokenRange body) {
  return Parser(syntax, body).All();
}

void Walk(const std::vector<Statement>& statements,
          const std::function<void(const Statement&)>& visit) {
  for (const Statement& statement : statements) {
    visit(statement);
    Walk(statement.children, visit);
  }
}

bool Mentions(const CudaSyntax& syntax, TokenRange range, std::string_view name) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    if (token.kind != Token::Kind::kWord || token.text != name) continue;
    const bool member = i > 0 && (syntax.token(i - 1).Is(".") || syntax.token(i - 1).Is("->"));
    if (!member) return true;
  }
  return false;
}

std::string Joined(const CudaSyntax& syntax, TokenRange range) {
  std::string text;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!text.empty()) text += ' ';
    text += syntax.token(i).text;
  }
  return text;
}

TokenRange UpTo(const CudaSyntax& syntax, TokenRange range, std::string_view symbol) {
  int depth = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    if (depth == 0 && token.Is(symbol)) return {range.begin, i};
    if (Opens(token)) ++depth;
    if (Closes(token)) --depth;
  }
  return range;
}

}  // namespace atunner::rewrites
