#include "atunner/rewrites/source/pad_shared.h"

#include <algorithm>
#include <optional>
#include <string>

#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

/// The tokens of the last extent of `__shared__ T name[…][…];`.
struct Tile {
  std::string name;
  TokenRange extent;
};

std::optional<Tile> TileOf(const CudaSyntax& syntax, const Statement& statement) {
  if (!syntax.token(statement.range.begin).Is("__shared__")) return std::nullopt;
  const TokenRange left = UpTo(syntax, statement.range, "[");
  const size_t first = left.end;
  const size_t second = MatchingClose(syntax, first) + 1;
  if (second >= statement.range.end || !syntax.token(second).Is("[")) return std::nullopt;
  const size_t close = MatchingClose(syntax, second);
  if (!syntax.token(close + 1).Is(";")) return std::nullopt;
  return Tile{std::string(syntax.token(first - 1).text), {second + 1, close}};
}

/// True if every use gives both subscripts, so that no code depends on the rows' distance.
bool IsAlwaysIndexed(const Subject& subject, const std::string& name) {
  const CudaSyntax& syntax = subject.syntax();
  const TokenRange body = subject.kernel().body;
  for (size_t i = body.begin; i < body.end; ++i) {
    if (syntax.token(i).text != name) continue;
    if (!syntax.token(i + 1).Is("[")) return false;
    if (!syntax.token(MatchingClose(syntax, i + 1) + 1).Is("[")) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<Proposal>> PadShared(const Subject& subject) {
  TextEdits edits(subject.syntax());
  for (const Statement& statement : subject.body()) {
    const auto tile = TileOf(subject.syntax(), statement);
    if (!tile || !IsAlwaysIndexed(subject, tile->name)) continue;
    if (Joined(subject.syntax(), tile->extent).find('+') != std::string::npos) continue;
    edits.InsertBehind(tile->extent.end - 1, " + 1");
  }
  if (edits.empty())
    return DoesNotApply("there is no unpadded array of two dimensions in shared memory");
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
