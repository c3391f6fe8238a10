// Expressions compiled for evaluation millions of times: straight-line code over numbered cells.
// The meaning is Expr::Evaluate's; equal subexpressions of all added expressions are computed once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "atunner/model/expr/expr.h"

namespace atunner {

/// A Value without ownership. A result that cannot be computed (division by zero, overflow) is an
/// error cell. Results that use it are errors too, unless `and`, `or` or a condition decides
/// without it.
struct Cell {
  enum class Kind : uint8_t { kInteger, kReal, kText, kError };
  Kind kind = Kind::kError;
  union {
    int64_t integer = 0;
    double real;
    uint64_t text;  ///< number of the interned text
  };

  static Cell Integer(int64_t value) {
    Cell cell;
    cell.kind = Kind::kInteger;
    cell.integer = value;
    return cell;
  }
  static Cell Real(double value) {
    Cell cell;
    cell.kind = Kind::kReal;
    cell.real = value;
    return cell;
  }
  bool IsError() const { return kind == Kind::kError; }
  bool operator==(const Cell& other) const {
    return kind == other.kind && integer == other.integer;
  }
};

class ExprProgram {
 public:
  using CellId = uint32_t;
  enum class Op : uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kBitAnd,
    kBitOr,
    kBitXor,
    kShiftLeft,
    kShiftRight,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kNot,
    kComplement,
    kSelect,
    kMin,
    kMax,
    kCeilDivide,
    kPosition,
    kCall
  };
  struct Instruction {
    Op op = Op::kAdd;
    uint8_t function = 0;  ///< kCall: the function, when it has one argument
    CellId to = 0;
    CellId a = 0;
    CellId b = 0;
    CellId c = 0;
  };

  /// A cell that the caller of Run fills; the same name gives the same cell.
  CellId Variable(const std::string& name);
  /// Gives a name a fixed value, which is folded into the instructions that use it.
  void Bind(const std::string& name, const Value& value);
  Cell CellOf(const Value& value);
  /// The cell of the expression's value. kInvalidInput for a name that is neither variable nor
  /// bound, or an unknown function.
  Result<CellId> Add(const Expr::Node& node);

  /// Constants are filled in; variables and results are not.
  const std::vector<Cell>& initial_cells() const { return cells_; }
  /// In an order in which operands come first.
  const std::vector<Instruction>& instructions() const { return instructions_; }

  void Run(const Instruction& instruction, std::span<Cell> cells) const;
  static bool Truthy(const Cell& cell, const ExprProgram& program);

 private:
  Result<CellId> AddNary(const Expr::Node& node);
  Result<CellId> AddCall(const Expr::Node& node);
  CellId Constant(const Cell& cell);
  CellId Emit(Op op, CellId a, CellId b = 0, CellId c = 0, uint8_t function = 0);
  CellId NewCell(const Cell& cell, bool constant);
  Cell Compute(const Instruction& instruction, std::span<const Cell> cells) const;
  Cell CompareTexts(Op op, const Cell& a, const Cell& b) const;
  Cell PositionOf(const Cell& order, const Cell& item) const;

  std::vector<Cell> cells_;
  std::vector<bool> constant_;
  std::vector<Instruction> instructions_;
  std::map<std::tuple<Op, CellId, CellId, CellId, uint8_t>, CellId> known_;
  std::map<std::pair<Cell::Kind, int64_t>, CellId> constants_;
  std::map<std::string, CellId, std::less<>> names_;
  std::deque<std::string> texts_;
  std::map<std::string, uint64_t, std::less<>> text_numbers_;
};

}  // namespace atunner
