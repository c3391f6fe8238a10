// Matrix products, linear layers and attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "atunner/importers/aten/builders.h"

namespace atunner::importers {
namespace {

using graph::Value;

/// Letters of batch axes in equations; k, m and n are those of the product.
constexpr std::string_view kBatchLetters = "abcdefghijlopqrstuvwxyz";

/// The operand of a transposition of the last two axes; a product reads it in either order, so that
/// nothing needs to be moved. PyTorch writes linear layers so.
std::optional<Value> BeforeTransposition(AtenCall& call, Value x) {
  if (!call.g.ok()) return std::nullopt;
  const auto* transpose = call.g.NodeOf(x).As<graph::Transpose>();
  if (transpose == nullptr || transpose->order.size() < 2) return std::nullopt;
  std::vector<int64_t> order = transpose->order;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  return Value{call.g.NodeOf(x).operands[0]};
}

/// numpy's matmul: vectors get an axis, and batch axes are broadcast.
Value Product(AtenCall& call, Value a, Value b) {
  Integers left = call.SizesOf(a);
  Integers right = call.SizesOf(b);
  if (!call.Check(!left.empty() && !right.empty(), "a product of scalars")) return {};
  const bool row = left.size() == 1;
  const bool column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  Value x = row ? call.Reshape(a, left) : a;
  Value y = column ? call.Reshape(b, right) : b;
  const size_t rank = std::max(left.size(), right.size());
  if (!call.Check(rank <= kBatchLetters.size(), "a product of too many axes")) return {};
  // Rows of a batch are rows of one product if the other operand has no batch.
  std::string first;
  std::string second;
  std::string result;
  Integers sizes;
  const auto aligned = [&](const Integers& given, size_t axis) {
    const size_t missing = rank - given.size();
    return axis < missing ? int64_t{1} : given[axis - missing];
  };
  Integers kept_left;
  Integers kept_right;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    const int64_t l = aligned(left, axis);
    const int64_t r = aligned(right, axis);
    const char letter = kBatchLetters[axis];
    if (!call.Check(l == r || l == 1 || r == 1, "batch axes of a product differ")) return {};
    sizes.push_back(std::max(l, r));
    if (l != 1 || r == 1) first += letter, kept_left.push_back(l);
    if (r != 1) second += letter, kept_right.push_back(r);
    result += letter;
  }
  kept_left.insert(kept_left.end(), left.end() - 2, left.end());
  kept_right.insert(kept_right.end(), right.end() - 2, right.end());
  if (kept_left != left) x = call.Reshape(x, kept_left);
  if (kept_right != right) y = call.Reshape(y, kept_right);
  const auto swapped_x = BeforeTransposition(call, x);
  const auto swapped_y = BeforeTransposition(call, y);
  const Value made = call.g.Contract(fmt::format("{}{},{}{}->{}mn", first, swapped_x ? "km" : "mk",
                                                 second, swapped_y ? "nk" : "kn", result),
                                     swapped_x.value_or(x), swapped_y.value_or(y));
  if (!row) sizes.push_back(left[left.size() - 2]);
  if (!column) sizes.push_back(right.back());
  return row || column ? call.Reshape(made, sizes) : made;
}

/// beta · self + alpha · product.
Value WithAddend(AtenCall& call, Value product) {
  const double alpha = call.Real("alpha");
  const double beta = call.Real("beta");
  if (alpha != 1) product = call.g.Map(fmt::format("a * {}", alpha), {product});
  if (beta == 0) return product;
  const Value addend = call.Tensor("self");
  return call.g.Map(beta == 1 ? "a + b" : fmt::format("a + b * {}", beta), {product, addend});
}

/// softmax(q · kᵀ · scale + mask) · v for any rank and mask.
Value MaskedAttention(AtenCall& call, Value q, Value k, Value v, double scale) {
  Integers order(call.ShapeOf(k).size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const DType type = call.TypeOf(q);
  Value scores = call.Wide(Product(call, q, call.g.Transpose(k, order)));
  scores = call.g.Map(fmt::format("a * {}", scale), {scores});
  if (call.Has("attn_mask")) {
    const Value mask = call.Tensor("attn_mask");
    scores = call.TypeOf(mask) == DType::kBool
                 ? call.g.Map("select(b, a, -inf)", {scores, mask})
                 : call.g.Map("a + b", {scores, call.g.Cast(mask, call.TypeOf(scores))});
  }
  if (call.Flag("is_causal"))
    scores = call.g.Map("select(index(-1) <= index(-2), a, -inf)", {scores});
  const Value weights = call.Library("softmax", call.TypeOf(scores), {scores});
  return Product(call, call.g.Cast(weights, type), v);
}

}  // namespace

std::vector<Value> MatMul(AtenCall& call, std::string_view) {
  const std::string& second = call.parameters()[1].name;  // mat2, other, tensor or vec
  return {Product(call, call.Tensor("self"), call.Tensor(second))};
}

std::vector<Value> AddMatMul(AtenCall& call, std::string_view) {
  const Value a = call.Tensor(call.parameters()[1].name);
  const Value b = call.Tensor(call.parameters()[2].name);
  return {WithAddend(call, Product(call, a, b))};
}

std::vector<Value> Linear(AtenCall& call, std::string_view) {
  const Value x = call.Tensor("input");
  const Value w = call.Tensor("weight");
  const size_t rank = call.ShapeOf(x).size();
  if (!call.Check(rank >= 1 && rank <= kBatchLetters.size() && call.ShapeOf(w).size() == 2,
                  "a linear layer of these ranks"))
    return {};
  const std::string_view rows = kBatchLetters.substr(0, rank - 1);
  const Value y = call.g.Contract(fmt::format("{0}k,nk->{0}n", rows), x, w);
  if (!call.Has("bias")) return {y};
  return {call.g.Map("a + b", {y, call.Tensor("bias")})};
}

std::vector<Value> Attention(AtenCall& call, std::string_view) {
  const Value q = call.Tensor("query");
  const Value k = call.Tensor("key");
  const Value v = call.Tensor("value");
  const Integers queries = call.SizesOf(q);
  const Integers keys = call.SizesOf(k);
  if (!call.Check(queries.size() >= 2 && keys.size() >= 2, "attention of vectors") ||
      !call.Check(call.Real("dropout_p") == 0, "dropout in training draws random numbers",
                  "export the model after `eval()`"))
    return {};
  const double scale = call.Has("scale") ? call.Real("scale")
                                         : 1 / std::sqrt(static_cast<double>(queries.back()));
  const bool causal = call.Flag("is_causal");
  // The library's causal queries are the last ones of the keys, PyTorch's are the first ones.
  const bool as_library = queries.size() == 4 && keys.size() == 4 && !call.Has("attn_mask") &&
                          call.SizesOf(v) == keys && keys[0] == queries[0] &&
                          (!causal || queries[2] == keys[2]);
  if (!as_library) return {MaskedAttention(call, q, k, v, scale)};
  return {call.Library("attention_gqa", call.TypeOf(q), {q, k, v},
                       {{"causal", causal}, {"scale", scale}}, 2)};
}

/// The operators of faces/python/atunner/_attention.py, by which steps keep attention whole.
std::vector<Value> LibraryAttention(AtenCall& call, std::string_view text) {
  std::vector<Value> operands = {call.Tensor("query"), call.Tensor("key"), call.Tensor("value")};
  if (text != "attention_gqa") operands.push_back(call.Tensor("grad"));
  return call.LibraryResults(text, call.TypeOf(operands[0]), operands,
                             {{"causal", call.Flag("is_causal")}, {"scale", call.Real("scale")}},
                             2);
}

}  // namespace atunner::importers
