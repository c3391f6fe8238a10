// ElementText for small sums: reductions, contractions and folds become loops.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/cuda_text/index_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"

namespace atunner::graph {
namespace {

using Lanes = Coordinate::Lanes;

Shape ReducedExtents(const Shape& from, const Reduce& reduce) {
  Shape gone;
  for (int64_t axis : reduce.axes) gone.push_back(from[axis]);
  return gone;
}

std::string CombinedText(Combine op, const std::string& a, const std::string& b) {
  switch (op) {
    case Combine::kProd:
      return fmt::format("{} * {}", a, b);
    case Combine::kMax:
      return fmt::format("maximum({}, {})", a, b);
    case Combine::kMin:
      return fmt::format("minimum({}, {})", a, b);
    case Combine::kAny:
      return fmt::format("{} | {}", a, b);
    case Combine::kAll:
      return fmt::format("{} & {}", a, b);
    default:
      return fmt::format("{} + {}", a, b);
  }
}

}  // namespace

bool IsFinishedInPlace(const ValidGraph& graph, NodeId node, double most) {
  const Shape& shape = graph.node(node).type.shape;
  const Coordinates at = AxisCoordinates(shape);
  ElementText elements(graph, ElementText::Options{});
  elements.Know(node, {"x", 1}, at);
  return std::ranges::all_of(graph.outputs(), [&](const Output& output) {
    const bool served = graph.node(output.node).type.shape == shape &&
                        CanInline(graph, output.node, most, [&](NodeId id) { return id == node; });
    if (served) elements.Of(output.node, at);
    return served && !elements.failed();
  });
}

ElementText::Value ElementText::Loop(
    const std::string& type, const std::string& start, const std::vector<std::string>& extents,
    const std::function<std::string(const std::vector<Coordinate>&, const std::string& total)>&
        body) {
  const std::string total = fmt::format("total{}", names_++);
  const auto outer = static_cast<int>(scopes_.size()) - 1;
  Line(outer, fmt::format("{} {} = {};", type, total, start));
  const int depth = outer + 1;
  std::vector<Coordinate> variables;
  std::string heads;
  for (const std::string& extent : extents) {
    // Another stem than that of families' coordinates (r0, k1, …), which a loop would hide.
    const std::string name = fmt::format("term{}", names_++);
    heads += fmt::format("{0}for ({3} {1} = 0; {1} < {2}; ++{1}) {{\n", Indent(outer), name, extent,
                         options_.index);
    variables.push_back({name, Lanes::kSame, 1, depth});
  }
  scopes_.emplace_back();
  const std::string combined = body(variables, total);
  Line(depth, fmt::format("{} = {};", total, combined));
  const std::string inside = std::move(scopes_.back().text);
  scopes_.pop_back();
  scopes_[outer].text += heads + inside + Indent(outer) + std::string(extents.size(), '}') + "\n";
  return {total, outer};
}

ElementText::Value ElementText::Reduced(const Node& node, const Reduce& reduce,
                                        const Coordinates& at) {
  const Shape& from = TypeOf(node.operands[0]).shape;
  const Shape gone = ReducedExtents(from, reduce);
  const std::string type = Arithmetic(node.type.dtype);
  std::vector<std::string> extents;
  for (const Extent& extent : gone) extents.push_back(extent.ToString());
  Value total = Loop(
      type, CudaLiteral(node.type.dtype, Neutral(reduce.op, node.type.dtype), options_.wide),
      extents, [&](const std::vector<Coordinate>& variables, const std::string& sum) {
        Coordinates inner;
        for (size_t axis = 0, kept = 0, r = 0; axis < from.size(); ++axis) {
          const bool reduced = std::ranges::find(reduce.axes, static_cast<int64_t>(axis)) !=
                               reduce.axes.end();
          if (reduce.keep && reduced) ++kept;
          inner.push_back(reduced ? variables[r++] : at[kept++]);
        }
        return CombinedText(reduce.op, sum,
                            fmt::format("({}){}", type, Of(node.operands[0], inner).text));
      });
  if (reduce.op != Combine::kMean) return total;
  return Named(type, fmt::format("{} / ({})", total.text, CountText(gone)), total.depth, "mean");
}

/// The sum over all windows that contain the element.
ElementText::Value ElementText::Folded(const Node& node, const Fold& fold, const Coordinates& at) {
  const Shape& from = TypeOf(node.operands[0]).shape;
  const std::string type = Arithmetic(node.type.dtype);
  return Loop(
      type, CudaLiteral(node.type.dtype, CellOf(node.type.dtype, 0), options_.wide),
      {from[fold.axis + 1].ToString()},
      [&](const std::vector<Coordinate>& variables, const std::string& sum) {
        const int depth = static_cast<int>(scopes_.size()) - 1;
        const Value reach = Named(
            options_.index,
            fmt::format("{} - {} * {}", at[fold.axis].OfLane(), variables[0].text, fold.dilation),
            depth, "reach");
        const Value inside = Named("bool",
                                   fmt::format("{0} >= 0 && {0} % {1} == 0 && {0} / {1} < ({2})",
                                               reach.text, fold.stride, from[fold.axis].ToString()),
                                   depth, "inside");
        Coordinates inner = at;
        inner[fold.axis] = {fmt::format("({} / {})", reach.text, fold.stride), Lanes::kAny, 1,
                            depth};
        inner.insert(inner.begin() + fold.axis + 1, variables[0]);
        const Value value = If(inside, [&] { return Of(node.operands[0], inner); });
        return fmt::format("{0} + ({1} ? ({2}){3} : ({2})0)", sum, inside.text, type, value.text);
      });
}

ElementText::Value ElementText::Contracted(const Node& node, const Contract& contract,
                                           const Coordinates& at) {
  const Equation equation = ParsedEquation(contract.equation);
  std::map<char, Coordinate> places;
  std::map<char, std::string> extents;
  for (size_t i = 0; i < equation.result.size(); ++i) places[equation.result[i]] = at[i];
  for (const auto& [letters, operand] :
       {std::pair{equation.left, 0}, std::pair{equation.right, 1}}) {
    for (size_t i = 0; i < letters.size(); ++i) {
      if (!places.contains(letters[i]))
        extents[letters[i]] = TypeOf(node.operands[operand]).shape[i].ToString();
    }
  }
  std::vector<std::string> summed;
  for (const auto& [letter, extent] : extents) summed.push_back(extent);
  const std::string type = Arithmetic(node.type.dtype);
  return Loop(type, CudaLiteral(node.type.dtype, CellOf(node.type.dtype, 0), options_.wide), summed,
              [&](const std::vector<Coordinate>& variables, const std::string& sum) {
                size_t next = 0;
                for (const auto& [letter, extent] : extents) places[letter] = variables[next++];
                const auto of = [&](const std::string& letters, NodeId operand) {
                  Coordinates inner;
                  for (char letter : letters) inner.push_back(places[letter]);
                  return Of(operand, inner).text;
                };
                const std::string left = of(equation.left, node.operands[0]);
                const std::string right = of(equation.right, node.operands[1]);
                const std::string product = fmt::format("({0}){1} * ({0}){2}", type, left, right);
                if (!contract.sparse) return fmt::format("{} + {}", sum, product);
                return fmt::format("{0} + (({1}){2} == 0 || ({1}){3} == 0 ? ({1})0 : {4})", sum,
                                   type, left, right, product);
              });
}

}  // namespace atunner::graph
