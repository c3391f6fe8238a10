#include <algorithm>
#include <string>
#include <utility>

#include "atunner/graph/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner::graph {
namespace {

bool Has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

/// A contraction as many products of matrices: letters of its equation, in the order in which they should lie.
struct Sides {
  std::string batch, m, n, k;

  std::string a() const { return batch + m + k; }
  std::string b() const { return batch + n + k; }
  std::string b_turned() const { return batch + k + n; }
  std::string c() const { return batch + m + n; }
};

/// nullopt where one operand alone is summed over an axis, and where there is no matrix on either side.
std::optional<Sides> SidesOf(const Equation& equation) {
  const auto& [a, b, c] = equation;
  Sides sides;
  for (const char letter : c) (Has(a, letter) ? Has(b, letter) ? sides.batch : sides.m : sides.n) += letter;
  for (const char letter : a) {
    if (Has(c, letter)) continue;
    if (!Has(b, letter)) return std::nullopt;
    sides.k += letter;
  }
  const bool alone = std::ranges::any_of(b, [&](char letter) { return !Has(a, letter) && !Has(c, letter); });
  if (alone || sides.m.empty() || sides.n.empty() || sides.k.empty()) return std::nullopt;
  return sides;
}

class ProductMaker : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Value Rewrite(NodeId id, std::vector<Value> operands) override {
    const Node& node = graph_.node(id);
    const auto* contract = node.As<Contract>();
    if (contract == nullptr) return Copy(node, std::move(operands));
    const Equation given = ParsedEquation(contract->equation);
    ones_.clear();
    AddOnes(given.left, builder_.TypeOf(operands[0]).shape);
    AddOnes(given.right, builder_.TypeOf(operands[1]).shape);
    const Equation turned{given.right, given.left, given.result};
    const auto straight = SidesOf(given), swapped = SidesOf(turned);
    if (!straight || Fits(given, *straight) || Fits(turned, *swapped)) return Copy(node, std::move(operands));
    // Operands change places where that leaves the result as it is.
    if (!Same(straight->c(), given.result) && Same(swapped->c(), given.result)) {
      std::swap(operands[0], operands[1]);
      return Product(*contract, turned, *swapped, operands);
    }
    return Product(*contract, given, *straight, operands);
  }

  Value Product(const Contract& contract, const Equation& given, const Sides& sides,
                const std::vector<Value>& operands) {
    // 8-bit types are multiplied with neighbours along the depth alone.
    const bool keeps = Same(given.right, sides.b_turned()) && SizeOf(builder_.TypeOf(operands[1]).dtype) > 1;
    const std::string b = keeps ? sides.b_turned() : sides.b();
    const Value left = Turned(operands[0], given.left, sides.a());
    const Value right = Turned(operands[1], given.right, b);
    const Value product =
        builder_.Contract(sides.a() + "," + b + "->" + sides.c(), left, right, contract.as, contract.sparse);
    return Turned(product, sides.c(), given.result);
  }

  Value Turned(Value value, const std::string& from, const std::string& to) {
    if (from == to) return value;
    std::vector<int64_t> order;
    for (const char letter : to) order.push_back(static_cast<int64_t>(from.find(letter)));
    return builder_.Transpose(value, std::move(order));
  }

  bool Fits(const Equation& given, const Sides& sides) const {
    return Same(given.left, sides.a()) && (Same(given.right, sides.b()) || Same(given.right, sides.b_turned())) &&
           Same(given.result, sides.c());
  }
  /// But for axes of one element, which may be anywhere.
  bool Same(std::string one, std::string other) const {
    for (std::string* letters : {&one, &other})
      std::erase_if(*letters, [&](char letter) { return Has(ones_, letter); });
    return one == other;
  }
  void AddOnes(const std::string& letters, const Shape& shape) {
    for (size_t axis = 0; axis < letters.size(); ++axis) {
      if (shape[axis].one()) ones_ += letters[axis];
    }
  }

  std::string ones_;  ///< letters of axes of one element
};

}  // namespace

ValidGraph WithMatrixProducts(const ValidGraph& graph) { return ProductMaker(graph).Run(); }

}  // namespace atunner::graph
