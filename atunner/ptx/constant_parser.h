// Constants: literals and the expressions that PTX makes of them, as C does, in 64 bits.
#pragma once

#include "atunner/ptx/module.h"
#include "atunner/ptx/token_stream.h"

namespace atunner::ptx {

class ConstantParser {
 public:
  explicit ConstantParser(TokenStream& tokens) : tokens_(tokens) {}

  /// A constant expression, as an operand of kind kImmediate.
  Result<Operand> Immediate();
  /// A number, perhaps with signs or in parentheses.
  Result<uint64_t> Number();
  /// The sum of the terms behind a register or a name: "+ 4 * 2 - 1" is 7. 0 if there are none.
  Result<uint64_t> Offset();

 private:
  struct Constant {
    Operand value;
    bool is_unsigned = false;
  };
  struct BinaryOperator;
  /// A literal without its sign.
  Result<Constant> Literal();
  /// A literal with the signs, casts and parentheses before it.
  Result<Constant> Unary();
  Result<Constant> UnaryOperation(std::string_view op);
  /// True if an operator of one or two characters follows.
  bool IsNext(std::string_view op) const;
  /// The part of an expression that binds at least as strongly as `least`.
  Result<Constant> Expression(int least);
  Result<Constant> Combine(const BinaryOperator& op, Constant left, const Constant& right) const;
  /// The rest of "condition ? a : b".
  Result<Constant> Choice(const Constant& condition);

  TokenStream& tokens_;
  int depth_ = 0;  ///< nesting of parentheses, signs and choices
};

}  // namespace atunner::ptx
