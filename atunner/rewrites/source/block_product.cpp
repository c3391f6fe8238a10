#include "atunner/rewrites/source/block_product.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "atunner/rewrites/source/guarded.h"
#include "atunner/rewrites/tree/text_edits.h"

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

/// The names in the new body that are not the kernel's own.
constexpr std::array kNames = {"left_tile", "right_tile", "sums", "left",  "right",
                               "part",      "at",         "down", "across"};

/// `sum += left * right`, where `left` depends on the row and `right` on the column.
struct Product {
  Guarded guarded;
  CountedLoop loop;
  std::string sum;
  std::string type;  ///< of the sum
  std::string row, column;
  TokenRange left, right;
  const Statement* store = nullptr;
  std::string common;  ///< declarations that are the same for all threads of a block
};

/// The operand's index: the one of the two that its only element depends on.
std::string IndexOf(const Subject& subject, const Guarded& guarded, TokenRange operand,
                    const std::string& step) {
  const auto reads = ReadsIn(subject, operand);
  if (reads.size() != 1 || subject.FindParameter(reads[0].array) == nullptr) return "";
  const bool x = subject.Mentions(operand, guarded.x->name),
             y = subject.Mentions(operand, guarded.y->name);
  if (x == y || !subject.Mentions(operand, step)) return "";
  return x ? guarded.x->name : guarded.y->name;
}

/// Takes declarations in front of the sum's that are the same for all threads of a block.
bool TakeCommon(const Subject& subject, Product& product) {
  std::vector<Statement>& all = product.guarded.statements;
  while (all.size() > 3) {
    const TokenRange range = all[0].range;
    if (all[0].kind != Kind::kDeclaration || subject.Mentions(range, "threadIdx") ||
        subject.Mentions(range, product.guarded.x->name) ||
        subject.Mentions(range, product.guarded.y->name))
      return false;
    product.common += "  " + subject.Text(range) + "\n";
    all.erase(all.begin());
  }
  return all.size() == 3;
}

/// The loop's sum, the declaration before it and the store behind it.
std::optional<Product> AsProduct(const Subject& subject) {
  auto guarded = AsGuarded(subject);
  if (!guarded) return std::nullopt;
  Product product;
  product.guarded = *std::move(guarded);
  if (!TakeCommon(subject, product)) return std::nullopt;
  const std::vector<Statement>& all = product.guarded.statements;
  const auto loop = AsCountedLoop(subject, all[1]);
  if (!loop || !IsZero(subject.Text(loop->begin)) || all[2].kind != Kind::kExpression)
    return std::nullopt;
  product.loop = *loop;
  product.store = &all[2];
  const Statement* body = &loop->loop->children[0];
  if (body->kind == Kind::kBlock && body->children.size() == 1) body = &body->children[0];
  const auto sum = AsAssignment(subject, *body);
  if (!sum || sum->is_element() || sum->op != "+=") return std::nullopt;
  product.sum = sum->target;
  product.left = UpTo(subject.syntax(), sum->value, "*");
  product.right = {product.left.end + 1, sum->value.end};
  if (product.left.end == sum->value.end || !StartsAtZero(subject, all, 1, product.sum))
    return std::nullopt;
  product.type = TypeOfLocal(subject, all, product.sum);
  product.row = IndexOf(subject, product.guarded, product.left, loop->variable);
  product.column = IndexOf(subject, product.guarded, product.right, loop->variable);
  if (product.row.empty() || product.column.empty() || product.row == product.column ||
      product.type.empty())
    return std::nullopt;
  return product;
}

/// Threads along x store neighbours: the column's index must be the contiguous one of the result.
void PutColumnLast(const Subject& subject, Product& product) {
  const auto store = AsAssignment(subject, *product.store);
  if (!store || IsUnitStride(subject, store->subscript, product.column)) return;
  std::swap(product.row, product.column);
  std::swap(product.left, product.right);
}

/// One loop that loads an operand's part: 4 * side elements by side, threads along x take
/// neighbours.
std::string LoadText(const Subject& subject, const Product& product, TokenRange operand,
                     const std::string& index, const std::string& tile) {
  const auto reads = ReadsIn(subject, operand);
  const bool along_step = IsUnitStride(subject, reads[0].subscript, product.loop.variable);
  const uint32_t side = subject.launch().block.x;
  const std::string& step = product.loop.variable;
  const char fast = along_step ? 'y' : 'x', slow = along_step ? 'x' : 'y';
  return fmt::format(
      "    for (int part = 0; part < {0}; part += {1}) {{\n"
      "      const int {2} = {2}_0 + part + threadIdx.{3}, {4} = {4}_0 + threadIdx.{5};\n"
      "      {6}[threadIdx.{5}][part + threadIdx.{3}] =\n"
      "          {7} && {4} < {8} ? {9} : {10}(0);\n"
      "    }}\n",
      4 * side, side, index, fast, step, slow, tile, product.guarded.Inside(subject, index),
      subject.Text(product.loop.end), subject.Text(operand), product.type);
}

std::string HeadText(const Subject& subject, const Product& product) {
  const uint32_t side = subject.launch().block.x;
  const auto axis = [&](const std::string& name) {
    return name == product.guarded.x->name ? 'x' : 'y';
  };
  return fmt::format(
      "// A block computes {0} x {0} results, each thread 4 x 4 of them.\n{8}"
      "  __shared__ alignas(16) {1} left_tile[{2}][{3}], right_tile[{2}][{3}];\n"
      "  const int {4}_0 = blockIdx.{5} * {0}, {6}_0 = blockIdx.{7} * {0};\n"
      "  {1} sums[4][4] = {{}};\n",
      4 * side, product.type, side, 4 * side + 4, product.row, axis(product.row), product.column,
      axis(product.column), product.common);
}

std::string LoopText(const Subject& subject, const Product& product) {
  const uint32_t side = subject.launch().block.x;
  const std::string& step = product.loop.variable;
  return fmt::format("  for (int {0}_0 = 0; {0}_0 < {1}; {0}_0 += {2}) {{\n", step,
                     subject.Text(product.loop.end), side) +
         LoadText(subject, product, product.left, product.row, "left_tile") +
         LoadText(subject, product, product.right, product.column, "right_tile") +
         "    __syncthreads();\n" +
         fmt::format(
             "    for (int at = 0; at < {0}; ++at) {{\n"
             "      {1} left[4], right[4];\n"
             "#pragma unroll\n"
             "      for (int each = 0; each < 4; ++each) {{\n"
             "        left[each] = left_tile[at][4 * threadIdx.y + each];\n"
             "        right[each] = right_tile[at][4 * threadIdx.x + each];\n"
             "      }}\n"
             "#pragma unroll\n"
             "      for (int down = 0; down < 4; ++down)\n"
             "#pragma unroll\n"
             "        for (int across = 0; across < 4; ++across)\n"
             "          sums[down][across] += left[down] * right[across];\n"
             "    }}\n"
             "    __syncthreads();\n"
             "  }}\n",
             side, product.type);
}

std::string StoreText(const Subject& subject, const Product& product) {
  return fmt::format(
      "#pragma unroll\n"
      "  for (int down = 0; down < 4; ++down)\n"
      "#pragma unroll\n"
      "    for (int across = 0; across < 4; ++across) {{\n"
      "      const int {0} = {0}_0 + 4 * threadIdx.y + down, {1} = {1}_0 + 4 * threadIdx.x + "
      "across;\n"
      "      const {2} {3} = sums[down][across];\n"
      "      if ({4}) {5}\n"
      "    }}",
      product.row, product.column, product.type, product.sum, product.guarded.Inside(),
      subject.Text(product.store->range));
}

}  // namespace

Result<std::vector<Proposal>> BlockProduct(const Subject& subject) {
  const Dim3 block = subject.launch().block;
  if (block.x != block.y || block.z != 1 || block.x < 8 || block.x > 32)
    return DoesNotApply("the block is no square");
  for (const char* name : kNames) {
    if (subject.BodyMentions(name) || subject.FindParameter(name) != nullptr)
      return DoesNotApply(fmt::format("the kernel uses the name '{}' itself", name));
  }
  auto product = AsProduct(subject);
  if (!product) return DoesNotApply("the kernel is no product of two matrices");
  PutColumnLast(subject, *product);
  TextEdits edits(subject.syntax());
  edits.Replace(subject.kernel().body, HeadText(subject, *product) + LoopText(subject, *product) +
                                           StoreText(subject, *product));
  return std::vector<Proposal>{{edits.Apply(), {{1, 1, 1}, {4, 4, 1}}, ""}};
}

}  // namespace atunner::rewrites
