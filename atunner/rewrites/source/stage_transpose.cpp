#include "atunner/rewrites/source/stage_transpose.h"

#include <fmt/format.h>

#include <string>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

/// The text of the kernel's new body. Threads along x read neighbours of `fast_in` and write
/// neighbours of the other index.
std::string Staged(const Subject& subject, const Guarded& guarded, const Assignment& store,
                   const ElementRead& read) {
  const uint32_t side = subject.launch().block.x;
  const bool reads_along_x = IsUnitStride(subject, read.subscript, guarded.x->name);
  const std::string& x = guarded.x->name;
  const std::string& y = guarded.y->name;
  const std::string type = subject.FindParameter(read.array)->type;
  const auto indices = [&](bool straight, const std::string& indent) {
    return fmt::format(
        "{0}const int {1} = blockIdx.x * {3} + threadIdx.{4};\n"
        "{0}const int {2} = blockIdx.y * {3} + threadIdx.{5};\n",
        indent, x, y, side, straight ? 'x' : 'y', straight ? 'y' : 'x');
  };
  return fmt::format("__shared__ {} tile[{}][{}];\n  {{\n", type, side, side + 1) +
         indices(reads_along_x, "    ") +
         fmt::format("    if ({}) tile[threadIdx.y][threadIdx.x] = {};\n", guarded.Inside(),
                     subject.Text(read.whole)) +
         "  }\n  __syncthreads();\n" + indices(!reads_along_x, "  ") +
         fmt::format("  if ({}) {}[{}] = tile[threadIdx.x][threadIdx.y];", guarded.Inside(),
                     store.target, subject.Text(store.subscript));
}

}  // namespace

Result<std::vector<Proposal>> StageTranspose(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.x != block.y || block.x < 8) return DoesNotApply("the block is no square");
  const auto guarded = AsGuarded(subject);
  if (!guarded || guarded->statements.size() != 1)
    return DoesNotApply("the kernel is no copy of one element per thread");
  const auto store = AsAssignment(subject, guarded->statements[0]);
  if (!store || !store->is_element() || store->op != "=")
    return DoesNotApply("the kernel is no copy of one element per thread");
  const auto reads = ReadsIn(subject, store->value);
  if (reads.size() != 1 || subject.Text(reads[0].whole) != subject.Text(store->value) ||
      subject.FindParameter(reads[0].array) == nullptr)
    return DoesNotApply("the kernel computes something of what it copies");
  const std::string &x = guarded->x->name, &y = guarded->y->name;
  const bool along_x = IsUnitStride(subject, reads[0].subscript, x) &&
                       IsUnitStride(subject, store->subscript, y);
  const bool along_y = IsUnitStride(subject, reads[0].subscript, y) &&
                       IsUnitStride(subject, store->subscript, x);
  if (!along_x && !along_y) return DoesNotApply("the copy is no transposition");
  TextEdits edits(subject.syntax());
  edits.Replace(subject.kernel().body, Staged(subject, *guarded, *store, reads[0]));
  return std::vector<Proposal>{{edits.Apply(), {}, ""}};
}

}  // namespace atunner::rewrites
