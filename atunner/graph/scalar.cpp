#include "atunner/graph/scalar.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "atunner/graph/scalar_math.h"
#include "atunner/model/value/dtype.h"

namespace atunner::graph {
namespace {

constexpr ScalarOpInfo kInfos[] = {
#define ATUNNER_SCALAR(id, name, arity, rule, on_reals, on_wholes, cuda, da, db) \
  {name, arity, ScalarRule::rule, cuda, {da, db}},
#include "atunner/graph/scalar_op.def"
#undef ATUNNER_SCALAR
};

bool Serves(ScalarRule rule, DType dtype) {
  const DTypeKind kind = KindOf(dtype);
  switch (rule) {
    case ScalarRule::kNumber:
      return kind != DTypeKind::kBool;
    case ScalarRule::kReal:
    case ScalarRule::kTest:
      return kind == DTypeKind::kFloat;
    case ScalarRule::kBits:
      return kind != DTypeKind::kFloat;
    case ScalarRule::kShift:
      return IsWhole(dtype);
    case ScalarRule::kCompare:
      return true;
  }
  return false;
}

std::string_view Wants(ScalarRule rule) {
  switch (rule) {
    case ScalarRule::kNumber:
      return "floats or integers; cast(x, float32) makes a number of a bool";
    case ScalarRule::kReal:
    case ScalarRule::kTest:
      return "floats; cast(x, float32) makes one, floor_div divides integers";
    case ScalarRule::kBits:
      return "integers or bool";
    case ScalarRule::kShift:
      return "integers";
    case ScalarRule::kCompare:
      return "two of one type";
  }
  return "";
}

}  // namespace

const ScalarOpInfo& InfoOf(ScalarOp op) { return kInfos[static_cast<size_t>(op)]; }

int ArityOf(ScalarOp op) {
  if (IsTableOp(op)) return InfoOf(op).arity;
  if (op == ScalarOp::kSelect) return 3;
  if (op == ScalarOp::kUniform) return 2;
  return op == ScalarOp::kCast || op == ScalarOp::kRoundTo ? 1 : 0;
}

std::optional<ScalarOp> FindScalarFunction(std::string_view name) {
  for (size_t i = 0; i < std::size(kInfos); ++i) {
    if (kInfos[i].name == name && std::isalpha(static_cast<unsigned char>(name[0])))
      return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

Cell Compute(ScalarOp op, bool is_real, Cell x, Cell y) {
  // Wrapping arithmetic is done unsigned and read as signed: int64 overflow is not undefined here.
  switch (op) {
    case ScalarOp::kAdd:
      if (!is_real)
        return Whole(
            static_cast<int64_t>(static_cast<uint64_t>(x.whole) + static_cast<uint64_t>(y.whole)));
      break;
    case ScalarOp::kSubtract:
      if (!is_real)
        return Whole(
            static_cast<int64_t>(static_cast<uint64_t>(x.whole) - static_cast<uint64_t>(y.whole)));
      break;
    case ScalarOp::kMultiply:
      if (!is_real)
        return Whole(
            static_cast<int64_t>(static_cast<uint64_t>(x.whole) * static_cast<uint64_t>(y.whole)));
      break;
    case ScalarOp::kNegate:
      if (!is_real) return Whole(static_cast<int64_t>(0 - static_cast<uint64_t>(x.whole)));
      break;
    case ScalarOp::kAbs:
      if (!is_real && x.whole < 0)
        return Whole(static_cast<int64_t>(0 - static_cast<uint64_t>(x.whole)));
      break;
    default:
      break;
  }
  const auto real_value = [&](double a, [[maybe_unused]] double b) -> Cell {
    switch (op) {
#define ATUNNER_SCALAR(id, name, arity, rule, on_reals, on_wholes, cuda, da, db)             \
  case ScalarOp::id:                                                                         \
    return ScalarRule::rule == ScalarRule::kCompare || ScalarRule::rule == ScalarRule::kTest \
               ? Whole(static_cast<int64_t>(on_reals))                                       \
               : Real(static_cast<double>(on_reals));
#include "atunner/graph/scalar_op.def"
#undef ATUNNER_SCALAR
      default:
        return Real(0);
    }
  };
  const auto whole_value = [&](int64_t a, [[maybe_unused]] int64_t b) -> Cell {
    switch (op) {
#define ATUNNER_SCALAR(id, name, arity, rule, on_reals, on_wholes, cuda, da, db) \
  case ScalarOp::id:                                                             \
    return Whole(static_cast<int64_t>(on_wholes));
#include "atunner/graph/scalar_op.def"
#undef ATUNNER_SCALAR
      default:
        return Whole(0);
    }
  };
  return is_real ? real_value(x.real, y.real) : whole_value(x.whole, y.whole);
}

uint32_t PhiloxWord(uint64_t key, uint64_t counter) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
        static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    std::ranges::copy(next, c);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c[0];
}

std::vector<int> Depths(std::span<const ScalarNode> nodes) {
  std::vector<int> depths;
  for (const ScalarNode& node : nodes) {
    int depth = 0;
    for (int arg : node.args) {
      if (arg >= 0) depth = std::max(depth, depths[arg] + 1);
    }
    depths.push_back(depth);
  }
  return depths;
}

int ScalarExpression::Depth() const { return Depths(nodes_).back(); }

bool ScalarExpression::Uses(ScalarOp op) const {
  return std::ranges::any_of(nodes_, [op](const ScalarNode& node) { return node.op == op; });
}

bool ScalarExpression::operator==(const ScalarExpression& other) const {
  return parameters_ == other.parameters_ &&
         std::ranges::equal(nodes_, other.nodes_, {}, &ScalarNode::Key, &ScalarNode::Key);
}

int ScalarBuilder::Intern(ScalarNode node) {
  const auto [at, fresh] = known_.try_emplace(node.Key(), static_cast<int>(nodes_.size()));
  if (fresh) nodes_.push_back(node);
  return at->second;
}

int ScalarBuilder::Parameter(int number) {
  return Intern({.op = ScalarOp::kParameter,
                 .dtype = parameters_[number],
                 .args = {-1, -1, -1},
                 .number = number});
}
int ScalarBuilder::Number(double value) {
  // A literal with `number` 1 has no type yet; it takes that of the other operand.
  return Intern(
      {.op = ScalarOp::kLiteral, .dtype = DType::kFloat64, .number = 1, .literal = Real(value)});
}
int ScalarBuilder::Literal(DType dtype, Cell value) {
  return Intern({.op = ScalarOp::kLiteral,
                 .dtype = dtype,
                 .literal = IsFloat(dtype) ? value : Rounded(dtype, value)});
}
int ScalarBuilder::AxisNode(ScalarOp op, int axis) {
  return Intern({.op = op, .dtype = DType::kInt64, .number = axis});
}

bool ScalarBuilder::IsLiteral(int index, double value) const {
  const ScalarNode& node = nodes_[index];
  return node.op == ScalarOp::kLiteral && ToReal(node.dtype, node.literal) == value;
}

Result<int> ScalarBuilder::As(int index, DType dtype) {
  if (!Flexible(index)) return index;
  const double value = nodes_[index].literal.real;
  if (!IsFloat(dtype) && ToReal(dtype, CellOf(dtype, value)) != value)
    return Invalid("the number " + std::to_string(value) + " is no " + std::string(Name(dtype)), {},
                   "cast the other operand to a float type");
  return Literal(dtype, CellOf(dtype, value));
}

/// Gives args[first], args[first + 1], … one type; literals without a type take it from the others.
Status ScalarBuilder::Unify(std::vector<int>& args, size_t first) {
  std::optional<DType> dtype;
  for (size_t i = first; i < args.size(); ++i) {
    if (Flexible(args[i])) continue;
    const DType mine = nodes_[args[i]].dtype;
    if (dtype && *dtype != mine)
      return Invalid(
          "operands of types " + std::string(Name(*dtype)) + " and " + std::string(Name(mine)), {},
          "cast(x, " + std::string(Name(*dtype)) + ") converts");
    dtype = mine;
  }
  if (!dtype) return {};
  for (size_t i = first; i < args.size(); ++i) {
    ATUNNER_TRY(args[i], As(args[i], *dtype));
  }
  return {};
}

Result<int> ScalarBuilder::Apply(ScalarOp op, std::vector<int> args) {
  const ScalarOpInfo& info = InfoOf(op);
  if (static_cast<int>(args.size()) != info.arity)
    return Invalid("'" + std::string(info.name) + "' takes " + std::to_string(info.arity) +
                   " operands, " + std::to_string(args.size()) + " given");
  ATUNNER_RETURN_IF_ERROR(Unify(args, 0));
  const DType dtype = nodes_[args[0]].dtype;
  if (!Serves(info.rule, dtype))
    return Invalid("'" + std::string(info.name) + "' of " + std::string(Name(dtype)), {},
                   "it takes " + std::string(Wants(info.rule)));
  const bool to_bool = info.rule == ScalarRule::kCompare || info.rule == ScalarRule::kTest;
  const DType result = to_bool ? DType::kBool : dtype;
  if (const auto folded = Folded(op, args, result)) return *folded;
  if (const auto simple = Simplified(op, args)) return *simple;
  ScalarNode node{.op = op, .dtype = result};
  std::ranges::copy(args, node.args.begin());
  return Intern(node);
}

std::optional<int> ScalarBuilder::Folded(ScalarOp op, const std::vector<int>& args, DType dtype) {
  for (int arg : args) {
    if (nodes_[arg].op != ScalarOp::kLiteral) return std::nullopt;
  }
  const ScalarNode& a = nodes_[args[0]];
  const Cell b = args.size() > 1 ? nodes_[args[1]].literal : Cell{};
  const Cell value = Compute(op, IsFloat(a.dtype), a.literal, b);
  const bool flexible = std::ranges::all_of(args, [this](int arg) { return Flexible(arg); });
  if (flexible && dtype != DType::kBool) return Number(value.real);
  return Literal(dtype, value);
}

/// Simplifications that change no bit of the result, such as a * 1.
std::optional<int> ScalarBuilder::Simplified(ScalarOp op, const std::vector<int>& args) {
  const auto apply = [this](ScalarOp inner, std::vector<int> operands) {
    return Apply(inner, std::move(operands)).value();
  };
  const int a = args[0];
  const int b = args.size() > 1 ? args[1] : -1;
  switch (op) {
    case ScalarOp::kMultiply:
      if (IsLiteral(a, 1)) return b;
      if (IsLiteral(b, 1)) return a;
      if (IsLiteral(b, -1)) return apply(ScalarOp::kNegate, {a});
      break;
    case ScalarOp::kDivide:
      if (IsLiteral(b, 1)) return a;
      break;
    case ScalarOp::kSubtract:
      if (IsLiteral(b, 0) && !std::signbit(ToReal(nodes_[b].dtype, nodes_[b].literal))) return a;
      break;
    case ScalarOp::kNegate:
      if (nodes_[a].op == ScalarOp::kNegate) return nodes_[a].args[0];
      break;
    case ScalarOp::kPower:
      if (IsLiteral(b, 1)) return a;
      if (IsLiteral(b, 2)) return apply(ScalarOp::kMultiply, {a, a});
      if (IsLiteral(b, 3))
        return apply(ScalarOp::kMultiply, {apply(ScalarOp::kMultiply, {a, a}), a});
      break;
    default:
      break;
  }
  return std::nullopt;
}

Result<int> ScalarBuilder::Select(int condition, int yes, int no) {
  if (nodes_[condition].dtype != DType::kBool)
    return Invalid("the condition of select is " + std::string(Name(nodes_[condition].dtype)), {},
                   "compare: select(x > 0, …)");
  std::vector<int> args = {condition, yes, no};
  ATUNNER_RETURN_IF_ERROR(Unify(args, 1));
  if (nodes_[condition].op == ScalarOp::kLiteral)
    return args[nodes_[condition].literal.whole != 0 ? 1 : 2];
  if (args[1] == args[2]) return args[1];
  if (Flexible(args[1]))
    return Invalid("select between two numbers has no type", {},
                   "write cast(1, float32) for one of them");
  return Intern({.op = ScalarOp::kSelect,
                 .dtype = nodes_[args[1]].dtype,
                 .args = {args[0], args[1], args[2]}});
}

Result<int> ScalarBuilder::Saturate(int value, DType dtype) {
  if (!IsFloat(nodes_[value].dtype) || !IsFloat(dtype))
    return Invalid("only floats saturate, and only to a float type", {},
                   "write cast(x, float8_e4m3, saturate=true)");
  const double limit = LargestFinite(dtype);
  ATUNNER_TRY(const int above, Apply(ScalarOp::kMaximum, {value, Number(-limit)}));
  return Apply(ScalarOp::kMinimum, {above, Number(limit)});
}

Result<int> ScalarBuilder::Cast(int value, DType dtype) {
  const ScalarNode from = nodes_[value];
  if (from.dtype == dtype && !Flexible(value)) return value;
  if (from.op == ScalarOp::kLiteral)
    return Literal(dtype, CellOf(dtype, ToReal(from.dtype, from.literal)));
  return Intern({.op = ScalarOp::kCast, .dtype = dtype, .args = {value, -1, -1}});
}

Result<int> ScalarBuilder::Round(int value, DType dtype) {
  const DType from = nodes_[value].dtype;
  if (Flexible(value) || !IsFloat(from) || !IsFloat(dtype))
    return Invalid("round_to takes a float and a float type", {}, "write round_to(x, float8_e4m3)");
  return Intern({.op = ScalarOp::kRoundTo,
                 .dtype = from,
                 .args = {value, -1, -1},
                 .number = static_cast<int>(dtype)});
}

Result<int> ScalarBuilder::Uniform(int seed, int counter) {
  ATUNNER_TRY(seed, As(seed, DType::kInt64));
  ATUNNER_TRY(counter, As(counter, DType::kInt64));
  if (nodes_[seed].dtype != DType::kInt64 || nodes_[counter].dtype != DType::kInt64)
    return Invalid("uniform takes an int64 seed and an int64 counter", {},
                   "cast(x, int64) converts");
  return Intern({.op = ScalarOp::kUniform, .dtype = DType::kFloat32, .args = {seed, counter, -1}});
}

Result<std::vector<int>> ScalarBuilder::ImportAll(const ScalarExpression& other,
                                                  std::span<const int> arguments) {
  return ImportAll(other, arguments, std::map<int, int>{});
}

Result<std::vector<int>> ScalarBuilder::ImportAll(const ScalarExpression& other,
                                                  std::span<const int> arguments,
                                                  const std::map<int, int>& known) {
  return ImportNodes(
      other, arguments, [this](const ScalarNode& node) { return AxisNode(node.op, node.number); },
      known);
}

Result<std::vector<int>> ScalarBuilder::ImportAll(const ScalarExpression& other,
                                                  std::span<const int> arguments,
                                                  const IndexMapping& place) {
  return ImportNodes(other, arguments, place, {});
}

Result<int> ScalarBuilder::Import(const ScalarExpression& other, std::span<const int> arguments) {
  ATUNNER_TRY(const std::vector<int> here, ImportAll(other, arguments));
  return here.back();
}

Result<int> ScalarBuilder::Import(const ScalarExpression& other, std::span<const int> arguments,
                                  const IndexMapping& place) {
  ATUNNER_TRY(const std::vector<int> here, ImportAll(other, arguments, place));
  return here.back();
}

Result<std::vector<int>> ScalarBuilder::ImportNodes(const ScalarExpression& other,
                                                    std::span<const int> arguments,
                                                    const IndexMapping& place,
                                                    const std::map<int, int>& known) {
  std::vector<int> here;
  for (const ScalarNode& node : other.nodes()) {
    if (const auto found = known.find(static_cast<int>(here.size())); found != known.end()) {
      here.push_back(found->second);
      continue;
    }
    std::vector<int> args;
    for (int i = 0; i < ArityOf(node.op); ++i) args.push_back(here[node.args[i]]);
    Result<int> made = 0;
    switch (node.op) {
      case ScalarOp::kParameter:
        made = arguments[node.number];
        break;
      case ScalarOp::kLiteral:
        made = Literal(node.dtype, node.literal);
        break;
      case ScalarOp::kIndex:
      case ScalarOp::kExtent:
        made = place(node);
        break;
      case ScalarOp::kSelect:
        made = Select(args[0], args[1], args[2]);
        break;
      case ScalarOp::kCast:
        made = Cast(args[0], node.dtype);
        break;
      case ScalarOp::kRoundTo:
        made = Round(args[0], static_cast<DType>(node.number));
        break;
      case ScalarOp::kUniform:
        made = Uniform(args[0], args[1]);
        break;
      default:
        made = Apply(node.op, args);
    }
    if (!made) return std::unexpected(made.error());
    here.push_back(*made);
  }
  return here;
}

namespace {

/// By node: true if `root` depends on it.
std::vector<bool> NeededFor(const std::vector<ScalarNode>& nodes, int root) {
  std::vector<bool> needed(nodes.size(), false);
  needed[root] = true;
  for (int i = root; i >= 0; --i) {
    if (!needed[i]) continue;
    for (int arg : nodes[i].args) {
      if (arg >= 0) needed[arg] = true;
    }
  }
  return needed;
}

}  // namespace

Result<ScalarExpression> ScalarBuilder::Finish(int root) const {
  if (Flexible(root))
    return Invalid("the number has no type", {},
                   "write cast(" + std::to_string(nodes_[root].literal.real) + ", float32)");
  const std::vector<bool> needed = NeededFor(nodes_, root);
  ScalarExpression expression;
  expression.parameters_ = parameters_;
  std::vector<int> place(nodes_.size(), -1);
  for (int i = 0; i <= root; ++i) {
    if (!needed[i]) continue;
    ScalarNode node = nodes_[i];
    if (node.op == ScalarOp::kLiteral) node.number = 0;
    for (int& arg : node.args) arg = arg < 0 ? -1 : place[arg];
    place[i] = static_cast<int>(expression.nodes_.size());
    expression.nodes_.push_back(node);
  }
  return expression;
}

}  // namespace atunner::graph
