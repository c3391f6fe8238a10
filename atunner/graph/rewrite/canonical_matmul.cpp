#include <algorithm>
#include <string>
#include <utility>

#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// Sums over a constant of up to so many elements are written out as one expression.
constexpr int64_t kFew = 16;

/// The letters of a contraction's equation by their role in a batch of matrix products, in the
/// order that the axes should have.
struct Sides {
  std::string batch, m, n, k;

  std::string a() const { return batch + m + k; }
  std::string b() const { return batch + n + k; }
  std::string b_turned() const { return batch + k + n; }
  std::string c() const { return batch + m + n; }
};

/// The sides of an equation in which every summed letter is in both operands.
Sides SidesOf(const Equation& equation) {
  const std::string &a = equation.left, &b = equation.right, &c = equation.result;
  Sides sides;
  for (const char letter : c)
    (a.contains(letter) ? b.contains(letter) ? sides.batch : sides.m : sides.n) += letter;
  for (const char letter : a) sides.k += c.contains(letter) ? "" : std::string(1, letter);
  return sides;
}

/// The letters that are in one operand and nowhere else: sums that do not need the other operand.
std::string AloneIn(const Equation& equation) {
  const std::string all = equation.left + equation.right + equation.result;
  std::string alone = equation.left + equation.right;
  std::erase_if(alone, [&](char letter) { return std::ranges::count(all, letter) > 1; });
  return alone;
}

/// True if `text` contains these letters in this order.
bool IsWithin(const std::string& letters, const std::string& text) {
  size_t at = 0;
  return std::ranges::all_of(letters, [&](char letter) {
    at = text.find(letter, at);
    return at++ != std::string::npos;
  });
}

/// All letters of the equation, if one of its three terms has them in an order that fits the other
/// terms; otherwise an empty text.
std::string SpaceOf(const Equation& equation) {
  const std::string texts[] = {equation.left, equation.right, equation.result};
  for (const std::string& space : texts) {
    if (std::ranges::all_of(texts, [&](const std::string& each) { return IsWithin(each, space); }))
      return space;
  }
  return {};
}

Value Turned(GraphBuilder& builder, Value value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  std::vector<int64_t> order;
  for (const char letter : to) order.push_back(static_cast<int64_t>(from.find(letter)));
  return builder.Transpose(value, std::move(order));
}

/// The operand with the given letters in float32 or wider, with its axes in the order of `space`,
/// so that it can be broadcast to the shape of `space`.
Value Aligned(GraphBuilder& builder, Value operand, const std::string& letters,
              const std::string& space, DType dtype) {
  std::string order = space;
  std::erase_if(order, [&](char letter) { return !letters.contains(letter); });
  operand = Turned(builder, operand, letters, order);
  // Axes that are missing in front are broadcast; those in between need an extent of 1.
  const size_t first = order.empty() ? space.size() : space.find(order[0]);
  Shape shape(space.size() - first, Extent(1));
  for (size_t axis = 0; axis < order.size(); ++axis)
    shape[space.find(order[axis]) - first] = builder.TypeOf(operand).shape[axis];
  if (shape.size() != order.size()) operand = builder.Reshape(operand, shape);
  return builder.Cast(operand, ArithmeticType(dtype));
}

/// A contraction as a map, named `name` if that is not empty, and a sum over the products.
Value SumOfProducts(GraphBuilder& builder, const Equation& given, std::vector<Value> operands,
                    DType dtype, const std::string& name) {
  const Sides sides = SidesOf(given);
  std::string space = SpaceOf(given);
  if (space.empty()) space = sides.c() + sides.k;
  operands[0] = Aligned(builder, operands[0], given.left, space, dtype);
  operands[1] = Aligned(builder, operands[1], given.right, space, dtype);
  Value sum = builder.Map("a * b", std::move(operands));
  if (!name.empty()) builder.Name(sum, name);
  std::vector<int64_t> gone;
  std::string left;
  for (const char letter : space) {
    if (given.result.contains(letter))
      left += letter;
    else
      gone.push_back(static_cast<int64_t>(space.find(letter)));
  }
  if (!gone.empty()) sum = builder.Reduce(Combine::kSum, sum, std::move(gone));
  return Turned(builder, builder.Cast(sum, dtype), left, given.result);
}

std::string WithoutOnes(const std::string& letters, const Shape& shape) {
  std::string left;
  for (size_t axis = 0; axis < letters.size(); ++axis)
    left += shape[axis].one() ? "" : letters.substr(axis, 1);
  return left;
}
Value Squeezed(GraphBuilder& builder, Value value) {
  Shape shape = builder.TypeOf(value).shape;
  std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
  return builder.Reshape(value, shape);
}

/// Replaces contractions in which one operand has no axis of its own (matrix times vector); axes of
/// extent 1 do not count.
class VectorProductRewriter : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* contract = node.As<Contract>();
    const auto lies = [&](NodeId operand) {
      return graph_.node(operand).As<Input>() || graph_.node(operand).As<Map>();
    };
    if (!contract || contract->sparse || !std::ranges::all_of(node.operands, lies))
      return builder_.Copy(node, std::move(operands));
    const Equation all = ParsedEquation(contract->equation);
    const Equation equation{WithoutOnes(all.left, builder_.TypeOf(operands[0]).shape),
                            WithoutOnes(all.right, builder_.TypeOf(operands[1]).shape),
                            WithoutOnes(all.result, node.type.shape)};
    if (SpaceOf(equation).empty()) return builder_.Copy(node, std::move(operands));
    const bool squeezed = equation.left != all.left || equation.right != all.right;
    if (squeezed) operands = {Squeezed(builder_, operands[0]), Squeezed(builder_, operands[1])};
    // The sum has the node's own name.
    const Value sum = SumOfProducts(builder_, equation, std::move(operands), node.type.dtype,
                                    node.name.empty() ? "" : node.name + "_each");
    return squeezed ? builder_.Reshape(sum, node.type.shape) : sum;
  }
};

/// Makes contractions canonical. Axes of extent 1 are removed first, because they may be anywhere,
/// and added again at the end.
class MatmulCanonicaliser : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* contract = node.As<Contract>();
    if (contract == nullptr) return builder_.Copy(node, std::move(operands));
    const Equation letters = ParsedEquation(contract->equation);
    const Equation given{WithoutOnes(letters.left, operands[0]),
                         WithoutOnes(letters.right, operands[1]),
                         graph::WithoutOnes(letters.result, node.type.shape)};
    const bool alone = !AloneIn(given).empty();
    const auto few = [&](NodeId operand) {
      return graph_.node(operand).As<Constant>() &&
             ElementCount(graph_.node(operand).type.shape).factor() <= kFew;
    };
    if (!alone && !contract->sparse && std::ranges::any_of(node.operands, few))
      return SumOfProducts(builder_, letters, std::move(operands), node.type.dtype, "");
    if (!alone && Fits(given)) return builder_.Copy(node, std::move(operands));
    if (contract->sparse && (alone || IsThin(given)))
      return builder_.Copy(node, std::move(operands));
    operands = {Squeezed(builder_, operands[0]), Squeezed(builder_, operands[1])};
    const Value made = alone ? SummedFirst(given, std::move(operands), node.type.dtype)
                             : Made(*contract, given, std::move(operands), node.type.dtype);
    return builder_.Reshape(made, node.type.shape);
  }

  /// Sums each operand over the axes that only it has, before the operands are multiplied.
  Value SummedFirst(Equation given, std::vector<Value> operands, DType dtype) {
    const std::string alone = AloneIn(given);
    const DType wide = ArithmeticType(dtype);
    std::string* const letters[] = {&given.left, &given.right};
    for (size_t i = 0; i < 2; ++i) {
      std::vector<int64_t> gone;
      for (size_t axis = 0; axis < letters[i]->size(); ++axis) {
        if (alone.contains((*letters[i])[axis])) gone.push_back(static_cast<int64_t>(axis));
      }
      operands[i] = builder_.Cast(operands[i], wide);
      if (!gone.empty()) operands[i] = builder_.Reduce(Combine::kSum, operands[i], std::move(gone));
      std::erase_if(*letters[i], [&](char letter) { return alone.contains(letter); });
    }
    return builder_.Cast(Made(Contract{.as = wide}, given, std::move(operands), wide), dtype);
  }

  Value Made(const Contract& contract, const Equation& given, std::vector<Value> operands,
             DType dtype) {
    if (IsThin(given)) return SumOfProducts(builder_, given, std::move(operands), dtype, "");
    // The operands are swapped if the result then needs no transpose.
    const Equation turned = Swapped(given);
    if (SidesOf(given).c() == given.result || SidesOf(turned).c() != given.result)
      return Product(contract, given, SidesOf(given), operands);
    std::swap(operands[0], operands[1]);
    return Product(contract, turned, SidesOf(turned), operands);
  }

  Value Product(const Contract& contract, const Equation& given, const Sides& sides,
                const std::vector<Value>& operands) {
    // Tensor cores read 8-bit operands with the depth innermost.
    const bool keeps = given.right == sides.b_turned() &&
                       SizeOf(builder_.TypeOf(operands[1]).dtype) > 1;
    const std::string b = keeps ? sides.b_turned() : sides.b();
    const Value left = Turned(builder_, operands[0], given.left, sides.a());
    const Value right = Turned(builder_, operands[1], given.right, b);
    const Value product = builder_.Contract(sides.a() + "," + b + "->" + sides.c(), left, right,
                                            contract.as, contract.sparse);
    return Turned(builder_, product, sides.c(), given.result);
  }

  static Equation Swapped(const Equation& given) { return {given.right, given.left, given.result}; }
  static bool IsThin(const Equation& given) {
    const Sides sides = SidesOf(given);
    return sides.m.empty() || sides.n.empty() || sides.k.empty();
  }
  /// True if the contraction is a batch of matrix products already, perhaps with swapped operands.
  static bool Fits(const Equation& given) {
    return std::ranges::any_of(std::vector{given, Swapped(given)}, [](const Equation& each) {
      const Sides sides = SidesOf(each);
      return each.left == sides.a() &&
             (each.right == sides.b() || each.right == sides.b_turned()) &&
             each.result == sides.c() && !sides.n.empty() && !sides.k.empty();
    });
  }

  std::string WithoutOnes(const std::string& letters, Value value) const {
    return graph::WithoutOnes(letters, builder_.TypeOf(value).shape);
  }
};

}  // namespace

ValidGraph WithoutVectorProducts(const ValidGraph& graph) {
  return Simplify(VectorProductRewriter(graph).Run());
}
ValidGraph WithCanonicalMatmuls(const ValidGraph& graph) {
  return MatmulCanonicaliser(graph).Run();
}

}  // namespace atunner::graph
