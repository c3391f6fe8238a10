#include "atunner/rewrites/source/loop_uses.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

bool IsAssigning(const Token& token) {
  static constexpr std::array<std::string_view, 11> kOps = {
      "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"};
  return token.kind == Token::Kind::kSymbol && std::ranges::find(kOps, token.text) != kOps.end();
}

/// The first assigning operator outside of brackets; the range's end if there is none.
size_t OperatorIn(const CudaSyntax& syntax, TokenRange range) {
  int depth = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    if (depth == 0 && IsAssigning(token)) return i;
    if (token.Is("(") || token.Is("[") || token.Is("{")) ++depth;
    if (token.Is(")") || token.Is("]") || token.Is("}")) --depth;
  }
  return range.end;
}

bool IsUnitStep(const Subject& subject, TokenRange step, const std::string& name) {
  const std::string text = Joined(subject.syntax(), step);
  return text == "++ " + name || text == name + " ++" || text == name + " += 1";
}

TokenRange Target(const Statement& statement) {
  return {statement.range.begin, statement.range.end - 1};
}

}  // namespace

std::vector<std::string> DeclaredIn(const CudaSyntax& syntax, TokenRange range) {
  std::vector<std::string> names;
  int depth = 0;
  for (size_t i = range.begin; i + 1 < range.end; ++i) {
    const Token& token = syntax.token(i);
    const Token& next = syntax.token(i + 1);
    const bool ends = next.Is("=") || next.Is(";") || next.Is(",") || next.Is("[") ||
                      next.Is("(") || next.Is("{");
    const bool behind = i > range.begin && !syntax.token(i - 1).Is("=");
    if (depth == 0 && behind && token.kind == Token::Kind::kWord && ends) {
      names.emplace_back(token.text);
      i = UpTo(syntax, {i + 1, range.end}, ",").end;
      continue;
    }
    if (token.Is("(") || token.Is("[") || token.Is("{")) ++depth;
    if (token.Is(")") || token.Is("]") || token.Is("}")) --depth;
  }
  return names;
}

std::optional<CountedLoop> AsCountedLoop(const Subject& subject, const Statement& statement) {
  if (statement.kind != Kind::kFor || statement.children.size() != 1) return std::nullopt;
  const CudaSyntax& syntax = subject.syntax();
  const size_t equals = OperatorIn(syntax, statement.init);
  if (equals == statement.init.end || equals == statement.init.begin ||
      !syntax.token(equals).Is("="))
    return std::nullopt;
  CountedLoop loop;
  loop.loop = &statement;
  loop.variable = syntax.token(equals - 1).text;
  loop.begin = {equals + 1, statement.init.end};
  loop.step = statement.step;
  const TokenRange& condition = statement.condition;
  const bool compares = condition.end - condition.begin >= 3 &&
                        syntax.token(condition.begin).text == loop.variable &&
                        (syntax.token(condition.begin + 1).Is("<") ||
                         syntax.token(condition.begin + 1).Is("<="));
  if (!compares || !IsUnitStep(subject, statement.step, loop.variable)) return std::nullopt;
  if (subject.Mentions(loop.begin, loop.variable)) return std::nullopt;
  loop.end = {condition.begin + 2, condition.end};
  return loop;
}

std::optional<Assignment> AsAssignment(const Subject& subject, const Statement& statement) {
  if (statement.kind != Kind::kExpression) return std::nullopt;
  const CudaSyntax& syntax = subject.syntax();
  const TokenRange all = Target(statement);
  const size_t op = OperatorIn(syntax, all);
  if (op == all.end) return std::nullopt;
  Assignment assignment;
  assignment.op = syntax.token(op).text;
  assignment.statement = &statement;
  assignment.value = {op + 1, all.end};
  TokenRange left{all.begin, op};
  if (left.empty()) left = std::exchange(assignment.value, TokenRange{});  // ++x
  if (left.empty() || syntax.token(left.begin).kind != Token::Kind::kWord) return std::nullopt;
  assignment.target = syntax.token(left.begin).text;
  if (left.end == left.begin + 1) return assignment;
  const bool element = syntax.token(left.begin + 1).Is("[") &&
                       MatchingClose(syntax, left.begin + 1) == left.end - 1;
  if (!element) return std::nullopt;
  assignment.subscript = {left.begin + 2, left.end - 1};
  return assignment;
}

bool LoopUses::Varies(const Subject& subject, TokenRange range) const {
  const auto mentioned = [&](const std::string& name) { return subject.Mentions(range, name); };
  return std::ranges::any_of(locals, mentioned) ||
         std::ranges::any_of(assignments, mentioned, &Assignment::target);
}

LoopUses UsesOf(const Subject& subject, const CountedLoop& loop) {
  LoopUses uses;
  uses.locals.insert(loop.variable);
  const auto obstacle = [&](const Statement& statement) {
    if (uses.obstacle.empty()) uses.obstacle = subject.Text(statement.range);
  };
  Walk(loop.loop->children, [&](const Statement& statement) {
    switch (statement.kind) {
      case Kind::kDeclaration:
        for (std::string& name : DeclaredIn(subject.syntax(), statement.range))
          uses.locals.insert(std::move(name));
        break;
      case Kind::kFor:
        for (std::string& name :
             DeclaredIn(subject.syntax(), {statement.init.begin, statement.init.end + 1}))
          uses.locals.insert(std::move(name));
        break;
      case Kind::kExpression:
        if (auto assignment = AsAssignment(subject, statement))
          uses.assignments.push_back(*std::move(assignment));
        else
          obstacle(statement);
        break;
      case Kind::kReturn:
      case Kind::kWhile:
        obstacle(statement);
        break;
      default:
        break;
    }
  });
  return uses;
}

std::vector<ElementRead> ReadsIn(const Subject& subject, TokenRange range) {
  const CudaSyntax& syntax = subject.syntax();
  std::vector<ElementRead> reads;
  for (size_t i = range.begin; i + 1 < range.end; ++i) {
    if (syntax.token(i).kind != Token::Kind::kWord || !syntax.token(i + 1).Is("[")) continue;
    const size_t close = MatchingClose(syntax, i + 1);
    if (close >= range.end) break;
    reads.push_back({std::string(syntax.token(i).text), {i, close + 1}, {i + 2, close}});
  }
  return reads;
}

bool IsZero(std::string_view number) {
  return !number.empty() && number.find_first_not_of("0.fFuUlL") == std::string_view::npos;
}

bool StartsAtZero(const Subject& subject, const std::vector<Statement>& before, size_t count,
                  const std::string& name) {
  const CudaSyntax& syntax = subject.syntax();
  for (size_t s = count; s-- > 0;) {
    const TokenRange range = before[s].range;
    if (!subject.Mentions(range, name)) continue;
    for (size_t i = range.begin; i + 3 < range.end + 1; ++i) {
      if (syntax.token(i).text != name || !syntax.token(i + 1).Is("=")) continue;
      const Token& behind = syntax.token(i + 3);
      return IsZero(syntax.token(i + 2).text) && (behind.Is(";") || behind.Is(","));
    }
    return false;
  }
  return false;
}

std::string TypeOfLocal(const Subject& subject, const std::vector<Statement>& statements,
                        const std::string& name) {
  for (const Statement& statement : statements) {
    if (statement.kind != Kind::kDeclaration) continue;
    const auto names = DeclaredIn(subject.syntax(), statement.range);
    if (std::ranges::find(names, name) == names.end()) continue;
    return std::string(subject.syntax().token(statement.range.begin).text);
  }
  return "";
}

bool IsUnitStride(const Subject& subject, TokenRange subscript, const std::string& name) {
  const CudaSyntax& syntax = subject.syntax();
  int depth = 0;
  for (size_t i = subscript.begin; i < subscript.end; ++i) {
    const Token& token = syntax.token(i);
    if (token.text == name) {
      const bool first = i == subscript.begin || syntax.token(i - 1).Is("+") ||
                         syntax.token(i - 1).Is("(");
      const bool last = i + 1 >= subscript.end || syntax.token(i + 1).Is("+") ||
                        syntax.token(i + 1).Is("-") || syntax.token(i + 1).Is(")");
      return depth == 0 && first && last;
    }
    if (token.Is("(")) ++depth;
    if (token.Is(")")) --depth;
  }
  return false;
}

}  // namespace atunner::rewrites
