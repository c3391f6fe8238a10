#include "atunner/graph/match/sole_product.h"

#include <utility>
#include <vector>

#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {
namespace {

bool MayFollowProduct(const Node& node) {
  return node.As<Map>() || node.As<Reshape>() || node.As<Transpose>() || node.As<Fold>() ||
         node.As<Slice>();
}

/// True if reductions may compute the contraction as a sum of a map.
bool IsVectorProduct(const ValidGraph& part, const Node& contraction) {
  GraphBuilder builder("product");
  for (const auto& [name, range] : part.symbols())
    if (!builder.Symbol(name, range)) return true;
  std::vector<Value> operands;
  for (const char* name : {"a", "b"})
    operands.push_back(builder.Input(name, part.node(contraction.operands[operands.size()]).type));
  builder.Output("y", builder.Copy(contraction, std::move(operands)));
  const Result<ValidGraph> alone = std::move(builder).Finish();
  return !alone || !OnlyNode<Contract>(WithoutVectorProducts(*alone));
}

}  // namespace

bool MayEndBehindProduct(const ValidGraph& part) {
  const auto product = OnlyNode<Contract>(part);
  if (!product) return true;
  bool fits = part.outputs().size() == 1;
  std::vector<bool> behind(part.nodes().size(), false);
  behind[*product] = true;
  for (size_t id = *product; id < part.nodes().size(); ++id) {
    const Node& node = part.nodes()[id];
    for (const NodeId operand : node.operands) behind[id] = behind[id] || behind[operand];
    fits = fits && (!behind[id] || id == static_cast<size_t>(*product) || MayFollowProduct(node));
  }
  return fits || IsVectorProduct(part, part.node(*product));
}

}  // namespace atunner::graph
