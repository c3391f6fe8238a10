#include "atunner/intake/host/host_operators.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "atunner/intake/host/host_expression.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;

HostValue MissingOf(const HostValue& left, const HostValue& right) {
  HostValue value;
  for (const HostValue* one : {&left, &right}) {
    if (one->Is(Kind::kUnknown)) value.missing.Add(one->missing);
    if (!one->Is(Kind::kUnknown) && !one->Is(Kind::kNumber)) value.missing.nameless = true;
  }
  return value;
}

/// Arithmetic of pointers: only the start of a buffer is known.
HostValue OfPointers(const HostState& state, std::string_view op, const HostValue& left,
                     const HostValue& right) {
  const bool pointer = left.Is(Kind::kBuffer);
  const HostValue& number = pointer ? right : left;
  const auto now = NumberNow(number, state.leaves);
  if (!now || ToDouble(*now) != 0) return HostValue::Unknown();
  if (op == "+" || op == "-") return pointer ? left : right;
  if (op == "==" || op == "!=") return HostValue::Number(op == "==" ? "0" : "1");
  return HostValue::Unknown();
}

/// && and || where one side decides; nullopt if none does.
std::optional<HostValue> Decided(const HostState& state, std::string_view op, const HostValue& left,
                                 const HostValue& right) {
  if (op != "&&" && op != "||") return std::nullopt;
  if (left.Is(Kind::kNumber) && right.Is(Kind::kNumber)) return std::nullopt;
  bool all = true;
  for (const HostValue* one : {&left, &right}) {
    const auto truth = TruthNow(*one, state.leaves);
    if (truth && *truth == (op == "||")) return HostValue::Number(op == "||" ? "1" : "0");
    all &= truth.has_value();
  }
  return all ? std::optional(HostValue::Number(op == "||" ? "0" : "1")) : std::nullopt;
}

}  // namespace

int PrecedenceOf(std::string_view op) {
  static const std::map<std::string_view, int> kPrecedences = {
      {"||", 0}, {"&&", 1}, {"|", 2}, {"^", 3},  {"&", 4},  {"==", 5},
      {"!=", 5}, {"<", 6},  {">", 6}, {"<=", 6}, {">=", 6}, {"<<", 7},
      {">>", 7}, {"+", 8},  {"-", 8}, {"*", 9},  {"/", 9},  {"%", 9}};
  const auto found = kPrecedences.find(op);
  return found == kPrecedences.end() ? -1 : found->second;
}

HostValue NumberOf(std::string_view literal) {
  std::string text;
  for (const char c : literal) {
    if (c != '\'') text += c;
  }
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  bool real = !hex && text.find_first_of(".eE") != std::string::npos;
  real |= !hex && (text.back() == 'f' || text.back() == 'F');
  const std::string_view suffixes = hex ? "uUlL" : "uUlLfF";
  while (text.size() > 1 && suffixes.find(text.back()) != std::string_view::npos) text.pop_back();
  if (text.back() == '.') text += '0';
  return HostValue::Number(std::move(text), real);
}

std::string Bracketed(const HostValue& value) {
  return value.plain ? value.text : "(" + value.text + ")";
}

HostValue Combined(const HostState& state, std::string_view op, const HostValue& left,
                   const HostValue& right) {
  if (auto decided = Decided(state, op, left, right)) return *std::move(decided);
  if (left.Is(Kind::kBuffer) != right.Is(Kind::kBuffer)) return OfPointers(state, op, left, right);
  if (!left.Is(Kind::kNumber) || !right.Is(Kind::kNumber)) return MissingOf(left, right);
  const int precedence = PrecedenceOf(op);
  const bool arithmetic = precedence >= PrecedenceOf("<<");
  const bool real = arithmetic && (left.real || right.real);
  const std::string_view name = op == "&&"           ? "and"
                                : op == "||"         ? "or"
                                : op == "/" && !real ? "//"
                                                     : op;
  // Python's operators bind as C's do, but for comparisons and bits.
  const std::string first = arithmetic ? left.text : Bracketed(left);
  const std::string second = arithmetic ? right.text : Bracketed(right);
  HostValue value = HostValue::Number(first + " " + std::string(name) + " " + second, real,
                                      /*plain=*/false);
  value.type = left.type == right.type ? left.type : "";
  return value;
}

HostValue Chosen(const HostValue& condition, std::optional<bool> holds, HostValue one,
                 HostValue other) {
  const bool numbers = condition.Is(Kind::kNumber) && one.Is(Kind::kNumber) &&
                       other.Is(Kind::kNumber);
  if (!holds) return MissingOf(condition, HostValue::Number("0"));
  if (!numbers || condition.text.find_first_not_of("0123456789<>=!() ") == std::string::npos)
    return *holds ? one : other;
  return HostValue::Number(
      "((" + one.text + ") if (" + condition.text + ") else (" + other.text + "))",
      one.real || other.real);
}

HostValue ArrayOf(HostState& state, const HostFrame& frame, const std::string& type,
                  const HostValue& count) {
  const auto buffer = std::make_shared<HostBuffer>();
  buffer->type = type;
  buffer->elements = count;
  const auto bytes = BytesOfType(state, frame, type);
  if (bytes && count.Is(Kind::kNumber))
    buffer->bytes = HostValue::Number(Bracketed(count) + " * " + std::to_string(*bytes), count.real,
                                      /*plain=*/false);
  else
    buffer->bytes = bytes ? count : HostValue::Unknown();
  return HostValue::Of(buffer);
}

size_t ClosingToken(std::span<const Token> tokens, size_t open) {
  int nested = 0;
  for (size_t at = open; at < tokens.size(); ++at) {
    const Token& token = tokens[at];
    nested += (token.Is("(") || token.Is("[") || token.Is("{")) -
              (token.Is(")") || token.Is("]") || token.Is("}"));
    if (nested == 0) return at;
  }
  return tokens.size();
}

std::vector<Tokens> SplitTokens(std::span<const Token> tokens) {
  std::vector<Tokens> pieces;
  int nested = 0, angles = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    nested += (token.Is("(") || token.Is("[") || token.Is("{")) -
              (token.Is(")") || token.Is("]") || token.Is("}"));
    if (nested == 0 && token.Is("<") && i > 0 && tokens[i - 1].kind == Token::Kind::kWord) ++angles;
    if (nested == 0 && token.Is(">") && angles > 0) --angles;
    // A `<` without its `>` is an operator.
    const bool comma = token.Is(",") && nested == 0 &&
                       (angles == 0 || std::ranges::none_of(tokens.subspan(i), [](const Token& t) {
                          return t.Is(">");
                        }));
    if (comma) angles = 0;
    if (pieces.empty()) pieces.emplace_back();
    if (comma)
      pieces.emplace_back();
    else
      pieces.back().push_back(token);
  }
  return pieces;
}

}  // namespace atunner
