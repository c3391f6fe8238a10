#include "atunner/rewrites/source/interchange_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

bool UsesWarps(const Subject& subject) {
  const TokenRange body = subject.kernel().body;
  for (size_t i = body.begin; i < body.end; ++i) {
    const std::string_view word = subject.syntax().token(i).text;
    if (word.starts_with("__shfl") || word.starts_with("__ballot") ||
        word.starts_with("__reduce") || word == "__syncwarp" || word == "warpSize" ||
        word == "__activemask")
      return true;
  }
  return false;
}

/// Replaces threadIdx.x and threadIdx.y.
std::string Replaced(const Subject& subject, const std::string& for_x, const std::string& for_y,
                     const std::string& in_front) {
  const CudaSyntax& syntax = subject.syntax();
  const TokenRange body = subject.kernel().body;
  TextEdits edits(syntax);
  if (!in_front.empty()) edits.InsertBefore(body.begin, in_front);
  for (size_t i = body.begin; i + 2 < body.end; ++i) {
    if (!syntax.token(i).Is("threadIdx")) continue;
    if (syntax.token(i + 2).Is("x")) edits.Replace({i, i + 3}, for_x);
    if (syntax.token(i + 2).Is("y")) edits.Replace({i, i + 3}, for_y);
  }
  return edits.Apply();
}

}  // namespace

Result<std::vector<Proposal>> InterchangeThreads(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.x == 1 || block.y == 1) return DoesNotApply("the block has one axis only");
  const std::string all = Joined(subject.syntax(), subject.kernel().body);
  if (all.find("threadIdx . x") == std::string::npos ||
      all.find("threadIdx . y") == std::string::npos)
    return DoesNotApply("the kernel does not use both axes of its threads");
  if (UsesWarps(subject)) return DoesNotApply("the kernel exchanges values within warps");
  if (block.x == block.y)
    return std::vector<Proposal>{{Replaced(subject, "threadIdx.y", "threadIdx.x", ""), {}, ""}};
  const std::string thread = subject.FreshName("thread");
  const std::string front = fmt::format(
      "// Neighbouring threads differ in y.\n"
      "  const unsigned {} = threadIdx.y * blockDim.x + threadIdx.x;\n  ",
      thread);
  return std::vector<Proposal>{{Replaced(subject, fmt::format("({} / blockDim.y)", thread),
                                         fmt::format("({} % blockDim.y)", thread), front),
                                {},
                                ""}};
}

}  // namespace atunner::rewrites
