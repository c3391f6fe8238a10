#include "atunner/ptx/statements.h"

#include <algorithm>
#include <map>
#include <utility>

#include "atunner/ptx/lexer.h"
#include "atunner/ptx/variable_parser.h"

namespace atunner::ptx {
namespace {

using Kind = TextOperand::Kind;

constexpr int kMaxOperandDepth = 16;

/// Registers by name, scope by scope.
class Scopes {
 public:
  void Open() { scopes_.emplace_back(); }
  void Close() { scopes_.pop_back(); }
  size_t Depth() const { return scopes_.size(); }
  void Define(std::string name, int reg) { scopes_.back()[std::move(name)] = reg; }
  int Find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto at = scope->find(name); at != scope->end()) return at->second;
    }
    return -1;
  }

 private:
  std::vector<std::map<std::string, int, std::less<>>> scopes_;
};

class StatementReader {
 public:
  StatementReader(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  Result<TextModule> Run() {
    while (!End()) ATUNNER_RETURN_IF_ERROR(TopLevel());
    return std::move(module_);
  }

 private:
  bool End() const { return at_ >= tokens_.size(); }
  std::string_view Peek(size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string_view{};
  }
  std::string_view Next() { return End() ? std::string_view{} : tokens_[at_++].text; }
  bool Accept(std::string_view word) {
    if (Peek() != word) return false;
    ++at_;
    return true;
  }
  void SkipPast(std::string_view word) {
    while (!End() && Next() != word) {
    }
  }
  /// Place in the text of the current token, or the text's end.
  size_t Begin() const {
    return End() ? text_.size() : static_cast<size_t>(tokens_[at_].text.data() - text_.data());
  }
  /// Place behind the last token read.
  size_t Behind() const {
    if (at_ == 0) return 0;
    const std::string_view last = tokens_[at_ - 1].text;
    return static_cast<size_t>(last.data() - text_.data()) + last.size();
  }
  uint32_t Line() const { return End() ? 0 : tokens_[at_].line; }
  std::unexpected<Error> Unsupported(std::string what) const {
    return Fail(ErrorCode::kUnsupported, std::move(what), "PTX line " + std::to_string(Line()));
  }

  Status TopLevel();
  void SkipBraces();
  Status Head(bool is_entry);
  Status Body(TextFunction& function);
  Status Statement(TextFunction& function);
  Status Registers(TextFunction& function);
  void SkipLocation();
  Status LocalVariable(TextFunction& function);
  Status Instruction(TextFunction& function);
  Result<TextOperand> Operand(int depth);
  Result<TextOperand> Vector(std::string_view close, int depth);
  Result<TextOperand> Address(int depth);
  TextOperand Word();
  void Second(TextOperand& operand);
  bool OperandEnds(int nesting) const;

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  TextModule module_;
  Scopes scopes_;
};

Status StatementReader::TopLevel() {
  const std::string_view word = Next();
  if (word == ".target") {
    module_.target = std::string(Next());
  } else if (word == ".address_size") {
    Next();
    module_.variables = Behind();
  } else if (word == ".entry" || word == ".func") {
    return Head(word == ".entry");
  } else if (word == ".section" || word == "=") {
    SkipBraces();
  }
  return {};
}

/// Everything up to a closing brace, or to the end of a statement without braces.
void StatementReader::SkipBraces() {
  int depth = 0;
  while (!End()) {
    const std::string_view token = Next();
    depth += token == "{" ? 1 : token == "}" ? -1 : 0;
    if (depth == 0 && (token == "}" || token == ";")) return;
  }
}

Status StatementReader::Head(bool is_entry) {
  TextFunction function;
  function.is_entry = is_entry;
  std::string_view before;
  for (int nesting = 0; !End() && Peek() != "{"; before = Next()) {
    const std::string_view token = Peek();
    if (token == ";" && nesting == 0) return Next(), Status{};  // a declaration
    if (token == ".reg") return Unsupported("a function with registers as parameters");
    if (nesting == 0 && token.starts_with('.')) function.directives.emplace_back(token);
    if (nesting == 1 && IsWordStart(token[0]) && token[0] != '.')
      function.parameters.emplace_back(token);
    nesting += token == "(" ? 1 : token == ")" ? -1 : 0;
    if (nesting == 0 && function.name.empty() && IsWordStart(token[0]) && token[0] != '.')
      function.name = std::string(token);
  }
  function.head = Begin();
  Next();
  function.begin = Behind();
  ATUNNER_RETURN_IF_ERROR(Body(function));
  module_.functions.push_back(std::move(function));
  return {};
}

Status StatementReader::Body(TextFunction& function) {
  scopes_ = {};
  scopes_.Open();
  while (scopes_.Depth() > 0) {
    if (End()) return Invalid("a function without end", "PTX");
    if (Accept("{"))
      scopes_.Open();
    else if (Accept("}"))
      scopes_.Close();
    else
      ATUNNER_RETURN_IF_ERROR(Statement(function));
  }
  return {};
}

Status StatementReader::Statement(TextFunction& function) {
  const std::string_view word = Peek();
  if (word == ".reg") return Registers(function);
  if (word == ".local") return LocalVariable(function);
  if (word == ".loc") return SkipLocation(), Status{};
  if (Peek(1) == ":") {
    at_ += 2;
    if (Peek() == ".branchtargets" || Peek() == ".calltargets" || Peek() == ".callprototype")
      SkipPast(";");
    return {};
  }
  if (word.starts_with('.')) return SkipBraces(), Status{};
  return Instruction(function);
}

void StatementReader::SkipLocation() {
  const uint32_t line = Line();
  while (!End() && Line() == line) Next();
}

Status StatementReader::Registers(TextFunction& function) {
  Next();
  const Type type = TypeOfWord(Peek());
  if (type == Type::kNone) return Unsupported("vectors of registers");
  Next();
  do {
    const std::string name(Next());
    uint64_t count = 1;
    const bool numbered = Accept("<");
    if (numbered) {
      count = std::strtoull(std::string(Next()).c_str(), nullptr, 0);
      Accept(">");
    }
    for (uint64_t i = 0; i < count; ++i) {
      std::string full = numbered ? name + std::to_string(i) : name;
      scopes_.Define(full, static_cast<int>(function.registers.size()));
      function.registers.push_back({std::move(full), type});
    }
  } while (Accept(","));
  SkipPast(";");
  return {};
}

Status StatementReader::LocalVariable(TextFunction& function) {
  Next();
  std::vector<Token> declaration;
  while (!End() && Peek() != ";") declaration.push_back(tokens_[at_++]);
  Next();
  TokenStream stream(std::move(declaration));
  VariableParser parser(stream);
  ATUNNER_TRY(Variable variable, parser.Declaration());
  if (scopes_.Depth() > 1) return Unsupported("local memory of an inner scope");
  function.local.push_back(std::move(variable));
  return {};
}

Status StatementReader::Instruction(TextFunction& function) {
  TextInstruction instruction;
  instruction.begin = Begin();
  instruction.line = Line();
  if (Accept("@")) {
    instruction.guard = Accept("!") ? "@!" : "@";
    instruction.guard += std::string(Next()) + " ";
  }
  std::vector<std::string> parts = SplitDots(Next());
  if (parts.empty()) return Invalid("expected an instruction", "PTX");
  instruction.opcode = std::move(parts[0]);
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  while (!End() && Peek() != ";") {
    ATUNNER_TRY(TextOperand operand, Operand(0));
    instruction.operands.push_back(std::move(operand));
    if (!Accept(",") && Peek() != ";") return Unsupported("an operand of this form");
  }
  Next();
  instruction.end = Behind();
  function.body.push_back(std::move(instruction));
  return {};
}

Result<TextOperand> StatementReader::Operand(int depth) {
  if (depth > kMaxOperandDepth) return Unsupported("operands of this depth");
  const size_t begin = Begin();
  ATUNNER_TRY(TextOperand operand, Accept("{")   ? Vector("}", depth)
                                   : Accept("(") ? Vector(")", depth)
                                   : Accept("[") ? Address(depth)
                                                 : Result<TextOperand>(Word()));
  operand.text = std::string(text_.substr(begin, std::max(Behind(), begin) - begin));
  Second(operand);
  return operand;
}

Result<TextOperand> StatementReader::Vector(std::string_view close, int depth) {
  TextOperand vector;
  vector.kind = Kind::kVector;
  while (!Accept(close)) {
    if (End()) return Invalid("a vector without end", "PTX");
    ATUNNER_TRY(TextOperand element, Operand(depth + 1));
    vector.elements.push_back(std::move(element));
    if (!Accept(",") && Peek() != close) return Unsupported("a vector of this form");
  }
  return vector;
}

Result<TextOperand> StatementReader::Address(int depth) {
  TextOperand address;
  address.kind = Kind::kAddress;
  address.base = std::string(Next());
  address.reg = scopes_.Find(address.base);
  while (!End() && Peek() != "]" && Peek() != ",") address.offset += Next();
  while (Accept(",")) {
    ATUNNER_TRY(TextOperand element, Operand(depth + 1));
    address.elements.push_back(std::move(element));
  }
  if (!Accept("]")) return Unsupported("an address of this form");
  return address;
}

bool StatementReader::OperandEnds(int nesting) const {
  const std::string_view token = Peek();
  return nesting == 0 && (token == "," || token == ";" || token == "}" || token == "]" ||
                          token == ")" || token == "|");
}

TextOperand StatementReader::Word() {
  TextOperand operand;
  operand.negated = Accept("!");
  const std::string_view first = Peek();
  size_t words = 0;
  for (int nesting = 0; !End() && !OperandEnds(nesting); ++words) {
    const std::string_view token = Next();
    nesting += token == "(" ? 1 : token == ")" ? -1 : 0;
  }
  const bool digit = !first.empty() &&
                     (first[0] == '-' || first[0] == '.' || (first[0] >= '0' && first[0] <= '9'));
  if (words == 1 && first == "_") {
    operand.kind = Kind::kSink;
  } else if (words == 1 && (operand.reg = scopes_.Find(first)) >= 0) {
    operand.kind = Kind::kRegister;
  } else if (digit && words == (first == "-" ? 2u : 1u)) {
    const std::string_view number = tokens_[at_ - 1].text;
    if (!number.empty() && number[0] <= '9') operand.kind = Kind::kConstant;
  }
  return operand;
}

void StatementReader::Second(TextOperand& operand) {
  if (!Accept("|")) return;
  operand.second = scopes_.Find(Next());
}

}  // namespace

bool TextInstruction::Has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

std::string TextInstruction::Mnemonic() const {
  std::string text = opcode;
  for (const std::string& modifier : modifiers) text += "." + modifier;
  return text;
}

Result<TextModule> Statements(std::string_view text) {
  ATUNNER_TRY(const ValidModule parsed, Parse(text));
  ATUNNER_TRY(std::vector<Token> tokens, Tokens(text));
  ATUNNER_TRY(TextModule module, StatementReader(text, std::move(tokens)).Run());
  module.globals = parsed.globals();
  return module;
}

}  // namespace atunner::ptx
