#include "atunner/model/expr/expr_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "atunner/model/expr/integers.h"

namespace atunner {
namespace {

using Op = ExprProgram::Op;
using Kind = Expr::Node::Kind;

constexpr std::array<std::string_view, 10> kFunctions = {"abs",   "ceil", "floor", "round", "int",
                                                         "float", "bool", "sqrt",  "log2",  "-"};
constexpr uint8_t kNegate = 9;

double AsReal(const Cell& cell) {
  return cell.kind == Cell::Kind::kReal ? cell.real : static_cast<double>(cell.integer);
}

Cell CellOfPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Cell::Real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  const std::optional<int64_t> power = IntegerPower(base, exponent);
  return power ? Cell::Integer(*power) : Cell{};
}

Cell IntegerBinary(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Cell{} : Cell::Integer(result);
    case Op::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Cell{} : Cell::Integer(result);
    case Op::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Cell{} : Cell::Integer(result);
    case Op::kPower:
      return CellOfPower(a, b);
    case Op::kBitAnd:
      return Cell::Integer(a & b);
    case Op::kBitOr:
      return Cell::Integer(a | b);
    case Op::kBitXor:
      return Cell::Integer(a ^ b);
    case Op::kShiftLeft:
      return b < 0 || b > 62 ? Cell{}
                             : Cell::Integer(static_cast<int64_t>(static_cast<uint64_t>(a) << b));
    case Op::kShiftRight:
      return b < 0 || b > 62 ? Cell{} : Cell::Integer(a >> b);
    default:
      break;
  }
  if (b == 0 || (b == -1 && a == INT64_MIN)) return {};
  if (op == Op::kFloorDivide) return Cell::Integer(FloorDivide(a, b));
  if (op == Op::kCeilDivide) return a == INT64_MIN ? Cell{} : Cell::Integer(-FloorDivide(-a, b));
  if (op == Op::kModulo) {
    // Space sizes fit 32 bits, where dividing is several times quicker.
    if (((a | b) >> 31) == 0)
      return Cell::Integer(static_cast<uint32_t>(a) % static_cast<uint32_t>(b));
    return Cell::Integer(a - FloorDivide(a, b) * b);
  }
  if (a % b == 0) return Cell::Integer(a / b);
  return Cell::Real(static_cast<double>(a) / static_cast<double>(b));
}

Cell RealBinary(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Cell::Real(a + b);
    case Op::kSubtract:
      return Cell::Real(a - b);
    case Op::kMultiply:
      return Cell::Real(a * b);
    case Op::kPower:
      return Cell::Real(std::pow(a, b));
    case Op::kDivide:
    case Op::kFloorDivide:
    case Op::kModulo:
      break;
    default:
      return {};  // bits, shifts and ceil_div() are of integers
  }
  if (b == 0) return {};
  if (op == Op::kDivide) return Cell::Real(a / b);
  const double floored = std::floor(a / b);
  return Cell::Real(op == Op::kFloorDivide ? floored : a - floored * b);
}

template <class T>
bool Ordered(Op op, T a, T b) {
  switch (op) {
    case Op::kLess:
      return a < b;
    case Op::kLessEqual:
      return !(a < b) && !(a > b) ? true : a < b;  // not-a-number compares as equal, as in Expr
    case Op::kGreater:
      return a > b;
    case Op::kGreaterEqual:
      return !(a < b);
    case Op::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

bool IsCompare(Op op) { return op >= Op::kLess && op <= Op::kNotEqual; }

Cell Whole(double value) {
  if (!(std::fabs(value) < 9.2e18)) return {};
  return Cell::Integer(static_cast<int64_t>(value));
}

Cell CallOne(uint8_t function, const Cell& x) {
  if (x.kind == Cell::Kind::kError || x.kind == Cell::Kind::kText) return {};
  const bool whole = x.kind == Cell::Kind::kInteger;
  if (function == kNegate) {
    return whole ? IntegerBinary(Op::kSubtract, 0, x.integer) : Cell::Real(0.0 - x.real);
  }
  const double real = AsReal(x);
  if (std::isnan(real)) return {};
  switch (function) {
    case 0:
      if (whole && x.integer == INT64_MIN) return {};
      return whole ? Cell::Integer(std::abs(x.integer)) : Cell::Real(std::fabs(real));
    case 1:
      return whole ? x : Whole(std::ceil(real));
    case 2:
      return whole ? x : Whole(std::floor(real));
    case 3:
      return whole ? x : Whole(std::nearbyint(real));
    case 4:
      return whole ? x : Whole(std::trunc(real));
    case 5:
      return Cell::Real(real);
    case 6:
      return Cell::Integer(real != 0);
    case 7:
      return Cell::Real(std::sqrt(real));
    default:
      return Cell::Real(std::log2(real));
  }
}

const std::map<std::string_view, Op> kBinaryOps = {
    {"+", Op::kAdd},           {"-", Op::kSubtract},     {"*", Op::kMultiply},
    {"/", Op::kDivide},        {"//", Op::kFloorDivide}, {"%", Op::kModulo},
    {"**", Op::kPower},        {"&", Op::kBitAnd},       {"|", Op::kBitOr},
    {"^", Op::kBitXor},        {"<<", Op::kShiftLeft},   {">>", Op::kShiftRight},
    {"<", Op::kLess},          {"<=", Op::kLessEqual},   {">", Op::kGreater},
    {">=", Op::kGreaterEqual}, {"==", Op::kEqual},       {"!=", Op::kNotEqual}};

}  // namespace

Cell ExprProgram::CompareTexts(Op op, const Cell& a, const Cell& b) const {
  if (a.kind != b.kind) {
    if (op == Op::kEqual || op == Op::kNotEqual) return Cell::Integer(op == Op::kNotEqual);
    return {};
  }
  return Cell::Integer(Ordered(op, texts_[a.text].compare(texts_[b.text]), 0));
}

Cell ExprProgram::PositionOf(const Cell& order, const Cell& item) const {
  if (order.kind != Cell::Kind::kText) return {};
  const std::string text = item.kind == Cell::Kind::kText      ? texts_[item.text]
                           : item.kind == Cell::Kind::kInteger ? std::to_string(item.integer)
                                                               : ToString(Value(item.real));
  const int64_t at = PositionIn(texts_[order.text], text);
  return at < 0 ? Cell{} : Cell::Integer(at);
}

bool ExprProgram::Truthy(const Cell& cell, const ExprProgram& program) {
  if (cell.kind == Cell::Kind::kInteger) return cell.integer != 0;
  if (cell.kind == Cell::Kind::kReal) return cell.real != 0;
  return cell.kind == Cell::Kind::kText && !program.texts_[cell.text].empty();
}

Cell ExprProgram::Compute(const Instruction& i, std::span<const Cell> cells) const {
  const Cell& a = cells[i.a];
  const Cell& b = cells[i.b];
  if (a.kind == Cell::Kind::kInteger && b.kind == Cell::Kind::kInteger && i.op < Op::kAnd) {
    if (IsCompare(i.op)) return Cell::Integer(Ordered(i.op, a.integer, b.integer));
    return IntegerBinary(i.op, a.integer, b.integer);
  }
  if (a.IsError()) return {};
  switch (i.op) {
    case Op::kAnd:
      return Truthy(a, *this) ? b : a;
    case Op::kOr:
      return Truthy(a, *this) ? a : b;
    case Op::kNot:
      return Cell::Integer(!Truthy(a, *this));
    case Op::kComplement:
      return a.kind == Cell::Kind::kInteger ? Cell::Integer(~a.integer) : Cell{};
    case Op::kSelect:
      return Truthy(a, *this) ? b : cells[i.c];
    case Op::kCall:
      return CallOne(i.function, a);
    default:
      break;
  }
  if (b.IsError()) return {};
  if (i.op == Op::kMin || i.op == Op::kMax) {
    const Op better = i.op == Op::kMin ? Op::kLess : Op::kGreater;
    Instruction compare = i;
    compare.op = better;
    std::swap(compare.a, compare.b);
    const Cell second = Compute(compare, cells);
    if (second.IsError()) return {};
    return second.integer ? b : a;
  }
  if (i.op == Op::kPosition) return PositionOf(a, b);
  if (a.kind == Cell::Kind::kText || b.kind == Cell::Kind::kText)
    return IsCompare(i.op) ? CompareTexts(i.op, a, b) : Cell{};
  if (i.op == Op::kCeilDivide) {
    if (a.kind != Cell::Kind::kInteger || b.kind != Cell::Kind::kInteger) return {};
    return IntegerBinary(i.op, a.integer, b.integer);
  }
  if (IsCompare(i.op)) return Cell::Integer(Ordered(i.op, AsReal(a), AsReal(b)));
  return RealBinary(i.op, AsReal(a), AsReal(b));
}

void ExprProgram::Run(const Instruction& instruction, std::span<Cell> cells) const {
  cells[instruction.to] = Compute(instruction, cells);
}

ExprProgram::CellId ExprProgram::NewCell(const Cell& cell, bool constant) {
  cells_.push_back(cell);
  constant_.push_back(constant);
  return static_cast<CellId>(cells_.size() - 1);
}

ExprProgram::CellId ExprProgram::Constant(const Cell& cell) {
  const auto [at, fresh] = constants_.try_emplace({cell.kind, cell.integer}, 0);
  if (fresh) at->second = NewCell(cell, true);
  return at->second;
}

Cell ExprProgram::CellOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const auto [at, fresh] = text_numbers_.try_emplace(*text, texts_.size());
    if (fresh) texts_.push_back(*text);
    Cell cell;
    cell.kind = Cell::Kind::kText;
    cell.text = at->second;
    return cell;
  }
  if (const auto* real = std::get_if<double>(&value)) return Cell::Real(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return Cell::Integer(*flag);
  return Cell::Integer(std::get<int64_t>(value));
}

ExprProgram::CellId ExprProgram::Variable(const std::string& name) {
  const auto [at, fresh] = names_.try_emplace(name, 0);
  if (fresh) at->second = NewCell({}, false);
  return at->second;
}

void ExprProgram::Bind(const std::string& name, const Value& value) {
  names_.try_emplace(name, Constant(CellOf(value)));
}

ExprProgram::CellId ExprProgram::Emit(Op op, CellId a, CellId b, CellId c, uint8_t function) {
  Instruction instruction{op, function, 0, a, b, c};
  if (constant_[a] && constant_[b] && constant_[c]) return Constant(Compute(instruction, cells_));
  const auto [at, fresh] = known_.try_emplace({op, a, b, c, function}, 0);
  if (fresh) {
    at->second = NewCell({}, false);
    instruction.to = at->second;
    instructions_.push_back(instruction);
  }
  return at->second;
}

Result<ExprProgram::CellId> ExprProgram::AddCall(const Expr::Node& node) {
  std::vector<CellId> args;
  for (const Expr::Node& child : node.children) {
    ATUNNER_TRY(const CellId id, Add(child));
    args.push_back(id);
  }
  if ((node.op == "min" || node.op == "max") && !args.empty()) {
    CellId best = args[0];
    for (size_t i = 1; i < args.size(); ++i)
      best = Emit(node.op == "min" ? Op::kMin : Op::kMax, best, args[i], best);
    return best;
  }
  if ((node.op == "ceil_div" || node.op == "cdiv") && args.size() == 2)
    return Emit(Op::kCeilDivide, args[0], args[1], args[0]);
  if (node.op == "position" && args.size() == 2)
    return Emit(Op::kPosition, args[0], args[1], args[0]);
  if (node.op == "pow" && args.size() == 2) return Emit(Op::kPower, args[0], args[1], args[0]);
  const auto at = std::ranges::find(kFunctions, node.op);
  if (at == kFunctions.end() || args.size() != 1)
    return Invalid("unknown function " + node.op + "() with " + std::to_string(args.size()) +
                   " arguments");
  return Emit(Op::kCall, args[0], args[0], args[0], static_cast<uint8_t>(at - kFunctions.begin()));
}

Result<ExprProgram::CellId> ExprProgram::AddNary(const Expr::Node& node) {
  std::vector<CellId> ids;
  for (const Expr::Node& child : node.children) {
    ATUNNER_TRY(const CellId id, Add(child));
    ids.push_back(id);
  }
  CellId result = Constant(Cell::Integer(node.kind == Kind::kCompare));
  // From the last to the first, so that an earlier link decides before a later one is looked at.
  for (size_t i = ids.size() - 1; i > 0; --i) {
    if (node.kind == Kind::kCompare) {
      const CellId link = Emit(kBinaryOps.at(node.compare_ops[i - 1]), ids[i - 1], ids[i], ids[i]);
      result = i == ids.size() - 1 ? link : Emit(Op::kAnd, link, result, link);
    } else {
      const CellId same = Emit(Op::kEqual, ids[0], ids[i], ids[i]);
      result = Emit(Op::kOr, same, result, same);
    }
  }
  if (node.kind == Kind::kIn && node.op != "in") result = Emit(Op::kNot, result, result, result);
  return result;
}

Result<ExprProgram::CellId> ExprProgram::Add(const Expr::Node& node) {
  switch (node.kind) {
    case Kind::kConstant:
      return Constant(CellOf(node.constant));
    case Kind::kName: {
      const auto at = names_.find(node.name);
      if (at == names_.end()) return Invalid("unknown name '" + node.name + "'");
      return at->second;
    }
    case Kind::kCompare:
    case Kind::kIn:
      return AddNary(node);
    case Kind::kCall:
      return AddCall(node);
    case Kind::kUnary: {
      ATUNNER_TRY(const CellId a, Add(node.children[0]));
      if (node.op == "not") return Emit(Op::kNot, a, a, a);
      if (node.op == "~") return Emit(Op::kComplement, a, a, a);
      return Emit(Op::kCall, a, a, a, kNegate);
    }
    case Kind::kConditional: {
      ATUNNER_TRY(const CellId condition, Add(node.children[0]));
      ATUNNER_TRY(const CellId yes, Add(node.children[1]));
      ATUNNER_TRY(const CellId no, Add(node.children[2]));
      return Emit(Op::kSelect, condition, yes, no);
    }
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kBinary:
      break;
  }
  ATUNNER_TRY(const CellId a, Add(node.children[0]));
  ATUNNER_TRY(const CellId b, Add(node.children[1]));
  if (node.kind == Kind::kAnd) return Emit(Op::kAnd, a, b, a);
  if (node.kind == Kind::kOr) return Emit(Op::kOr, a, b, a);
  return Emit(kBinaryOps.at(node.op), a, b, a);
}

}  // namespace atunner
