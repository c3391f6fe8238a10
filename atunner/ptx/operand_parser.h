// Operands of instructions.
#pragma once

#include "atunner/ptx/constant_parser.h"
#include "atunner/ptx/function_names.h"
#include "atunner/ptx/module.h"
#include "atunner/ptx/token_stream.h"

namespace atunner::ptx {

class OperandParser {
 public:
  OperandParser(TokenStream& tokens, const FunctionNames& names)
      : tokens_(tokens), names_(names), constants_(tokens) {}

  /// One operand. `in_call`: lists in parentheses are operands too.
  Result<Operand> Parse(bool in_call);

 private:
  /// An operand at the next level of nesting.
  Result<Operand> ParseNested();
  Result<Operand> OfAnyKind();
  /// The elements up to `close`.
  Result<Operand> Vector(std::string_view close);
  /// "!%p" and "-%r".
  Result<Operand> Prefixed();
  /// A register, with an offset or a second destination, or a part of a register.
  Result<Operand> RegisterOperand();
  Result<Operand> Name();
  /// "[%rd1+16]", "[name+4]", "[%rd1]", "[16]", "[tensor, {x, y}]" (elements)
  Result<Operand> Address();
  bool IsRegister(std::string_view token) const;
  /// Position of the point in "%r1.b0" or "%r1.h10"; npos if `token` is not a part of a register.
  size_t PartOf(std::string_view token) const;
  /// The destination behind the bar of "%p|%q".
  Status Second(Operand& operand);

  TokenStream& tokens_;
  const FunctionNames& names_;
  ConstantParser constants_;
  int depth_ = 0;
  bool in_call_ = false;
};

}  // namespace atunner::ptx
