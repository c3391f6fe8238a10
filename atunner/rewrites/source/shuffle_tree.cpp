#include "atunner/rewrites/source/shuffle_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "atunner/rewrites/source/loop_uses.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

struct Tree {
  const Statement* loop = nullptr;
  std::string array;
};

/// A loop with a barrier whose only assignments to an array are `part[a] += part[b]`.
std::optional<Tree> AsTree(const Subject& subject, const Statement& statement) {
  if (statement.kind != Kind::kFor || !subject.Mentions(statement.range, "__syncthreads"))
    return std::nullopt;
  Tree tree{&statement, ""};
  bool sums = true;
  Walk(statement.children, [&](const Statement& child) {
    const auto one = AsAssignment(subject, child);
    if (!one || !one->is_element()) return;
    const auto reads = ReadsIn(subject, one->value);
    const bool adds = one->op == "+=" && reads.size() == 1 && reads[0].array == one->target &&
                      subject.Text(reads[0].whole) == subject.Text(one->value);
    sums = sums && adds && (tree.array.empty() || tree.array == one->target);
    tree.array = one->target;
  });
  if (!sums || tree.array.empty()) return std::nullopt;
  return tree;
}

/// The type of `__shared__ T name[N];`, if each thread of the block has one element there.
std::string TypeOfShared(const Subject& subject, const std::string& name) {
  const CudaSyntax& syntax = subject.syntax();
  for (const Statement& statement : subject.body()) {
    if (!syntax.token(statement.range.begin).Is("__shared__")) continue;
    const TokenRange left = UpTo(syntax, statement.range, "[");
    if (left.end >= statement.range.end || syntax.token(left.end - 1).text != name) continue;
    return subject.Text({left.begin + 1, left.end - 1});
  }
  return "";
}

/// Behind the tree only element 0 is used.
bool OnlyTheSumIsUsed(const Subject& subject, const Tree& tree) {
  const TokenRange rest{tree.loop->range.end, subject.kernel().body.end};
  const auto reads = ReadsIn(subject, rest);
  return std::ranges::all_of(reads, [&](const ElementRead& read) {
    return read.array != tree.array || IsZero(subject.Text(read.subscript));
  });
}

std::string ShuffleText(const std::string& type, const std::string& array, uint32_t warps,
                        const std::string& indent, const std::string& sum) {
  const auto add = [&](const std::string& in) {
    return fmt::format(
        "{0}for (int offset = 16; offset > 0; offset /= 2)\n"
        "{0}  {1} += __shfl_down_sync(0xffffffffu, {1}, offset);\n",
        in, sum);
  };
  return fmt::format("{} {} = {}[threadIdx.x];\n", type, sum, array) + add(indent) +
         fmt::format(
             "{0}__syncthreads();\n"
             "{0}if (threadIdx.x % 32 == 0) {1}[threadIdx.x / 32] = {2};\n"
             "{0}__syncthreads();\n"
             "{0}if (threadIdx.x < 32) {{\n"
             "{0}  {2} = threadIdx.x < {3} ? {1}[threadIdx.x] : 0;\n",
             indent, array, sum, warps) +
         add(indent + "  ") +
         fmt::format(
             "{0}  if (threadIdx.x == 0) {1}[0] = {2};\n"
             "{0}}}\n"
             "{0}__syncthreads();",
             indent, array, sum);
}

}  // namespace

Result<std::vector<Proposal>> ShuffleTree(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.y * block.z != 1 || block.x % 32 != 0)
    return DoesNotApply("the block is no row of whole warps");
  for (const Statement& statement : subject.body()) {
    const auto tree = AsTree(subject, statement);
    if (!tree) continue;
    const std::string type = TypeOfShared(subject, tree->array);
    if (type.empty()) return DoesNotApply("'" + tree->array + "' is no row in shared memory");
    if (!OnlyTheSumIsUsed(subject, *tree))
      return DoesNotApply("partial sums are used behind the tree");
    TextEdits edits(subject.syntax());
    edits.Replace(
        tree->loop->range,
        ShuffleText(type, tree->array, block.x / 32,
                    IndentAt(subject.syntax(), tree->loop->range.begin), subject.FreshName("sum")));
    return std::vector<Proposal>{{edits.Apply(), {}, ""}};
  }
  return DoesNotApply("there is no tree of sums in shared memory");
}

}  // namespace atunner::rewrites
