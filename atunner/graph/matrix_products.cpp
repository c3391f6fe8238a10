#include <algorithm>
#include <string>
#include <utility>

#include "atunner/graph/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

/// A contraction as many products of matrices: letters of its equation, in the order in which they should lie.
struct Sides {
  std::string batch, m, n, k;

  std::string a() const { return batch + m + k; }
  std::string b() const { return batch + n + k; }
  std::string b_turned() const { return batch + k + n; }
  std::string c() const { return batch + m + n; }
};

/// nullopt where one operand alone is summed over an axis.
std::optional<Sides> SidesOf(const Equation& equation) {
  const std::string &a = equation.left, &b = equation.right, &c = equation.result;
  Sides sides;
  for (const char letter : c) (a.contains(letter) ? b.contains(letter) ? sides.batch : sides.m : sides.n) += letter;
  for (const char letter : a) {
    if (c.contains(letter)) continue;
    if (!b.contains(letter)) return std::nullopt;
    sides.k += letter;
  }
  const bool alone = std::ranges::any_of(b, [&](char letter) { return !a.contains(letter) && !c.contains(letter); });
  return alone ? std::nullopt : std::optional(std::move(sides));
}

/// Axes of one element are left out meanwhile, since they may be anywhere.
class ProductMaker : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* contract = node.As<Contract>();
    if (contract == nullptr) return Copy(node, std::move(operands));
    const Equation letters = ParsedEquation(contract->equation);
    const Equation given{WithoutOnes(letters.left, operands[0]), WithoutOnes(letters.right, operands[1]),
                         WithoutOnes(letters.result, node.type.shape)};
    const Equation turned{given.right, given.left, given.result};
    const auto straight = SidesOf(given), swapped = SidesOf(turned);
    if (!straight || Fits(given, *straight) || Fits(turned, *swapped)) return Copy(node, std::move(operands));
    const bool thin = straight->m.empty() || straight->n.empty() || straight->k.empty();
    if (thin && contract->sparse) return Copy(node, std::move(operands));
    operands = {Squeezed(operands[0]), Squeezed(operands[1])};
    // The second with the first where that leaves nothing to turn in the result.
    const bool swaps = straight->c() != given.result && swapped->c() == given.result;
    if (swaps) std::swap(operands[0], operands[1]);
    const Equation& equation = swaps ? turned : given;
    const Sides& sides = swaps ? *swapped : *straight;
    const Value product = thin ? Sum(node.type.dtype, equation, sides, std::move(operands))
                               : Product(*contract, equation, sides, operands);
    return builder_.Reshape(product, node.type.shape);
  }

  Value Product(const Contract& contract, const Equation& given, const Sides& sides,
                const std::vector<Value>& operands) {
    // 8-bit types are multiplied with neighbours along the depth alone.
    const bool keeps = given.right == sides.b_turned() && SizeOf(builder_.TypeOf(operands[1]).dtype) > 1;
    const std::string b = keeps ? sides.b_turned() : sides.b();
    const Value left = Turned(operands[0], given.left, sides.a());
    const Value right = Turned(operands[1], given.right, b);
    const Value product =
        builder_.Contract(sides.a() + "," + b + "->" + sides.c(), left, right, contract.as, contract.sparse);
    return Turned(product, sides.c(), given.result);
  }

  /// What is no product of matrices: element by element, then sums.
  Value Sum(DType dtype, const Equation& given, const Sides& sides, std::vector<Value> operands) {
    const std::string space = sides.c() + sides.k;
    const std::string* letters[] = {&given.left, &given.right};
    for (size_t i = 0; i < 2; ++i) {
      std::string order;
      for (const char letter : space) order += letters[i]->contains(letter) ? std::string(1, letter) : "";
      operands[i] = Turned(operands[i], *letters[i], order);
      Shape shape;
      for (const char letter : space) {
        const size_t axis = order.find(letter);
        shape.push_back(axis == std::string::npos ? Extent(1) : builder_.TypeOf(operands[i]).shape[axis]);
      }
      operands[i] = builder_.Cast(builder_.Reshape(operands[i], shape), ArithmeticType(dtype));
    }
    Value sum = builder_.Map("a * b", operands);
    std::vector<int64_t> depth;
    for (size_t axis = sides.c().size(); axis < space.size(); ++axis) depth.push_back(static_cast<int64_t>(axis));
    if (!depth.empty()) sum = builder_.Reduce(Combine::kSum, sum, depth);
    return Turned(builder_.Cast(sum, dtype), sides.c(), given.result);
  }

  Value Turned(Value value, const std::string& from, const std::string& to) {
    if (from == to) return value;
    std::vector<int64_t> order;
    for (const char letter : to) order.push_back(static_cast<int64_t>(from.find(letter)));
    return builder_.Transpose(value, std::move(order));
  }
  Value Squeezed(Value value) {
    Shape shape = builder_.TypeOf(value).shape;
    std::erase_if(shape, [](const Extent& extent) { return extent.one(); });
    return builder_.Reshape(value, shape);
  }

  static bool Fits(const Equation& given, const Sides& sides) {
    return given.left == sides.a() && (given.right == sides.b() || given.right == sides.b_turned()) &&
           given.result == sides.c() && !sides.n.empty() && !sides.k.empty();
  }
  std::string WithoutOnes(const std::string& letters, Value value) const {
    return WithoutOnes(letters, builder_.TypeOf(value).shape);
  }
  static std::string WithoutOnes(const std::string& letters, const Shape& shape) {
    std::string left;
    for (size_t axis = 0; axis < letters.size(); ++axis) left += shape[axis].one() ? "" : letters.substr(axis, 1);
    return left;
  }
};

}  // namespace

ValidGraph WithMatrixProducts(const ValidGraph& graph) { return ProductMaker(graph).Run(); }

}  // namespace atunner::graph
