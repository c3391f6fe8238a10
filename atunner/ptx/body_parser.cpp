#include <algorithm>
#include <cstdlib>
#include <utility>

#include "atunner/ptx/function_parser.h"

namespace atunner::ptx {
namespace {

constexpr uint64_t kMaxRegisters = 1000000;

bool IsVectorMove(const Instruction& i) {
  return i.opcode == "mov" && (i.Has("v2") || i.Has("v4"));
}

Operand RegisterOperand(size_t reg) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = static_cast<int>(reg);
  return operand;
}

/// "%tid" as a vector of "%tid.x", "%tid.y", "%tid.z" and zero, or the first two of them.
Operand ElementsOfSpecial(const Operand& special, size_t lanes) {
  Operand all;
  all.kind = Operand::Kind::kVector;
  for (size_t i = 0; i < std::min<size_t>(lanes, 3); ++i) {
    all.elements.push_back(special);
    all.elements.back().name += std::string(".") + std::string_view("xyz")[i];
  }
  if (lanes == 4) all.elements.emplace_back().kind = Operand::Kind::kImmediate;
  return all;
}

}  // namespace

Status BodyParser::Parse(Function& function) {
  int depth = 1;
  while (depth > 0) {
    if (tokens_.End()) return tokens_.Bad("function '" + function.name + "' without end");
    if (tokens_.Accept("{")) {
      ++depth;
      names_.OpenScope();
    } else if (tokens_.Accept("}")) {
      if (--depth > 0) names_.CloseScope();
    } else {
      ATUNNER_RETURN_IF_ERROR(Statement(function));
    }
  }
  return {};
}

Status BodyParser::Statement(Function& function) {
  const std::string_view word = tokens_.Peek();
  if (word == ".reg") return Registers(function);
  if (word == ".shared" || word == ".local" || word == ".param") return LocalVariable(function);
  if (word == ".global" || word == ".const") return StaticVariable(function);
  if (word == ".loc") return SourceLine();
  if (word == ".pragma") return Pragma(function);
  if (tokens_.Peek(1) == ":") return Label(function);
  if (word.starts_with('.')) return tokens_.Bad("unknown directive '" + std::string(word) + "'");
  return ParseInstruction(function);
}

Status BodyParser::Label(Function& function) {
  const std::string label(tokens_.Next());
  tokens_.Next();
  const std::string_view kind = tokens_.Peek();
  if (kind != ".branchtargets" && kind != ".calltargets" && kind != ".callprototype") {
    ATUNNER_RETURN_IF_ERROR(names_.Declare(label));
    function.labels[names_.Label(label)] = static_cast<uint32_t>(function.body.size());
    return {};
  }
  const bool branch = tokens_.Next() == ".branchtargets";
  const std::string list = names_.Label(label);
  while (!tokens_.End() && !tokens_.Accept(";")) {
    const std::string target(tokens_.Next());
    if (branch && target != ",") function.branch_targets[list].push_back(target);
  }
  if (branch) names_.NoteBranchList(list);
  return {};
}

Status BodyParser::Pragma(Function& function) {
  constexpr std::string_view kUsedBytes = "used_bytes_mask ";
  while (!tokens_.End() && !tokens_.Accept(";")) {
    const std::string_view text = tokens_.Next();
    const size_t at = text.find(kUsedBytes);
    if (at == std::string_view::npos) continue;
    const std::string mask(text.substr(at + kUsedBytes.size()));
    function.used_bytes[static_cast<uint32_t>(function.body.size())] = std::strtoull(mask.c_str(),
                                                                                     nullptr, 0);
  }
  return {};
}

Status BodyParser::Registers(Function& function) {
  tokens_.Next();
  std::string_view word = tokens_.Next();
  const int lanes = word == ".v2" ? 2 : word == ".v4" ? 4 : 1;
  if (lanes > 1) word = tokens_.Next();
  const Type type = TypeOfWord(word);
  if (type == Type::kNone) return tokens_.Bad("unknown register type '" + std::string(word) + "'");
  do {
    const std::string name(tokens_.Next());
    if (!tokens_.Accept("<")) {
      ATUNNER_RETURN_IF_ERROR(names_.DefineVector(function, name, type, lanes));
      continue;
    }
    ATUNNER_TRY(const uint64_t count, constants_.Number());
    if (count > kMaxRegisters) return tokens_.Bad("too many registers");
    if (!tokens_.Accept(">")) return tokens_.Bad("expected '>'");
    for (uint64_t i = 0; i < count; ++i)
      ATUNNER_RETURN_IF_ERROR(names_.DefineVector(function, name + std::to_string(i), type, lanes));
  } while (tokens_.Accept(","));
  return tokens_.Accept(";") ? Status{} : Status(tokens_.Bad("expected ';'"));
}

Status BodyParser::LocalVariable(Function& function) {
  const std::string space(tokens_.Next());
  ATUNNER_TRY(Variable variable, variables_.Declaration());
  ATUNNER_RETURN_IF_ERROR(variables_.Finish(variable));
  ATUNNER_RETURN_IF_ERROR(names_.Declare(variable.name));
  if (space == ".shared") {
    Place(variable, function.shared_bytes);
    function.shared.push_back(std::move(variable));
  } else {  // .param variables of calls are stored on the stack like locals
    Place(variable, function.local_bytes);
    if (names_.InnerScope()) names_.Rename(variable.name);
    function.local.push_back(std::move(variable));
  }
  return {};
}

Status BodyParser::StaticVariable(const Function& function) {
  const bool constant = tokens_.Next() == ".const";
  ATUNNER_TRY(Variable variable, variables_.Declaration());
  ATUNNER_RETURN_IF_ERROR(variables_.Finish(variable));
  ATUNNER_RETURN_IF_ERROR(names_.Declare(variable.name));
  names_.Rename(variable.name, function.name);
  (constant ? statics_.constants : statics_.globals).push_back(std::move(variable));
  return {};
}

Status BodyParser::SourceLine() {
  const uint32_t line = tokens_.Line();
  tokens_.Next();
  ATUNNER_TRY(const uint64_t file, constants_.Number());
  ATUNNER_TRY(const uint64_t source_line, constants_.Number());
  // The rest is on the same line: the column, and for inlined code "function_name …, inlined_at
  // file line column".
  uint64_t outer_file = 0;
  uint64_t outer_line = 0;
  while (!tokens_.End() && tokens_.Line() == line) {
    if (tokens_.Next() == "inlined_at") {
      ATUNNER_TRY(outer_file, constants_.Number());
      ATUNNER_TRY(outer_line, constants_.Number());
    }
  }
  if (source_line == 0) return {};
  // Code that was inlined from a header is shown at the line of the call, which its author knows.
  source_file_ = static_cast<uint32_t>(outer_line ? outer_file : file);
  source_line_ = static_cast<uint32_t>(outer_line ? outer_line : source_line);
  return {};
}

Status BodyParser::ParseInstruction(Function& function) {
  Instruction instruction;
  instruction.line = tokens_.Line();
  instruction.source_file = source_file_;
  instruction.source_line = source_line_;
  ATUNNER_RETURN_IF_ERROR(Guard(instruction));
  std::vector<std::string> parts = SplitDots(tokens_.Next());
  if (parts.empty()) return tokens_.Bad("expected an instruction");
  instruction.opcode = std::move(parts[0]);
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  ATUNNER_RETURN_IF_ERROR(Operands(instruction));
  ATUNNER_RETURN_IF_ERROR(NoteBranch(function, instruction));
  for (size_t i = 1; i < instruction.operands.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(ReplaceSum(function, instruction, instruction.operands[i]));
  return Append(function, std::move(instruction));
}

Status BodyParser::Operands(Instruction& instruction) {
  const bool call = instruction.opcode == "call";
  while (!tokens_.Accept(";")) {
    if (tokens_.End()) return tokens_.Bad("instruction without ';'");
    ATUNNER_TRY(Operand operand, operands_.Parse(call));
    instruction.operands.push_back(std::move(operand));
    if (!tokens_.Accept(",") && tokens_.Peek() != ";") return tokens_.Bad("expected ',' or ';'");
  }
  return {};
}

Status BodyParser::Guard(Instruction& instruction) {
  if (!tokens_.Accept("@")) return {};
  instruction.guard_negated = tokens_.Accept("!");
  instruction.guard = names_.FindRegister(tokens_.Next());
  return instruction.guard < 0 ? Status(tokens_.Bad("unknown guard predicate")) : Status{};
}

Status BodyParser::NoteBranch(const Function& function, const Instruction& instruction) {
  const bool branch = instruction.opcode == "bra" && instruction.operands.size() == 1;
  const bool indexed = instruction.opcode == "brx" && instruction.operands.size() == 2;
  if (!branch && !indexed) return {};
  if (!instruction.operands.back().name.empty())
    names_.NoteBranch(function.body.size());
  else if (branch)
    return tokens_.Bad("branch without a label");
  return {};
}

Status BodyParser::Append(Function& function, Instruction instruction) {
  if (instruction.opcode == "call") {
    const auto callee = std::ranges::find_if_not(
        instruction.operands, [](const Operand& o) { return o.kind == Operand::Kind::kVector; });
    if (callee == instruction.operands.end()) return tokens_.Bad("call without a function");
    const auto* bytes = module_names_.ParameterBytes(callee->name);
    parameters_.AddCall(function, std::move(instruction), bytes);
    return {};
  }
  if (instruction.opcode == "ret") parameters_.StoreResults(function, instruction);
  if (IsVectorMove(instruction)) return MoveVector(function, std::move(instruction));
  function.body.push_back(std::move(instruction));
  return {};
}

Status BodyParser::ReplaceSum(Function& function, const Instruction& instruction,
                              Operand& operand) {
  for (Operand& element : operand.elements)
    ATUNNER_RETURN_IF_ERROR(ReplaceSum(function, instruction, element));
  const bool third = instruction.operands.size() > 2 && &operand >= &instruction.operands[2];
  if (operand.kind == Operand::Kind::kAddress && operand.reg >= 0 && third &&
      instruction.Has("bulk")) {
    Operand base = RegisterOperand(static_cast<size_t>(operand.reg));
    base.bits = std::exchange(operand.bits, 0);
    ATUNNER_RETURN_IF_ERROR(ReplaceSum(function, instruction, base));
    operand.reg = base.reg;
  }
  if (operand.kind != Operand::Kind::kRegister || operand.bits == 0) return {};
  return AddSum(function, instruction, operand);
}

Status BodyParser::AddSum(Function& function, const Instruction& instruction, Operand& operand) {
  const Type type = function.registers[static_cast<size_t>(operand.reg)].type;
  const int bits = BitsOf(type);
  if (bits < 16 || bits > 64)
    return tokens_.Bad("a register of " + std::to_string(bits) + " bits with an offset");
  Instruction add = instruction;
  add.opcode = "add";
  add.modifiers = {"u" + std::to_string(bits)};
  Operand term;
  term.kind = Operand::Kind::kImmediate;
  std::swap(term.bits, operand.bits);
  Operand sum = operand;
  sum.reg = static_cast<int>(function.registers.size());
  ATUNNER_RETURN_IF_ERROR(names_.DefineRegister(function, "sum#" + std::to_string(sum.reg), type));
  add.operands = {sum, operand, term};
  operand = std::move(sum);
  function.body.push_back(std::move(add));
  return {};
}

Status BodyParser::MoveVector(Function& function, Instruction move) {
  const size_t lanes = move.Has("v2") ? 2 : 4;
  if (move.operands.size() == 2 && move.operands[1].kind == Operand::Kind::kSpecial)
    move.operands[1] = ElementsOfSpecial(move.operands[1], lanes);
  const auto is_vector = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::kVector && operand.elements.size() == lanes;
  };
  if (move.operands.size() != 2 || !std::ranges::all_of(move.operands, is_vector))
    return tokens_.Bad("a vector is moved to one of its size");
  Instruction part = move;
  std::erase_if(part.modifiers, [](const std::string& m) { return m == "v2" || m == "v4"; });
  const Type type = part.modifiers.empty() ? Type::kB32 : ParseType(part.modifiers.back());
  // All elements are read before one is written, because both vectors may share registers.
  std::vector<Operand> held;
  for (const Operand& from : move.operands[1].elements) {
    held.push_back(RegisterOperand(function.registers.size()));
    ATUNNER_RETURN_IF_ERROR(
        names_.DefineRegister(function, "mov#" + std::to_string(held.back().reg), type));
    part.operands = {held.back(), from};
    function.body.push_back(part);
  }
  for (size_t i = 0; i < lanes; ++i) {
    part.operands = {move.operands[0].elements[i], held[i]};
    function.body.push_back(part);
  }
  return {};
}

}  // namespace atunner::ptx
