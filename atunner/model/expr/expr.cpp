#include "atunner/model/expr/expr.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "atunner/model/expr/expr_parser.h"
#include "atunner/model/expr/integers.h"

namespace atunner {
namespace {

using Node = Expr::Node;
using Kind = Node::Kind;

std::unexpected<Error> Bad(std::string what) { return Invalid(std::move(what)); }

bool IsInteger(const Value& value) {
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<bool>(value);
}
int64_t AsInteger(const Value& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b;
  return std::get<int64_t>(value);
}

Result<Value> PowerOfIntegers(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  const std::optional<int64_t> power = IntegerPower(base, exponent);
  return power ? Result<Value>(*power) : Bad("integer overflow in **");
}

Result<Value> IntegerBinary(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+")
    return __builtin_add_overflow(a, b, &result) ? Result<Value>(Bad("integer overflow in +"))
                                                 : Value(result);
  if (op == "-")
    return __builtin_sub_overflow(a, b, &result) ? Result<Value>(Bad("integer overflow in -"))
                                                 : Value(result);
  if (op == "*")
    return __builtin_mul_overflow(a, b, &result) ? Result<Value>(Bad("integer overflow in *"))
                                                 : Value(result);
  if (op == "**") return PowerOfIntegers(a, b);
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "<<" || op == ">>") {
    if (b < 0 || b > 62) return Bad("shift by " + std::to_string(b));
    return op == "<<" ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : a >> b;
  }
  if (b == 0) return Bad("division by zero");
  if (b == -1 && a == INT64_MIN) return Bad("integer overflow in division");
  if (op == "//") return FloorDivide(a, b);
  if (op == "%") return a - FloorDivide(a, b) * b;
  // `/` of integers that divide stays an integer, so that grid sizes written with `/` work as their
  // authors meant.
  if (a % b == 0) return a / b;
  return static_cast<double>(a) / static_cast<double>(b);
}

Result<Value> RealBinary(const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (op == "/" || op == "//" || op == "%") {
    if (b == 0) return Bad("division by zero");
    if (op == "/") return a / b;
    const double floored = std::floor(a / b);
    return op == "//" ? floored : a - floored * b;
  }
  return Bad("operator " + op + " needs integers");
}

Result<Value> ApplyBinary(const std::string& op, const Value& a, const Value& b) {
  if (std::holds_alternative<std::string>(a) || std::holds_alternative<std::string>(b)) {
    return Bad("operator " + op + " does not take text");
  }
  if (IsInteger(a) && IsInteger(b)) return IntegerBinary(op, AsInteger(a), AsInteger(b));
  return RealBinary(op, ToDouble(a), ToDouble(b));
}

Result<bool> Compare(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return LooselyEqual(a, b);
  if (op == "!=") return !LooselyEqual(a, b);
  if (std::holds_alternative<std::string>(a) != std::holds_alternative<std::string>(b))
    return Bad("cannot compare text with a number");
  const auto order = [&]() -> int {
    if (const auto* text = std::get_if<std::string>(&a))
      return text->compare(std::get<std::string>(b));
    if (IsInteger(a) && IsInteger(b))
      return AsInteger(a) < AsInteger(b) ? -1 : AsInteger(a) > AsInteger(b);
    return ToDouble(a) < ToDouble(b) ? -1 : ToDouble(a) > ToDouble(b);
  }();
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

Result<Value> WholeNumber(double value) {
  if (!(std::fabs(value) < 9.2e18)) return Bad("number does not fit 64 bits");
  return static_cast<int64_t>(value);
}

Result<Value> Fold(const std::string& name, const std::vector<Value>& args) {
  if (args.empty()) return Bad(name + "() needs an argument");
  Value best = args[0];
  for (const Value& arg : args) {
    ATUNNER_TRY(const bool less, Compare("<", arg, best));
    ATUNNER_TRY(const bool more, Compare(">", arg, best));
    if (name == "min" ? less : more) best = arg;
  }
  return best;
}

Result<Value> CallOne(const std::string& name, const Value& x) {
  const double real = ToDouble(x);
  if (std::isnan(real)) return Bad(name + "() needs a number");
  if (name == "abs") return IsInteger(x) ? Value(std::abs(AsInteger(x))) : Value(std::fabs(real));
  if (name == "ceil") return IsInteger(x) ? Result<Value>(x) : WholeNumber(std::ceil(real));
  if (name == "floor") return IsInteger(x) ? Result<Value>(x) : WholeNumber(std::floor(real));
  if (name == "round") return IsInteger(x) ? Result<Value>(x) : WholeNumber(std::nearbyint(real));
  if (name == "int")
    return IsInteger(x) ? Result<Value>(AsInteger(x)) : WholeNumber(std::trunc(real));
  if (name == "float") return real;
  if (name == "bool") return real != 0;
  if (name == "sqrt") return std::sqrt(real);
  if (name == "log2") return std::log2(real);
  return Bad("unknown function " + name + "()");
}

Result<Value> Position(const Value& order, const Value& item) {
  const auto* text = std::get_if<std::string>(&order);
  if (text == nullptr) return Bad("position() needs a permutation and one of its items");
  const std::string wanted = IsInteger(item) ? std::to_string(AsInteger(item)) : ToString(item);
  const int64_t at = PositionIn(*text, wanted);
  if (at < 0) return Bad("position(): '" + wanted + "' is not in '" + *text + "'");
  return at;
}

Result<Value> Call(const std::string& name, const std::vector<Value>& args) {
  if (name == "min" || name == "max") return Fold(name, args);
  if (name == "ceil_div" || name == "cdiv") {
    if (args.size() != 2 || !IsInteger(args[0]) || !IsInteger(args[1]))
      return Bad("ceil_div() needs two integers");
    if (AsInteger(args[1]) == 0) return Bad("division by zero");
    return -FloorDivide(-AsInteger(args[0]), AsInteger(args[1]));
  }
  if (name == "pow" && args.size() == 2) return ApplyBinary("**", args[0], args[1]);
  if (name == "position" && args.size() == 2) return Position(args[0], args[1]);
  if (args.size() != 1)
    return Bad("unknown function " + name + "() with " + std::to_string(args.size()) +
               " arguments");
  return CallOne(name, args[0]);
}

Result<Value> Eval(const Node& node, const Bindings& bindings);

Result<Value> EvalCompare(const Node& node, const Bindings& bindings) {
  ATUNNER_TRY(Value left, Eval(node.children[0], bindings));
  for (size_t i = 0; i < node.compare_ops.size(); ++i) {
    ATUNNER_TRY(Value right, Eval(node.children[i + 1], bindings));
    ATUNNER_TRY(const bool holds, Compare(node.compare_ops[i], left, right));
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Result<Value> EvalIn(const Node& node, const Bindings& bindings) {
  ATUNNER_TRY(const Value needle, Eval(node.children[0], bindings));
  bool found = false;
  for (size_t i = 1; i < node.children.size() && !found; ++i) {
    ATUNNER_TRY(const Value item, Eval(node.children[i], bindings));
    found = LooselyEqual(needle, item);
  }
  return found == (node.op == "in");
}

Result<Value> EvalUnary(const Node& node, const Bindings& bindings) {
  ATUNNER_TRY(const Value operand, Eval(node.children[0], bindings));
  if (node.op == "not") return !Truthy(operand);
  if (node.op == "~")
    return IsInteger(operand) ? Result<Value>(~AsInteger(operand)) : Bad("~ needs an integer");
  return ApplyBinary("-", Value(int64_t{0}), operand);
}

Result<Value> EvalLogical(const Node& node, const Bindings& bindings) {
  ATUNNER_TRY(Value left, Eval(node.children[0], bindings));
  const bool decided = Truthy(left) == (node.kind == Kind::kOr);
  if (decided) return left;
  return Eval(node.children[1], bindings);
}

Result<Value> Eval(const Node& node, const Bindings& bindings) {
  switch (node.kind) {
    case Kind::kConstant:
      return node.constant;
    case Kind::kName: {
      Value scratch;
      const Value* value = bindings.Find(node.name, scratch);
      if (value == nullptr) return Bad("unknown name '" + node.name + "'");
      return *value;
    }
    case Kind::kUnary:
      return EvalUnary(node, bindings);
    case Kind::kAnd:
    case Kind::kOr:
      return EvalLogical(node, bindings);
    case Kind::kCompare:
      return EvalCompare(node, bindings);
    case Kind::kIn:
      return EvalIn(node, bindings);
    case Kind::kConditional: {
      ATUNNER_TRY(const Value condition, Eval(node.children[0], bindings));
      return Eval(node.children[Truthy(condition) ? 1 : 2], bindings);
    }
    case Kind::kBinary: {
      ATUNNER_TRY(const Value a, Eval(node.children[0], bindings));
      ATUNNER_TRY(const Value b, Eval(node.children[1], bindings));
      return ApplyBinary(node.op, a, b);
    }
    case Kind::kCall: {
      std::vector<Value> args;
      for (const Node& child : node.children) {
        ATUNNER_TRY(Value arg, Eval(child, bindings));
        args.push_back(std::move(arg));
      }
      return Call(node.op, args);
    }
  }
  return Bad("unknown expression");
}

void CollectNames(const Node& node, std::vector<std::string>& names) {
  if (node.kind == Kind::kName && std::ranges::find(names, node.name) == names.end())
    names.push_back(node.name);
  for (const Node& child : node.children) CollectNames(child, names);
}

}  // namespace

Bindings& Bindings::Add(const Dims& dims) {
  dims_.push_back(&dims);
  return *this;
}

Bindings& Bindings::Add(const Attributes& values) {
  attributes_.push_back(&values);
  return *this;
}

Bindings& Bindings::Add(std::span<const std::string> names, std::span<const Value> values) {
  ATUNNER_CHECK(names.size() == values.size());
  parallel_.push_back({names, values});
  return *this;
}

const Value* Bindings::Find(std::string_view name, Value& scratch) const {
  for (const Parallel& piece : parallel_) {
    const auto at = std::ranges::find(piece.names, name);
    if (at != piece.names.end())
      return &piece.values[static_cast<size_t>(at - piece.names.begin())];
  }
  for (const Dims* dims : dims_) {
    if (const auto at = dims->find(name); at != dims->end()) {
      scratch = at->second;
      return &scratch;
    }
  }
  for (const Attributes* attributes : attributes_) {
    if (const auto at = attributes->find(name); at != attributes->end()) return &at->second;
  }
  return nullptr;
}

Expr::Expr(int64_t constant) : text_(std::to_string(constant)) {
  root_ = std::make_shared<const Node>(Node{.kind = Kind::kConstant,
                                            .op = {},
                                            .constant = constant,
                                            .name = {},
                                            .children = {},
                                            .compare_ops = {}});
}

Result<Expr> Expr::Parse(std::string_view text) {
  ATUNNER_TRY(Node root, ParseExprTree(text));
  Expr expr;
  expr.text_ = std::string(text);
  expr.root_ = std::make_shared<const Node>(std::move(root));
  return expr;
}

Expr Expr::MustParse(std::string_view text) {
  auto expr = Parse(text);
  ATUNNER_CHECK(expr.has_value());
  return *std::move(expr);
}

Result<Value> Expr::Evaluate(const Bindings& bindings) const {
  auto value = Eval(*root_, bindings);
  if (!value) value.error().where = "expression '" + text_ + "'";
  return value;
}

Result<int64_t> Expr::EvaluateInt(const Bindings& bindings) const {
  ATUNNER_TRY(const Value value, Evaluate(bindings));
  if (IsInteger(value)) return AsInteger(value);
  const double real = ToDouble(value);
  if (std::isnan(real) || real != std::floor(real) || std::fabs(real) > 9e18) {
    return Invalid("gives " + ToString(value) + ", a whole number is needed",
                   "expression '" + text_ + "'");
  }
  return static_cast<int64_t>(real);
}

Result<bool> Expr::EvaluateBool(const Bindings& bindings) const {
  ATUNNER_TRY(const Value value, Evaluate(bindings));
  return Truthy(value);
}

std::vector<std::string> Expr::Names() const {
  std::vector<std::string> names;
  CollectNames(*root_, names);
  return names;
}

}  // namespace atunner
