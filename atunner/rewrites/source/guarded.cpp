#include "atunner/rewrites/source/guarded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

std::string And(const std::vector<std::string>& conditions) {
  std::string text;
  for (const std::string& one : conditions) text += (text.empty() ? "" : " && ") + one;
  return text.empty() ? "true" : text;
}

/// The parts of a condition between && or ||.
std::vector<TokenRange> Parts(const CudaSyntax& syntax, TokenRange range, std::string_view symbol) {
  std::vector<TokenRange> parts;
  while (!range.empty()) {
    const TokenRange part = UpTo(syntax, range, symbol);
    parts.push_back(part);
    range.begin = part.end + 1;
  }
  return parts;
}

/// "row >= m" → "row < m"; nullopt for other comparisons.
std::optional<std::string> Negated(const Subject& subject, TokenRange part) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOpposites = {
      {{">=", "<"}, {">", "<="}, {"<", ">="}, {"<=", ">"}}};
  for (const auto& [op, opposite] : kOpposites) {
    const TokenRange left = UpTo(subject.syntax(), part, op);
    if (left.end == part.end || left.empty()) continue;
    return subject.Text(left) + " " + std::string(opposite) + " " +
           subject.Text({left.end + 1, part.end});
  }
  return std::nullopt;
}

bool ReturnsOnly(const Statement& statement) {
  if (statement.kind != Kind::kIf || statement.children.size() != 1) return false;
  const Statement& child = statement.children[0];
  return child.kind == Kind::kReturn || (child.kind == Kind::kBlock && child.children.size() == 1 &&
                                         child.children[0].kind == Kind::kReturn);
}

bool TakeReturn(const Subject& subject, const Statement& statement,
                std::vector<std::string>& conditions) {
  for (const TokenRange part : Parts(subject.syntax(), statement.condition, "||")) {
    auto inside = Negated(subject, part);
    if (!inside) return false;
    conditions.push_back(*std::move(inside));
  }
  return true;
}

bool IsIndex(const Subject& subject, const Statement& statement) {
  return std::ranges::any_of(subject.indices(), [&](const ThreadIndex& index) {
    return index.value.begin >= statement.range.begin && index.value.end <= statement.range.end;
  });
}

}  // namespace

std::optional<RowBody> AsRowBody(const Subject& subject) {
  const std::vector<Statement>& body = subject.body();
  const ThreadIndex* index = subject.IndexOn('x');
  if (index == nullptr || subject.indices().size() != 1 || body.size() < 2 ||
      !IsIndex(subject, body[0]) || subject.Mentions(body[0].range, "const"))
    return std::nullopt;
  RowBody row{subject.Text({body[0].range.begin, index->value.begin - 2}),
              index->name,
              subject.Text(index->value),
              "",
              {},
              {}};
  Guarded guard;
  if (ReturnsOnly(body[1])) {
    if (!TakeReturn(subject, body[1], guard.inside)) return std::nullopt;
    row.statements.assign(body.begin() + 2, body.end());
  } else if (body.size() == 2 && body[1].kind == Kind::kIf && body[1].children.size() == 1) {
    guard.inside.push_back(subject.Text(body[1].condition));
    const Statement& child = body[1].children[0];
    row.statements = child.kind == Kind::kBlock ? child.children : std::vector<Statement>{child};
  }
  if (row.statements.empty()) return std::nullopt;
  row.inside = guard.Inside();
  row.range = {row.statements.front().range.begin, row.statements.back().range.end};
  for (const char* word : {"return", "__syncthreads", "__shared__", "gridDim", "blockIdx"})
    if (subject.Mentions(row.range, word)) return std::nullopt;
  return row;
}

std::string GridStride(const RowBody& body, const std::string& statements,
                       const std::string& indent) {
  std::string inner;
  for (const char c : statements) inner += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return fmt::format(
      "{0}for ({1} {2} = {3}; {4}; {2} += gridDim.x * blockDim.x) {{\n{0}  {5}\n{0}}}\n", indent,
      body.type, body.name, body.value, body.inside, inner);
}

size_t CountMentions(const Subject& subject, TokenRange range, std::string_view name) {
  size_t count = 0;
  for (size_t i = range.begin; i < range.end; ++i)
    count += subject.Mentions({i, i + 1}, name) ? 1 : 0;
  return count;
}

namespace {

std::string RenamedIn(const CudaSyntax& syntax, TokenRange range,
                      const std::map<std::string, std::string>& names) {
  std::string text;
  size_t at = syntax.token(range.begin).offset;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax.token(i);
    text += syntax.source.substr(at, token.offset - at);
    const bool member = i > 0 && (syntax.token(i - 1).Is(".") || syntax.token(i - 1).Is("->"));
    const auto name = names.find(std::string(token.text));
    const bool renamed = token.kind == Token::Kind::kWord && name != names.end() && !member;
    text += renamed ? name->second : std::string(token.text);
    at = token.offset + token.text.size();
  }
  return text;
}

}  // namespace

std::string Renamed(const Subject& subject, TokenRange range,
                    const std::map<std::string, std::string>& names) {
  return RenamedIn(subject.syntax(), range, names);
}

std::string Renamed(const Subject& subject, TokenRange range, const std::string& from,
                    const std::string& to) {
  return RenamedIn(subject.syntax(), range, {{from, to}});
}

std::string RenamedText(const std::string& expression, const std::string& from,
                        const std::string& to) {
  const CudaSyntax syntax = ParseCuda(expression);
  return RenamedIn(syntax, {0, syntax.lexed.tokens.size()}, {{from, to}});
}

std::string Guarded::Inside() const { return And(inside); }

std::string Guarded::Inside(const Subject& subject, const std::string& name) const {
  const std::string& other = name == x->name ? y->name : x->name;
  std::vector<std::string> mine;
  for (const std::string& one : inside) {
    const CudaSyntax part = ParseCuda(one);
    const TokenRange all{0, part.lexed.tokens.size()};
    if (Mentions(part, all, name) && !Mentions(part, all, other)) mine.push_back(one);
  }
  (void)subject;
  return And(mine);
}

std::optional<Conditions> AsConditions(const Subject& subject) {
  Conditions found;
  for (const Statement& statement : subject.body()) {
    if (IsIndex(subject, statement)) {
      found.indices.push_back(statement);
    } else if (ReturnsOnly(statement)) {
      if (!TakeReturn(subject, statement, found.inside)) return std::nullopt;
    } else {
      found.statements.push_back(statement);
    }
  }
  if (found.statements.empty() || !found.inside.empty()) return found;
  const Statement all = found.statements.back();
  const bool last = std::ranges::all_of(
      found.statements.begin(), found.statements.end() - 1,
      [](const Statement& one) { return one.kind == Kind::kDeclaration; });
  const bool of_index = std::ranges::any_of(subject.indices(), [&](const ThreadIndex& index) {
    return subject.Mentions(all.condition, index.name);
  });
  if (all.kind != Kind::kIf || !last || !of_index) return found;
  if (all.children.size() != 1) return std::nullopt;
  for (const TokenRange part : Parts(subject.syntax(), all.condition, "&&"))
    found.inside.push_back(subject.Text(part));
  const Statement& child = all.children[0];
  found.statements.pop_back();
  if (child.kind == Kind::kBlock)
    found.statements.insert(found.statements.end(), child.children.begin(), child.children.end());
  else
    found.statements.push_back(child);
  return found;
}

std::optional<Guarded> AsGuarded(const Subject& subject) {
  Guarded guarded;
  guarded.x = subject.IndexOn('x');
  guarded.y = subject.IndexOn('y');
  if (guarded.x == nullptr || guarded.y == nullptr || subject.indices().size() != 2)
    return std::nullopt;
  auto conditions = AsConditions(subject);
  if (!conditions) return std::nullopt;
  guarded.inside = std::move(conditions->inside);
  guarded.statements = std::move(conditions->statements);
  return guarded;
}

}  // namespace atunner::rewrites
