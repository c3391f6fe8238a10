// Constants: literals and the expressions that PTX makes of them, as C does, in 64 bits.
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "atunner/ptx/parser.h"

namespace atunner::ptx {
namespace {

constexpr std::string_view kWarpSize = "WARP_SZ";  // the one constant that PTX has a name for
constexpr int kMaxDepth = 64;
constexpr int kChoiceBinds = 1;
constexpr int kProductBinds = 11;

struct Binary {
  std::string_view text;
  int binds;
};
/// Those of two characters before their beginnings.
constexpr Binary kBinary[] = {{"||", 2}, {"&&", 3}, {"==", 7}, {"!=", 7}, {"<=", 8}, {">=", 8},
                              {"<<", 9}, {">>", 9}, {"|", 4},  {"^", 5},  {"&", 6},  {"<", 8},
                              {">", 8},  {"+", 10}, {"-", 10}, {"*", 11}, {"/", 11}, {"%", 11}};

uint64_t Apply(std::string_view op, uint64_t a, uint64_t b, bool is_unsigned) {
  const auto x = static_cast<int64_t>(a);
  const auto y = static_cast<int64_t>(b);
  const bool less = is_unsigned ? a < b : x < y;
  if (op == "||") return (a != 0 || b != 0) ? 1 : 0;
  if (op == "&&") return (a != 0 && b != 0) ? 1 : 0;
  if (op == "==") return a == b ? 1 : 0;
  if (op == "!=") return a != b ? 1 : 0;
  if (op == "<") return less ? 1 : 0;
  if (op == ">=") return less ? 0 : 1;
  if (op == ">") return !less && a != b ? 1 : 0;
  if (op == "<=") return less || a == b ? 1 : 0;
  if (op == "<<") return b < 64 ? a << b : 0;
  if (op == ">>")
    return is_unsigned ? (b < 64 ? a >> b : 0)
                       : static_cast<uint64_t>(x >> std::min<uint64_t>(b, 63));
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (is_unsigned) return op == "/" ? a / b : a % b;
  if (y == -1) return op == "/" ? ~a + 1 : 0;  // of the least number too
  return static_cast<uint64_t>(op == "/" ? x / y : x % y);
}

/// The number that all of `digits` spells, in base 2, 8, 10 or 16; an 'U' may stand behind.
std::optional<uint64_t> IntegerOf(std::string_view digits, int base) {
  if (digits.ends_with('U')) digits.remove_suffix(1);
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, base);
  return at == end && error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// Of an integer that is spelled as C spells it.
std::optional<uint64_t> IntegerOf(std::string_view token) {
  if (token.starts_with("0x") || token.starts_with("0X")) return IntegerOf(token.substr(2), 16);
  if (token.starts_with("0b") || token.starts_with("0B")) return IntegerOf(token.substr(2), 2);
  const bool octal = token.size() > 1 && token[0] == '0' && token[1] != 'U';
  return IntegerOf(token, octal ? 8 : 10);
}

/// Of a number with a point or an exponent.
std::optional<uint64_t> DoubleOf(const std::string& token) {
  char* end = nullptr;
  const double value = std::strtod(token.c_str(), &end);
  const bool plain = token.find_first_not_of("0123456789.eE+-") == std::string::npos;
  return plain && end == token.c_str() + token.size() && std::isfinite(value)
             ? std::optional(std::bit_cast<uint64_t>(value))
             : std::nullopt;
}

}  // namespace

Result<Parser::Constant> Parser::Literal() {
  Constant constant;
  Operand& operand = constant.value;
  operand.kind = Operand::Kind::kImmediate;
  std::string token(Next());
  if (token == kWarpSize) token = "32";
  if (token.starts_with('.') && token.size() > 1) token.insert(0, 1, '0');
  if (token.empty() || !std::isdigit(static_cast<unsigned char>(token[0])))
    return Bad("expected a number");
  const bool hexadecimal = token.starts_with("0x") || token.starts_with("0X");
  std::optional<uint64_t> bits;
  operand.is_single = token.starts_with("0f") || token.starts_with("0F");
  const bool is_double = token.starts_with("0d") || token.starts_with("0D");
  const bool decimal = !hexadecimal && !operand.is_single &&
                       token.find_first_of(".eE") != std::string::npos;
  operand.is_float = operand.is_single || is_double || decimal;
  if (operand.is_single || is_double) {
    if (token.size() == (is_double ? 18 : 10)) bits = IntegerOf(token.substr(2), 16);
  } else {
    bits = decimal ? DoubleOf(token) : IntegerOf(token);
  }
  if (!bits) return Bad("'" + token + "' is no number");
  operand.bits = *bits;
  constant.is_unsigned = !operand.is_float && (token.ends_with('U') || *bits >> 63 != 0);
  return constant;
}

Result<Parser::Constant> Parser::Unary() {
  if (operand_depth_ > kMaxDepth) return Bad("an expression is nested too deeply");
  const std::string_view token = Peek();
  if (token != "-" && token != "+" && token != "~" && token != "!" && token != "(")
    return Literal();
  Next();
  ++operand_depth_;
  const bool cast = token == "(" && (Peek() == ".s64" || Peek() == ".u64");
  const bool to_unsigned = cast && Next() == ".u64";
  if (cast && !Accept(")")) return Bad("expected ')'");
  Result<Constant> inner = token == "(" && !cast ? Expression(kChoiceBinds) : Unary();
  --operand_depth_;
  if (!inner) return inner;
  uint64_t& bits = inner->value.bits;
  if (token == "(" && !cast && !Accept(")")) return Bad("expected ')'");
  if (cast) inner->is_unsigned = to_unsigned;
  if (inner->value.is_float && token == "-")
    bits ^= inner->value.is_single ? uint64_t{1} << 31 : uint64_t{1} << 63;
  if (inner->value.is_float)
    return token == "-" || token == "+" || token == "(" ? inner : Bad("expected an integer");
  if (token == "-") bits = ~bits + 1;
  if (token == "~") bits = ~bits;
  if (token == "!") bits = bits == 0 ? 1 : 0;
  return inner;
}

Result<Parser::Constant> Parser::Expression(int least) {
  ATUNNER_TRY(Constant left, Unary());
  while (!End()) {
    if (least <= kChoiceBinds && Peek() == "?") return Choice(left);
    const auto spelled = [&](const Binary& op) {
      if (op.text.size() == 1) return Peek() == op.text;
      const bool adjacent = at_ + 1 < tokens_.size() &&
                            Peek().data() + 1 == tokens_[at_ + 1].text.data();
      return adjacent && Peek() == op.text.substr(0, 1) &&
             tokens_[at_ + 1].text == op.text.substr(1);
    };
    const auto* const op = std::ranges::find_if(kBinary, spelled);
    if (op == std::end(kBinary) || op->binds < least) break;
    at_ += op->text.size();
    ATUNNER_TRY(const Constant right, Expression(op->binds + 1));
    if (left.value.is_float || right.value.is_float) return Bad("an expression of floats");
    const bool divides = op->text == "/" || op->text == "%";
    if (divides && right.value.bits == 0) return Bad("a constant is divided by zero");
    const bool shifts = op->text == "<<" || op->text == ">>";
    left.is_unsigned = left.is_unsigned || (right.is_unsigned && !shifts);
    left.value.bits = Apply(op->text, left.value.bits, right.value.bits, left.is_unsigned);
    // true or not
    if (op->binds <= 3 || op->binds == 7 || op->binds == 8) left.is_unsigned = false;
  }
  return left;
}

Result<Parser::Constant> Parser::Choice(const Constant& condition) {
  if (operand_depth_ > kMaxDepth) return Bad("an expression is nested too deeply");
  Next();
  ++operand_depth_;
  Result<Constant> yes = Expression(kChoiceBinds);
  if (yes && !Accept(":")) yes = Bad("expected ':'");
  Result<Constant> no = yes ? Expression(kChoiceBinds) : yes;
  --operand_depth_;
  return !no || condition.value.bits == 0 ? no : yes;
}

Result<Operand> Parser::Immediate() {
  ATUNNER_TRY(const Constant constant, Expression(kChoiceBinds));
  return constant.value;
}

Result<uint64_t> Parser::Number() {
  ATUNNER_TRY(const Constant constant, Unary());
  return constant.value.bits;
}

Result<uint64_t> Parser::Offset() {
  uint64_t sum = 0;
  while (Peek() == "+" || Peek() == "-") {
    const bool minus = Next() == "-";
    ATUNNER_TRY(const Constant term, Expression(kProductBinds));
    if (term.value.is_float) return Bad("expected an integer");
    sum += minus ? ~term.value.bits + 1 : term.value.bits;
  }
  return sum;
}

}  // namespace atunner::ptx
