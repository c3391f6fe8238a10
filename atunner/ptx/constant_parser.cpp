#include "atunner/ptx/constant_parser.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace atunner::ptx {
namespace {

constexpr std::string_view kWarpSize = "WARP_SZ";  // PTX's only named constant
constexpr int kMaxDepth = 64;
constexpr int kChoiceBinds = 1;
constexpr int kProductBinds = 11;

/// Comparisons and logical operators; nullopt for the other operators.
std::optional<bool> Compare(std::string_view op, uint64_t a, uint64_t b, bool is_unsigned) {
  const bool less = is_unsigned ? a < b : static_cast<int64_t>(a) < static_cast<int64_t>(b);
  if (op == "||") return a != 0 || b != 0;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return less;
  if (op == ">=") return !less;
  if (op == ">") return !less && a != b;
  if (op == "<=") return less || a == b;
  return std::nullopt;
}

/// "/" and "%"; `b` is not zero.
uint64_t Divide(std::string_view op, uint64_t a, uint64_t b, bool is_unsigned) {
  if (is_unsigned) return op == "/" ? a / b : a % b;
  const auto x = static_cast<int64_t>(a);
  const auto y = static_cast<int64_t>(b);
  if (y == -1) return op == "/" ? ~a + 1 : 0;  // the least number has no positive counterpart
  return static_cast<uint64_t>(op == "/" ? x / y : x % y);
}

uint64_t ShiftRight(uint64_t a, uint64_t b, bool is_unsigned) {
  if (is_unsigned) return b < 64 ? a >> b : 0;
  return static_cast<uint64_t>(static_cast<int64_t>(a) >> std::min<uint64_t>(b, 63));
}

uint64_t Apply(std::string_view op, uint64_t a, uint64_t b, bool is_unsigned) {
  if (const auto truth = Compare(op, a, b, is_unsigned)) return *truth ? 1 : 0;
  if (op == "<<") return b < 64 ? a << b : 0;
  if (op == ">>") return ShiftRight(a, b, is_unsigned);
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  return Divide(op, a, b, is_unsigned);
}

/// The number that `digits` spells in base 2, 8, 10 or 16; a 'U' may follow it.
std::optional<uint64_t> IntegerOf(std::string_view digits, int base) {
  if (digits.ends_with('U')) digits.remove_suffix(1);
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, base);
  return at == end && error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// The value of an integer literal of C.
std::optional<uint64_t> IntegerOf(std::string_view token) {
  if (token.starts_with("0x") || token.starts_with("0X")) return IntegerOf(token.substr(2), 16);
  if (token.starts_with("0b") || token.starts_with("0B")) return IntegerOf(token.substr(2), 2);
  const bool octal = token.size() > 1 && token[0] == '0' && token[1] != 'U';
  return IntegerOf(token, octal ? 8 : 10);
}

/// True for "0x" or "0X" if `letter` is 'x'.
bool HasPrefix(std::string_view token, char letter) {
  return token.size() > 1 && token[0] == '0' &&
         std::tolower(static_cast<unsigned char>(token[1])) == letter;
}

/// The bits of a float64 literal, which has a point or an exponent.
std::optional<uint64_t> DoubleOf(const std::string& token) {
  char* end = nullptr;
  const double value = std::strtod(token.c_str(), &end);
  const bool plain = token.find_first_not_of("0123456789.eE+-") == std::string::npos;
  return plain && end == token.c_str() + token.size() && std::isfinite(value)
             ? std::optional(std::bit_cast<uint64_t>(value))
             : std::nullopt;
}

}  // namespace

/// A binary operator; a larger `binds` binds more strongly.
struct ConstantParser::BinaryOperator {
  std::string_view text;
  int binds;
  bool GivesTruth() const { return binds <= 3 || binds == 7 || binds == 8; }
};

Result<ConstantParser::Constant> ConstantParser::Literal() {
  Constant constant;
  Operand& operand = constant.value;
  operand.kind = Operand::Kind::kImmediate;
  std::string token(tokens_.Next());
  if (token == kWarpSize) token = "32";
  if (token.starts_with('.') && token.size() > 1) token.insert(0, 1, '0');
  if (token.empty() || !std::isdigit(static_cast<unsigned char>(token[0])))
    return tokens_.Bad("expected a number");
  operand.is_single = HasPrefix(token, 'f');
  const bool is_double = HasPrefix(token, 'd');
  const bool decimal = !HasPrefix(token, 'x') && !operand.is_single &&
                       token.find_first_of(".eE") != std::string::npos;
  operand.is_float = operand.is_single || is_double || decimal;
  std::optional<uint64_t> bits;
  if (operand.is_single || is_double) {
    if (token.size() == (is_double ? 18 : 10)) bits = IntegerOf(token.substr(2), 16);
  } else {
    bits = decimal ? DoubleOf(token) : IntegerOf(token);
  }
  if (!bits) return tokens_.Bad("'" + token + "' is not a number");
  operand.bits = *bits;
  constant.is_unsigned = !operand.is_float && (token.ends_with('U') || *bits >> 63 != 0);
  return constant;
}

Result<ConstantParser::Constant> ConstantParser::Unary() {
  if (depth_ > kMaxDepth) return tokens_.Bad("an expression is nested too deeply");
  const std::string_view token = tokens_.Peek();
  if (token != "-" && token != "+" && token != "~" && token != "!" && token != "(")
    return Literal();
  tokens_.Next();
  ++depth_;
  Result<Constant> value = UnaryOperation(token);
  --depth_;
  return value;
}

Result<ConstantParser::Constant> ConstantParser::UnaryOperation(std::string_view op) {
  const bool cast = op == "(" && (tokens_.Peek() == ".s64" || tokens_.Peek() == ".u64");
  const bool to_unsigned = cast && tokens_.Next() == ".u64";
  if (cast && !tokens_.Accept(")")) return tokens_.Bad("expected ')'");
  Result<Constant> inner = op == "(" && !cast ? Expression(kChoiceBinds) : Unary();
  if (!inner) return inner;
  uint64_t& bits = inner->value.bits;
  if (op == "(" && !cast && !tokens_.Accept(")")) return tokens_.Bad("expected ')'");
  if (cast) inner->is_unsigned = to_unsigned;
  if (inner->value.is_float) {
    if (op == "-") bits ^= inner->value.is_single ? uint64_t{1} << 31 : uint64_t{1} << 63;
    return op == "-" || op == "+" || op == "(" ? inner : tokens_.Bad("expected an integer");
  }
  if (op == "-") bits = ~bits + 1;
  if (op == "~") bits = ~bits;
  if (op == "!") bits = bits == 0 ? 1 : 0;
  return inner;
}

bool ConstantParser::IsNext(std::string_view op) const {
  const std::string_view first = tokens_.Peek();
  const std::string_view second = tokens_.Peek(1);
  if (op.size() == 1) return first == op;
  const bool adjacent = !second.empty() && first.data() + 1 == second.data();
  return adjacent && first == op.substr(0, 1) && second == op.substr(1);
}

Result<ConstantParser::Constant> ConstantParser::Expression(int least) {
  /// Operators of two characters stand before those with which they begin.
  static constexpr BinaryOperator kOperators[] = {
      {"||", 2}, {"&&", 3}, {"==", 7}, {"!=", 7}, {"<=", 8}, {">=", 8},
      {"<<", 9}, {">>", 9}, {"|", 4},  {"^", 5},  {"&", 6},  {"<", 8},
      {">", 8},  {"+", 10}, {"-", 10}, {"*", 11}, {"/", 11}, {"%", 11}};
  const auto is_next = [&](const BinaryOperator& op) { return IsNext(op.text); };
  ATUNNER_TRY(Constant left, Unary());
  while (!tokens_.End()) {
    if (least <= kChoiceBinds && tokens_.Peek() == "?") return Choice(left);
    const auto* const op = std::ranges::find_if(kOperators, is_next);
    if (op == std::end(kOperators) || op->binds < least) break;
    tokens_.Skip(op->text.size());
    ATUNNER_TRY(const Constant right, Expression(op->binds + 1));
    ATUNNER_TRY(left, Combine(*op, std::move(left), right));
  }
  return left;
}

Result<ConstantParser::Constant> ConstantParser::Combine(const BinaryOperator& op, Constant left,
                                                         const Constant& right) const {
  if (left.value.is_float || right.value.is_float) return tokens_.Bad("an expression of floats");
  const bool divides = op.text == "/" || op.text == "%";
  if (divides && right.value.bits == 0) return tokens_.Bad("a constant is divided by zero");
  const bool shifts = op.text == "<<" || op.text == ">>";
  left.is_unsigned = left.is_unsigned || (right.is_unsigned && !shifts);
  left.value.bits = Apply(op.text, left.value.bits, right.value.bits, left.is_unsigned);
  if (op.GivesTruth()) left.is_unsigned = false;
  return left;
}

Result<ConstantParser::Constant> ConstantParser::Choice(const Constant& condition) {
  if (depth_ > kMaxDepth) return tokens_.Bad("an expression is nested too deeply");
  tokens_.Next();
  ++depth_;
  Result<Constant> yes = Expression(kChoiceBinds);
  if (yes && !tokens_.Accept(":")) yes = tokens_.Bad("expected ':'");
  Result<Constant> no = yes ? Expression(kChoiceBinds) : yes;
  --depth_;
  return !no || condition.value.bits == 0 ? no : yes;
}

Result<Operand> ConstantParser::Immediate() {
  ATUNNER_TRY(const Constant constant, Expression(kChoiceBinds));
  return constant.value;
}

Result<uint64_t> ConstantParser::Number() {
  ATUNNER_TRY(const Constant constant, Unary());
  return constant.value.bits;
}

Result<uint64_t> ConstantParser::Offset() {
  uint64_t sum = 0;
  while (tokens_.Peek() == "+" || tokens_.Peek() == "-") {
    const bool minus = tokens_.Next() == "-";
    ATUNNER_TRY(const Constant term, Expression(kProductBinds));
    if (term.value.is_float) return tokens_.Bad("expected an integer");
    sum += minus ? ~term.value.bits + 1 : term.value.bits;
  }
  return sum;
}

}  // namespace atunner::ptx
