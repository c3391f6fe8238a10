#include "atunner/intake/check_sizes.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace atunner {
namespace {

// Elements of all tensors at a check size: well under a second on the virtual GPU.
constexpr int64_t kCheckElements = 40'000;
constexpr int64_t kMostCheckElements = 1'000'000;  // if no fewer are possible: some seconds
constexpr int64_t kSmallest = 32;

int64_t ElementsAt(const UserKernel& kernel, const Dims& dims) {
  int64_t total = 0;
  for (const ArgSpec& arg : kernel.spec.args) {
    if (arg.role == Role::kScalar) continue;
    const auto shape = ShapeOf(arg, kernel.spec, dims);
    total += shape ? shape->elements : 0;
  }
  return total;
}

int64_t PowerOfTwoIn(int64_t value) { return value & -value; }

/// The largest value by which a grid expression divides, with all parameters at their largest.
int64_t LargestDivisor(const Expr::Node& node, const Bindings& largest) {
  int64_t divisor = 1;
  const bool divides = (node.kind == Expr::Node::Kind::kBinary && node.op == "//") ||
                       (node.kind == Expr::Node::Kind::kCall && node.op == "ceil_div");
  if (divides && node.children.size() == 2) {
    const auto value = WholeOf(node.children[1], largest, /*sums=*/true);
    if (value) divisor = std::max<int64_t>(divisor, *value);
  }
  for (const Expr::Node& child : node.children)
    divisor = std::max(divisor, LargestDivisor(child, largest));
  return divisor;
}

int64_t LargestDivisor(const UserKernel& kernel) {
  std::vector<Value> largest;
  for (const Parameter& parameter : kernel.space.parameters)
    largest.push_back(*std::ranges::max_element(parameter.values, {}, ToDouble));
  const std::vector<std::string> names = kernel.space.Names();
  const Bindings bindings = Bindings(kernel.spec.dims).Add(names, largest);
  int64_t divisor = 1;
  for (const LaunchStep& step : kernel.plan.steps) {
    for (const Expr& extent : step.grid)
      divisor = std::max(divisor, LargestDivisor(extent.root(), bindings));
  }
  return divisor;
}

/// Halves the largest of the sizes that may still be halved; false if none may.
bool HalveOne(const UserKernel& kernel, const std::set<std::string>& varied, int64_t divisor,
              Dims& dims) {
  int64_t* largest = nullptr;
  for (auto& [name, value] : dims) {
    const int64_t kept = std::min(PowerOfTwoIn(kernel.spec.dims.at(name)), divisor);
    const bool may = varied.contains(name) && value % 2 == 0 && value / 2 >= kSmallest &&
                     PowerOfTwoIn(value / 2) >= kept;
    if (may && (largest == nullptr || value > *largest)) largest = &value;
  }
  if (largest == nullptr) return false;
  *largest /= 2;
  return true;
}

bool HasNumber(const std::string& text, int64_t value) {
  const std::string number = std::to_string(value);
  const auto part_of_word = [&](size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (size_t at = text.find(number); at != std::string::npos; at = text.find(number, at + 1)) {
    if ((at == 0 || !part_of_word(at - 1)) && !part_of_word(at + number.size())) return true;
  }
  return false;
}

}  // namespace

std::optional<int64_t> WholeOf(const Expr::Node& node, const Bindings& bindings, bool sums) {
  using Kind = Expr::Node::Kind;
  Value scratch;
  const Value* value = node.kind == Kind::kConstant ? &node.constant
                       : node.kind == Kind::kName   ? bindings.Find(node.name, scratch)
                                                    : nullptr;
  if (value != nullptr) {
    const auto* whole = std::get_if<int64_t>(value);
    return whole ? std::optional(*whole) : std::nullopt;
  }
  const bool adds = node.op == "+" || node.op == "-";
  if (node.kind != Kind::kBinary || (node.op != "*" && !(adds && sums))) return std::nullopt;
  const auto left = WholeOf(node.children[0], bindings, sums),
             right = WholeOf(node.children[1], bindings, sums);
  if (!left || !right) return std::nullopt;
  return node.op == "*" ? *left * *right : node.op == "+" ? *left + *right : *left - *right;
}

std::set<std::string> FreeSizesOf(const UserKernel& kernel) {
  std::set<std::string> reach;
  for (const LaunchStep& step : kernel.plan.steps) {
    for (const ArgBinding& arg : step.args) {
      if (arg.kind != ArgBinding::Kind::kScalar || IsFloat(arg.dtype)) continue;
      for (const std::string& name : arg.value.Names()) reach.insert(name);
    }
  }
  std::erase_if(reach, [&](const std::string& name) {
    const auto size = kernel.spec.dims.find(name);
    return size == kernel.spec.dims.end() || HasNumber(kernel.source.text, size->second);
  });
  for (const LaunchStep& step : kernel.plan.steps) {
    for (const Expr& extent : step.grid) {
      const auto names = extent.Names();
      const bool follows = std::ranges::any_of(
          names, [&](const std::string& name) { return reach.contains(name); });
      if (extent.text() != "1" && !follows) return {};
    }
  }
  return reach;
}

std::vector<Dims> HalvedCheckSizes(const UserKernel& kernel, const std::set<std::string>& varied) {
  const int64_t divisor = LargestDivisor(kernel);
  Dims dims = kernel.spec.dims;
  while (ElementsAt(kernel, dims) > kCheckElements && HalveOne(kernel, varied, divisor, dims)) {
  }
  const int64_t elements = ElementsAt(kernel, dims);
  if (dims == kernel.spec.dims || elements == 0 || elements > kMostCheckElements) return {};
  Dims smaller = dims;
  if (!HalveOne(kernel, varied, divisor, smaller)) return {dims};
  return {smaller, dims};
}

}  // namespace atunner
