#include "atunner/graph/match/product.h"

#include <algorithm>
#include <map>
#include <utility>

#include "atunner/graph/compose.h"
#include "atunner/graph/match/inline_work.h"

namespace atunner::graph {
namespace {

std::string Without(std::string text, const std::string& letters) {
  std::erase_if(text, [&](char letter) { return letters.contains(letter); });
  return text;
}

/// nullopt if the operands are not [batch, m, k] and [batch, k, n] or [batch, n, k], where each of
/// these may be several neighbouring axes in the same order everywhere. `ones` are the letters of
/// axes of extent 1, which may be anywhere.
std::optional<ProductAxes> AxesOf(std::string a, std::string b, std::string c,
                                  const std::string& ones) {
  for (std::string* letters : {&a, &b, &c}) *letters = Without(*letters, ones);
  const bool rows = std::ranges::any_of(c, [&](char letter) { return !b.contains(letter); });
  ProductAxes axes;
  for (const char letter : c) {
    const bool in_a = a.contains(letter), in_b = b.contains(letter);
    const bool first = axes.m.empty() && axes.n.empty();
    if (first && in_b && (in_a || rows))
      axes.batch += letter;
    else
      (in_a ? axes.m : axes.n) += letter;
  }
  axes.a_batched = !axes.batch.empty() && a.contains(axes.batch[0]);
  axes.k = Without(a, axes.batch + axes.m);
  axes.b_transposed = b == axes.batch + axes.n + axes.k && b != axes.batch + axes.k + axes.n;
  const bool fits = c == axes.batch + axes.m + axes.n &&
                    a == (axes.a_batched ? axes.batch : "") + axes.m + axes.k &&
                    (axes.b_transposed || b == axes.batch + axes.k + axes.n) && !axes.k.empty() &&
                    !axes.n.empty();
  return fits ? std::optional(axes) : std::nullopt;
}

/// 1 or 2 for a map that sets one side of the diagonal of a matrix to zero (see Factor), else 0.
int64_t TriangleOf(const Node& map, const TensorType& type) {
  const char* const sides[] = {"select(index(-1) <= index(-2), a, 0)",
                               "select(index(-1) >= index(-2), a, 0)"};
  // The expression does not depend on extents, so two by two elements show what it does.
  const TensorType like{type.dtype, Shape(type.rank(), Extent(2))};
  for (int64_t side = 1; side <= 2; ++side) {
    GraphBuilder builder("triangle");
    const Value value = builder.Map(sides[side - 1], {builder.Input("a", like)});
    if (builder.ok() && builder.NodeOf(value).As<Map>()->body == map.As<Map>()->body) return side;
  }
  return 0;
}

/// `swapped`: the contraction's second operand becomes `a`.
std::optional<ProductForm> FormOf(const ValidGraph& graph, NodeId product, bool swapped) {
  const Node& node = graph.node(product);
  const auto [left, right, result] = ParsedEquation(node.As<Contract>()->equation);
  std::string letters[] = {left, right};
  NodeId operands[] = {node.operands[0], node.operands[1]};
  if (swapped) std::swap(letters[0], letters[1]), std::swap(operands[0], operands[1]);
  std::string ones;
  std::map<char, Extent> extents;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t axis = 0; axis < letters[i].size(); ++axis) {
      const Extent& extent = graph.node(operands[i]).type.shape[axis];
      extents[letters[i][axis]] = extent;
      if (extent.one()) ones += letters[i][axis];
    }
  }
  const auto axes = AxesOf(letters[0], letters[1], result, ones);
  const Factor a = FactorOf(graph, operands[0]), b = FactorOf(graph, operands[1]);
  if (!axes || !a.input || !b.input || b.triangle != 0) return std::nullopt;
  const bool whole = axes->m.size() == 1 && axes->k.size() == 1 &&
                     letters[0].ends_with(axes->m + axes->k);
  if (a.triangle != 0 && !(whole && node.As<Contract>()->sparse)) return std::nullopt;
  Extent depth(1);
  for (const char letter : axes->k) depth = depth * extents[letter];
  return ProductForm{product, *axes, result, node.type.shape, depth, a, b};
}

}  // namespace

Factor FactorOf(const ValidGraph& graph, NodeId id) {
  const Node* node = &graph.node(id);
  while (node->As<Reshape>()) node = &graph.node(node->operands[0]);
  if (node->As<Input>()) return {node, 0};
  if (!node->As<Map>() || node->operands.size() != 1 || node != &graph.node(id)) return {};
  const Node& input = graph.node(node->operands[0]);
  const int64_t triangle = input.As<Input>() ? TriangleOf(*node, input.type) : 0;
  return triangle == 0 ? Factor{} : Factor{&input, triangle};
}

Extent ProductForm::Count(const std::string& some) const {
  Extent count(1);
  for (size_t axis = 0; axis < letters.size(); ++axis) {
    if (some.contains(letters[axis])) count = count * shape[axis];
  }
  return count;
}

bool ProductForm::IsTwin(const ProductForm& other) const {
  return shape == other.shape && axes == other.axes && letters == other.letters &&
         a.input == other.a.input && a.triangle == 0 &&
         b.input->type.dtype == other.b.input->type.dtype;
}

std::optional<ProductForm> ProductFormOf(const ValidGraph& graph, NodeId product) {
  auto form = FormOf(graph, product, false);
  return form ? form : FormOf(graph, product, true);
}

bool TakesProducts(const ValidGraph& graph, const std::vector<NodeId>& products, const Node& map) {
  constexpr double kMostWork = 16;
  const auto among = [](const std::vector<NodeId>& ids, NodeId id) {
    return std::ranges::find(ids, id) != ids.end();
  };
  if (!map.As<Map>() || map.type.shape != graph.node(products[0]).type.shape) return false;
  if (!std::ranges::all_of(products, [&](NodeId product) { return among(map.operands, product); }))
    return false;
  return std::ranges::all_of(map.operands, [&](NodeId operand) {
    if (among(products, operand)) return true;
    const auto served = InlineWorkOf(graph, operand);
    return served.possible && served.loads <= kMostWork;
  });
}

}  // namespace atunner::graph
