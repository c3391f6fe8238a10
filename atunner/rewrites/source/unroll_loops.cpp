#include "atunner/rewrites/source/unroll_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

bool IsInnermost(const Statement& loop) {
  bool innermost = true;
  Walk(loop.children, [&](const Statement& child) { innermost = innermost && !child.IsLoop(); });
  return innermost;
}

/// The innermost `for` loops that have no pragma.
std::vector<const Statement*> LoopsIn(const Subject& subject) {
  std::vector<const Statement*> loops;
  Walk(subject.body(), [&](const Statement& statement) {
    if (statement.kind != Statement::Kind::kFor || !IsInnermost(statement)) return;
    const size_t begin = statement.range.begin;
    const bool has_pragma = begin > 0 &&
                            subject.syntax().token(begin - 1).kind == Token::Kind::kDirective;
    if (!has_pragma) loops.push_back(&statement);
  });
  return loops;
}

}  // namespace

Result<std::vector<Proposal>> UnrollLoops(const Subject& subject) {
  const std::vector<const Statement*> loops = LoopsIn(subject);
  if (loops.empty()) return DoesNotApply("there is no innermost loop without a pragma");
  std::vector<Proposal> proposals;
  for (const int factor : {4, 8, 16}) {
    TextEdits edits(subject.syntax());
    for (const Statement* loop : loops) {
      const size_t begin = loop->range.begin;
      edits.InsertBefore(
          begin, fmt::format("#pragma unroll {}\n{}", factor, IndentAt(subject.syntax(), begin)));
    }
    proposals.push_back({edits.Apply(), {}, fmt::format("by {}", factor)});
  }
  return proposals;
}

}  // namespace atunner::rewrites
