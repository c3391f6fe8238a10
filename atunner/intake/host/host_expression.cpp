#include "atunner/intake/host/host_expression.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "atunner/intake/c_type.h"
#include "atunner/intake/host/host_calls.h"
#include "atunner/intake/host/host_operators.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;

constexpr int64_t kMostElements = 64;  // elements of an array that are variables

/// A value and the variable that it was read from.
struct Operand {
  HostValue value;
  std::string path;  ///< "n", "grid.x", "d[2]"; empty for others
  HostCell cell;     ///< the variable, if it exists already
};

class Reader {
 public:
  Reader(HostState& state, HostFrame& frame, std::span<const Token> tokens)
      : state_(state), frame_(frame), tokens_(tokens) {}

  /// The value of the last expression of a list.
  HostValue Run() {
    if (tokens_.empty()) return HostValue::Unknown();
    HostValue value = Assignment().value;
    while (Accept(",")) value = Assignment().value;
    return at_ < tokens_.size() ? HostValue::Unknown() : value;
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].Is(text);
  }
  bool IsWord(size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == Token::Kind::kWord;
  }
  bool Accept(std::string_view text) {
    const bool here = Is(at_, text);
    at_ += here;
    return here;
  }
  /// The token that closes the bracket at `open`, or the number of tokens.
  size_t CloseOf(size_t open) const { return ClosingToken(tokens_, open); }
  std::span<const Token> Between(size_t open, size_t close) const {
    close = std::min(close, tokens_.size());
    return open + 1 < close ? tokens_.subspan(open + 1, close - open - 1)
                            : std::span<const Token>{};
  }
  HostValue Inside(size_t open, size_t close) {
    return Evaluate(state_, frame_, Between(open, close));
  }
  /// Two symbols of the source that the lexer keeps apart, such as << and <<=.
  bool Adjacent(size_t i, std::string_view first, std::string_view second) const {
    return Is(i, first) && Is(i + 1, second) &&
           tokens_[i].text.data() + 1 == tokens_[i + 1].text.data();
  }

  // --- operators ---

  Operand Assignment() {
    const Nested nested(state_);
    if (state_.TooDeep()) return {};
    Operand left = Conditional();
    if (Accept("=")) {
      Write(left, Assignment().value, /*named=*/state_.loops == 0);
      return left;
    }
    for (const std::string_view op : {"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="}) {
      if (Accept(op)) return Changed(left, op.substr(0, 1), Assignment().value);
    }
    for (const std::string_view shift : {"<", ">"}) {
      if (!Adjacent(at_, shift, std::string(shift) + "=")) continue;
      at_ += 2;
      return Changed(left, std::string(shift) + std::string(shift), Assignment().value);
    }
    return left;
  }

  Operand Changed(Operand& left, std::string_view op, const HostValue& by) {
    Write(left, Combined(state_, op, left.value, by), /*named=*/false);
    return left;
  }

  Operand Conditional() {
    Operand condition = Binary(0);
    if (!Accept("?")) return condition;
    const std::optional<bool> holds = TruthNow(condition.value, state_.leaves);
    HostValue one = Assignment().value;
    if (!Accept(":")) return {};
    HostValue other = Assignment().value;
    return {Chosen(condition.value, holds, std::move(one), std::move(other)), "", nullptr};
  }

  /// Operators of at least the precedence `least`.
  Operand Binary(int least) {
    const Nested nested(state_);
    if (state_.TooDeep()) return {};
    Operand left = Unary();
    for (;;) {
      const std::string op = OperatorHere();
      const int precedence = PrecedenceOf(op);
      if (precedence < 0 || precedence < least) break;
      at_ += op == "<<" || op == ">>" ? 2 : 1;
      const HostValue right = Binary(precedence + 1).value;
      left = {Combined(state_, op, left.value, right), "", nullptr};
    }
    return left;
  }

  std::string OperatorHere() const {
    for (const std::string_view shift : {"<", ">"}) {
      if (Adjacent(at_, shift, std::string(shift) + "=")) return "";
      if (Adjacent(at_, shift, shift)) return std::string(shift) + std::string(shift);
    }
    return at_ < tokens_.size() && tokens_[at_].kind == Token::Kind::kSymbol
               ? std::string(tokens_[at_].text)
               : "";
  }

  Operand Unary() {
    const Nested nested(state_);
    return state_.TooDeep() ? Operand{} : UnaryHere();
  }

  Operand UnaryHere() {
    if (Accept("&")) return AddressOf(Unary());
    if (Accept("*")) return Pointee(Unary());
    if (Accept("!")) return {Negated(Unary().value), "", nullptr};
    for (const std::string_view op : {"-", "+", "~"}) {
      if (Accept(op)) return {Signed(op, Unary().value), "", nullptr};
    }
    for (const std::string_view op : {"++", "--"}) {
      if (!Accept(op)) continue;
      Operand operand = Unary();
      return Changed(operand, op.substr(0, 1), HostValue::Number("1"));
    }
    if (IsWord(at_) && Is(at_, "sizeof")) return Sizeof();
    if (IsWord(at_) && Is(at_, "new")) return New();
    if (const size_t close = CastHere(); close != 0) {
      const std::string type = TypeText({at_ + 1, close});
      at_ = close + 1;
      return {Converted(state_, frame_, Unary().value, type), "", nullptr};
    }
    return Postfix(Primary());
  }

  Operand AddressOf(const Operand& operand) {
    // &buffer[0]
    const std::string base = operand.path.substr(0, operand.path.find('['));
    if (base != operand.path) {
      HostValue array = ReadName(state_, frame_, base);
      if (array.Is(Kind::kBuffer) && !array.buffer->type.contains('*'))
        return {operand.path == base + "[0]" ? array : HostValue::Unknown(), "", nullptr};
    }
    if (operand.path.empty() && operand.cell == nullptr) return {};
    HostValue address;
    address.kind = Kind::kAddress;
    address.target = operand.cell ? operand.cell : CellAt(state_, frame_, operand.path);
    return {address, "", nullptr};
  }

  Operand Pointee(const Operand& operand) {
    if (!operand.value.Is(Kind::kAddress)) return {};
    return {operand.value.target->value, "", operand.value.target};
  }

  HostValue Negated(const HostValue& value) {
    const auto truth = TruthNow(value, state_.leaves);
    if (!value.Is(Kind::kNumber) && truth) return HostValue::Number(*truth ? "0" : "1");
    if (!value.Is(Kind::kNumber)) return value;
    return HostValue::Number("not (" + value.text + ")", false, /*plain=*/false);
  }

  HostValue Signed(std::string_view op, HostValue value) {
    if (!value.Is(Kind::kNumber) || op == "+") return value;
    value.text = std::string(op) + (value.plain ? value.text : "(" + value.text + ")");
    value.plain = false;
    return value;
  }

  // --- types ---

  std::string TypeText(TokenRange range) const {
    std::string text;
    for (size_t i = range.begin; i < std::min(range.end, tokens_.size()); ++i)
      text += (text.empty() ? "" : " ") + std::string(tokens_[i].text);
    return text;
  }

  /// True for words that are a type: float, unsigned int, Real, float*.
  bool IsType(TokenRange range) const {
    if (range.empty() || !IsWord(range.begin)) return false;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (!IsWord(i) && !Is(i, "*") && !Is(i, "&") && !Is(i, "::") && !Is(i, "<") && !Is(i, ">"))
        return false;
    }
    if (Is(range.end - 1, "*") || Is(range.end - 1, "&")) return true;
    const std::string type = TypeText(range);
    return type == "void" || BytesOfType(state_, frame_, type).has_value();
  }

  /// The bracket that closes a cast like (float*) at this place; 0 if there is none.
  size_t CastHere() const {
    if (!Is(at_, "(")) return 0;
    const size_t close = CloseOf(at_);
    if (close + 1 >= tokens_.size() || !IsType({at_ + 1, close})) return 0;
    const Token& next = tokens_[close + 1];
    const bool operand = next.kind != Token::Kind::kSymbol || next.Is("(") || next.Is("&") ||
                         next.Is("*") || next.Is("-") || next.Is("!");
    return operand ? close : 0;
  }

  /// sizeof(float), sizeof(T), sizeof(*d), sizeof(d[0]), sizeof array.
  Operand Sizeof() {
    const bool brackets = Is(++at_, "(");
    size_t begin = brackets ? at_ + 1 : at_;
    const size_t end = brackets ? CloseOf(at_) : at_ + 1 + Is(at_, "*");
    at_ = brackets ? end + 1 : end;
    const bool element = Is(begin, "*");
    begin += element;
    const std::string type = TypeText({begin, end});
    const HostCell cell = IsWord(begin) ? FindCell(state_, frame_, tokens_[begin].text) : nullptr;
    if (cell && !element && begin + 1 == end) {
      if (cell->array && cell->value.Is(Kind::kBuffer)) return {cell->value.buffer->bytes, "", {}};
      if (cell->pointer && !cell->array) return {HostValue::Number("8"), "", nullptr};
    }
    const auto bytes = BytesOfType(state_, frame_, cell ? cell->type : type);
    return {bytes ? HostValue::Number(std::to_string(*bytes)) : HostValue::Unknown(), "", nullptr};
  }

  /// new float[n]
  Operand New() {
    size_t open = ++at_;
    while (open < tokens_.size() && !Is(open, "[") && !Is(open, "(") && !Is(open, "{")) ++open;
    const std::string type = TypeText({at_, open});
    const size_t close = CloseOf(open);
    at_ = std::min(close + 1, tokens_.size());
    const HostValue count = Inside(open, close);
    if (!Is(open, "[")) return {};
    return {ArrayOf(state_, frame_, type, count), "", nullptr};
  }

  // --- names ---

  Operand Primary() {
    if (at_ >= tokens_.size()) return {};
    const Token& token = tokens_[at_];
    if (token.kind == Token::Kind::kNumber) {
      ++at_;
      return {NumberOf(token.text), "", nullptr};
    }
    if (Is(at_, "(")) return Bracketed();
    if (Is(at_, "{")) return List();
    if (Is(at_, "[")) return Lambda();
    if (IsWord(at_)) return Name();
    ++at_;
    return {};
  }

  Operand Bracketed() {
    const size_t open = at_, close = CloseOf(at_);
    at_ = std::min(close + 1, tokens_.size());
    Reader inside(state_, frame_, Between(open, close));
    Operand operand = inside.Assignment();
    while (inside.Accept(",")) operand = inside.Assignment();
    if (operand.value.Is(Kind::kNumber) && !operand.value.plain) {
      operand.value.text = "(" + operand.value.text + ")";
      operand.value.plain = true;
    }
    return operand;
  }

  Operand List() {
    const size_t open = at_, close = CloseOf(at_);
    at_ = std::min(close + 1, tokens_.size());
    HostValue list;
    list.kind = Kind::kList;
    for (const Tokens& one : SplitTokens(Between(open, close)))
      list.items.push_back(Evaluate(state_, frame_, one));
    return {list, "", nullptr};
  }

  /// A lambda of the host: [=](int n, int tile) { return (n + tile - 1) / tile; }
  Operand Lambda() {
    HostValue lambda;
    size_t at = std::min(CloseOf(at_) + 1, tokens_.size());
    const size_t parameters = at;
    while (at < tokens_.size() && !Is(at, "{") && !Is(at, ",") && !Is(at, ";"))
      at = Is(at, "(") ? CloseOf(at) + 1 : at + 1;
    if (!Is(at, "{")) return at_ = std::min(at, tokens_.size()), Operand{};
    const size_t close = CloseOf(at);
    if (Is(parameters, "(")) lambda.parameters = InSource({parameters + 1, CloseOf(parameters)});
    lambda.body = InSource({at + 1, close});
    if (!lambda.body.empty()) lambda.kind = Kind::kLambda;
    at_ = std::min(close + 1, tokens_.size());
    return {lambda, "", nullptr};
  }

  /// The place of tokens in the source; empty for those of a macro.
  TokenRange InSource(TokenRange range) const {
    const std::vector<Token>& all = state_.syntax.lexed.tokens;
    if (range.empty() || range.end > tokens_.size()) return {};
    const auto first = std::ranges::lower_bound(all, tokens_[range.begin].offset, {},
                                                &Token::offset);
    const auto at = static_cast<size_t>(first - all.begin());
    const size_t end = at + range.end - range.begin;
    const bool same = end <= all.size() &&
                      all[at].text.data() == tokens_[range.begin].text.data() &&
                      all[end - 1].text.data() == tokens_[range.end - 1].text.data();
    return same ? TokenRange{at, end} : TokenRange{};
  }

  Operand Name() {
    while (IsWord(at_) && Is(at_ + 1, "::") && IsWord(at_ + 2)) at_ += 2;
    const std::string name(tokens_[at_++].text);
    if (name == "true" || name == "false")
      return {HostValue::Number(name == "true" ? "1" : "0"), "", nullptr};
    if (name == "nullptr" || name == "NULL" || name == "cudaSuccess")
      return {HostValue::Number("0"), "", nullptr};
    if (Is(at_, "<")) {
      const size_t close = TemplateClose();
      if (close != 0) return TemplateCall(name, close);
    }
    if (name == "dim3" && (Is(at_, "(") || Is(at_, "{"))) {
      HostValue list = Is(at_, "{") ? List().value : ListInBrackets();
      return {HostValue::Extents(std::move(list.items)), "", nullptr};
    }
    if (Is(at_, "(")) {
      const bool cast = BytesOfType(state_, frame_, name).has_value() &&
                        FindCell(state_, frame_, name) == nullptr;
      if (cast) return {Converted(state_, frame_, Bracketed().value, name), "", nullptr};
      return Called(name, {});
    }
    return {ReadName(state_, frame_, name), name, FindCell(state_, frame_, name)};
  }

  HostValue ListInBrackets() {
    const size_t open = at_, close = CloseOf(at_);
    at_ = std::min(close + 1, tokens_.size());
    HostValue list;
    for (const Tokens& one : SplitTokens(Between(open, close)))
      list.items.push_back(Evaluate(state_, frame_, one));
    return list;
  }

  /// The `>` of template arguments at this place; 0 if the `<` is an operator.
  size_t TemplateClose() const {
    int depth = 0;
    for (size_t i = at_; i < tokens_.size(); ++i) {
      if (Is(i, "(") || Is(i, "[")) i = CloseOf(i);
      depth += Is(i, "<") - Is(i, ">");
      if (Is(i, ";") || Is(i, "{") || Is(i, "&&") || Is(i, "||")) return 0;
      if (depth == 0) return Is(i + 1, "(") || Is(i + 1, "{") ? i : 0;
    }
    return 0;
  }

  Operand TemplateCall(const std::string& name, size_t close) {
    const std::vector<Tokens> arguments = SplitTokens(Between(at_, close));
    at_ = close + 1;
    if (!name.ends_with("_cast") || arguments.empty()) return Called(name, arguments);
    std::string type;
    for (const Token& token : arguments[0])
      type += (type.empty() ? "" : " ") + std::string(token.text);
    return {Converted(state_, frame_, Bracketed().value, type), "", nullptr};
  }

  Operand Called(const std::string& name, const std::vector<Tokens>& template_args) {
    HostCall call{name, template_args, {}, {}, {}};
    if (!Is(at_, "(")) return {};
    const size_t close = CloseOf(at_);
    call.tokens = SplitTokens(Between(at_, close));
    at_ = std::min(close + 1, tokens_.size());
    for (const Tokens& tokens : call.tokens) {
      Reader argument(state_, frame_, tokens);
      Operand operand = argument.Assignment();
      if (argument.at_ < tokens.size()) operand = {};
      call.arguments.push_back(operand.value);
      call.cells.push_back(operand.cell);
    }
    return {CallHost(state_, frame_, call), "", nullptr};
  }

  /// The members, elements and calls behind an operand.
  Operand Postfix(Operand operand) {
    for (;;) {
      if (Accept(".") || Accept("->")) {
        operand = Member(operand);
      } else if (Is(at_, "[")) {
        operand = Element(operand);
      } else if (Is(at_, "(")) {
        (void)ListInBrackets();
        operand = {};
      } else if (Is(at_, "++") || Is(at_, "--")) {
        const std::string_view op = tokens_[at_++].text.substr(0, 1);
        const HostValue before = operand.value;
        Changed(operand, op, HostValue::Number("1"));
        operand = {before, "", nullptr};
      } else {
        return operand;
      }
    }
  }

  Operand Member(const Operand& object) {
    if (!IsWord(at_)) return {};
    const std::string member(tokens_[at_++].text);
    if (Is(at_, "<") && TemplateClose() != 0) at_ = TemplateClose() + 1;
    if (Is(at_, "(")) {
      const HostValue list = ListInBrackets();
      return {CallMember(state_, object.value, object.cell, member, list.items), "", nullptr};
    }
    const size_t axis = std::string_view("xyz").find(member);
    const std::string path = object.path.empty() ? "" : object.path + "." + member;
    if (object.value.Is(Kind::kExtents) && member.size() == 1 && axis < 3)
      return {object.value.items[axis], path, object.cell};
    if (path.empty()) return {};
    return {ReadName(state_, frame_, path), path, FindCell(state_, frame_, path)};
  }

  Operand Element(const Operand& array) {
    const size_t open = at_, close = CloseOf(at_);
    at_ = std::min(close + 1, tokens_.size());
    const auto now = NumberNow(Inside(open, close), state_.leaves);
    const int64_t* place = now ? std::get_if<int64_t>(&*now) : nullptr;
    if (place == nullptr || *place < 0 || array.path.empty()) return {{}, "", nullptr};
    const std::string path = array.path + "[" + std::to_string(*place) + "]";
    const HostCell cell = FindCell(state_, frame_, path);
    const auto listed = static_cast<int64_t>(array.value.items.size());
    if (!cell && array.value.Is(Kind::kList) && *place < listed)
      return {array.value.items[static_cast<size_t>(*place)], "", nullptr};
    HostValue value = cell ? ReadName(state_, frame_, path) : HostValue::Unknown();
    return {std::move(value), *place < kMostElements ? path : "", cell};
  }

  /// Gives the variable behind an operand a value.
  void Write(Operand& to, HostValue value, bool named) {
    to.value = value;
    const size_t dot = to.path.rfind('.');
    if (dot != std::string::npos) {
      const HostCell object = FindCell(state_, frame_, to.path.substr(0, dot));
      if (object && object->value.Is(Kind::kExtents)) {
        const size_t axis = std::string_view("xyz").find(to.path.substr(dot + 1));
        if (axis < 3) object->value.items[axis] = std::move(value);
        return;
      }
    }
    if (to.cell == nullptr && to.path.empty()) return;
    const HostCell cell = to.cell ? to.cell : CellAt(state_, frame_, to.path);
    if (cell->value.Is(Kind::kExtents) && value.Is(Kind::kNumber))
      value = HostValue::Extents({std::move(value)});
    Store(state_, *cell, std::move(value), named && !to.path.contains('['));
    to.cell = cell;
  }

  HostState& state_;
  HostFrame& frame_;
  std::span<const Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

HostValue Evaluate(HostState& state, HostFrame& frame, std::span<const Token> tokens) {
  if (state.reached != nullptr && state.calls > 0) return HostValue::Unknown();
  if (--state.steps_left < 0) return HostValue::Unknown();
  return Reader(state, frame, tokens).Run();
}

HostValue Evaluate(HostState& state, HostFrame& frame, TokenRange range) {
  return Evaluate(state, frame, CopyTokens(state.syntax, range));
}

}  // namespace atunner
