#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "atunner/ptx/parser.h"

namespace atunner::ptx {
namespace {

/// Operands nest twice at most: a vector in an address.
constexpr int kMaxOperandDepth = 16;
constexpr std::string_view kParts = "xyzw";
constexpr std::string_view kColours = "rgba";  // other names of the same

constexpr std::string_view kSpecials[] = {
    "%tid",
    "%ntid",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%ctaid",
    "%nctaid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%current_graph_exec",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%clusterid",
    "%nclusterid",
    "%is_explicit_cluster",
    "%warpsize",
};

bool IsSpecial(std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  for (std::string_view numbered : {"%envreg", "%reserved_smem_offset_", "%pm"}) {
    if (base.starts_with(numbered)) return true;
  }
  return std::ranges::find(kSpecials, base) != std::end(kSpecials);
}

}  // namespace

Status Parser::Body(Function& function) {
  int depth = 1;
  while (depth > 0) {
    if (End()) return Bad("function '" + function.name + "' without end");
    if (Accept("{")) {
      ++depth;
      OpenScope();
    } else if (Accept("}")) {
      if (--depth > 0) CloseScope();
    } else {
      ATUNNER_RETURN_IF_ERROR(Statement(function));
    }
  }
  return {};
}

Status Parser::Statement(Function& function) {
  const std::string_view word = Peek();
  if (word == ".reg") return Registers(function);
  if (word == ".shared" || word == ".local" || word == ".param") return LocalVariable(function);
  if (word == ".loc") return Location();
  if (word == ".pragma") return Pragma(function);
  if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == ":") {
    const std::string label(Next());
    Next();
    if (Peek() == ".branchtargets" || Peek() == ".calltargets" || Peek() == ".callprototype") {
      const bool branch = Next() == ".branchtargets";
      const std::string list = InScope(label, scope_);
      while (!End() && !Accept(";")) {
        const std::string target(Next());
        if (branch && target != ",") function.branch_targets[list].push_back(target);
      }
      if (branch && scope_ != 0) branch_lists_.emplace_back(list, scope_);
      return {};
    }
    ATUNNER_RETURN_IF_ERROR(Declare(label));
    function.labels[InScope(label, scope_)] = static_cast<uint32_t>(function.body.size());
    return {};
  }
  if (word.starts_with('.')) return Bad("unknown directive '" + std::string(word) + "'");
  return ParseInstruction(function);
}

Status Parser::Pragma(Function& function) {
  constexpr std::string_view kUsedBytes = "used_bytes_mask ";
  while (!End() && !Accept(";")) {
    const std::string_view text = Next();
    const size_t at = text.find(kUsedBytes);
    if (at == std::string_view::npos) continue;
    const std::string mask(text.substr(at + kUsedBytes.size()));
    function.used_bytes[static_cast<uint32_t>(function.body.size())] = std::strtoull(mask.c_str(),
                                                                                     nullptr, 0);
  }
  return {};
}

Status Parser::Registers(Function& function) {
  Next();
  std::string_view type_word = Next();
  const int lanes = type_word == ".v2" ? 2 : type_word == ".v4" ? 4 : 1;
  if (lanes > 1) type_word = Next();
  const Type type = TypeOfWord(type_word);
  if (type == Type::kNone) return Bad("unknown register type '" + std::string(type_word) + "'");
  do {
    const std::string name(Next());
    if (Accept("<")) {
      ATUNNER_TRY(const uint64_t count, Number());
      if (count > 1000000) return Bad("too many registers");
      if (!Accept(">")) return Bad("expected '>'");
      for (uint64_t i = 0; i < count; ++i)
        ATUNNER_RETURN_IF_ERROR(DefineVector(function, name + std::to_string(i), type, lanes));
    } else {
      ATUNNER_RETURN_IF_ERROR(DefineVector(function, name, type, lanes));
    }
  } while (Accept(","));
  return Accept(";") ? Status{} : Bad("expected ';'");
}

Status Parser::DefineVector(Function& function, const std::string& name, Type type, int lanes) {
  if (lanes == 1) return Define(function, name, type);
  vectors_[name] = lanes;
  for (size_t i = 0; i < static_cast<size_t>(lanes); ++i) {
    ATUNNER_RETURN_IF_ERROR(Define(function, name + "." + kParts[i], type));
    registers_[name + "." + kColours[i]] = static_cast<int>(function.registers.size()) - 1;
  }
  return {};
}

Status Parser::LocalVariable(Function& function) {
  const std::string space(Next());
  ATUNNER_TRY(Variable variable, Declaration());
  if (Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
  if (!Accept(";")) return Bad("expected ';'");
  ATUNNER_RETURN_IF_ERROR(Declare(variable.name));
  if (space == ".shared") {
    Place(variable, function.shared_bytes);
    function.shared.push_back(std::move(variable));
  } else {  // .param variables of calls live on the stack like locals
    Place(variable, function.local_bytes);
    if (scope_ != 0) Rename(variable.name);
    function.local.push_back(std::move(variable));
  }
  return {};
}

Status Parser::Location() {
  const uint32_t line = tokens_[at_].line;
  Next();
  ATUNNER_TRY(const uint64_t file, Number());
  ATUNNER_TRY(const uint64_t source_line, Number());
  // The rest stands on the same line: column, and for inlined code "function_name …, inlined_at
  // file line column".
  uint64_t outer_file = 0;
  uint64_t outer_line = 0;
  while (!End() && tokens_[at_].line == line) {
    if (Next() == "inlined_at") {
      ATUNNER_TRY(outer_file, Number());
      ATUNNER_TRY(outer_line, Number());
    }
  }
  if (source_line == 0) return {};
  // Inlined from a header: the line of the call is the one its author knows.
  source_file_ = static_cast<uint32_t>(outer_line ? outer_file : file);
  source_line_ = static_cast<uint32_t>(outer_line ? outer_line : source_line);
  return {};
}

Status Parser::ParseInstruction(Function& function) {
  Instruction instruction;
  instruction.line = tokens_[at_].line;
  instruction.source_file = source_file_;
  instruction.source_line = source_line_;
  ATUNNER_RETURN_IF_ERROR(Guard(instruction));
  std::vector<std::string> parts = SplitDots(Next());
  if (parts.empty()) return Bad("expected an instruction");
  instruction.opcode = std::move(parts[0]);
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  in_call_ = instruction.opcode == "call";
  while (!Accept(";")) {
    if (End()) return Bad("instruction without ';'");
    ATUNNER_TRY(Operand operand, ParseOperand(function));
    instruction.operands.push_back(std::move(operand));
    if (!Accept(",") && Peek() != ";") return Bad("expected ',' or ';'");
  }
  if (instruction.opcode == "bra" && instruction.operands.size() == 1 &&
      !ResolveLater(instruction.operands[0].name, function.body.size()))
    return Bad("branch without a label");
  if (instruction.opcode == "brx" && instruction.operands.size() == 2)
    ResolveLater(instruction.operands[1].name, function.body.size());
  for (size_t i = 1; i < instruction.operands.size(); ++i)
    ATUNNER_RETURN_IF_ERROR(AddOffset(function, instruction, instruction.operands[i]));
  if (in_call_) return ParseCall(function, std::move(instruction));
  if (instruction.opcode == "ret") StoreResults(function, instruction);
  if (instruction.opcode == "mov" && (instruction.Has("v2") || instruction.Has("v4")))
    return MoveVector(function, std::move(instruction));
  function.body.push_back(std::move(instruction));
  return {};
}

/// "mov.u32 a, b+4" takes a sum, and so may any operand that is a register, and the mbarrier of a
/// bulk copy.
Status Parser::AddOffset(Function& function, const Instruction& instruction, Operand& operand) {
  for (Operand& element : operand.elements)
    ATUNNER_RETURN_IF_ERROR(AddOffset(function, instruction, element));
  const bool third = instruction.operands.size() > 2 && &operand >= &instruction.operands[2];
  if (operand.kind == Operand::Kind::kAddress && operand.reg >= 0 && third &&
      instruction.Has("bulk")) {
    Operand base;
    base.kind = Operand::Kind::kRegister;
    base.reg = operand.reg;
    base.bits = std::exchange(operand.bits, 0);
    ATUNNER_RETURN_IF_ERROR(AddOffset(function, instruction, base));
    operand.reg = base.reg;
  }
  if (operand.kind != Operand::Kind::kRegister || operand.bits == 0) return {};
  const int bits = BitsOf(function.registers[static_cast<size_t>(operand.reg)].type);
  if (bits < 16 || bits > 64)
    return Bad("a register of " + std::to_string(bits) + " bits with an offset");
  Instruction add = instruction;
  add.opcode = "add";
  add.modifiers = {"u" + std::to_string(bits)};
  Operand term;
  term.kind = Operand::Kind::kImmediate;
  std::swap(term.bits, operand.bits);
  Operand sum = operand;
  sum.reg = static_cast<int>(function.registers.size());
  const Type type = function.registers[static_cast<size_t>(operand.reg)].type;
  ATUNNER_RETURN_IF_ERROR(Define(function, "sum#" + std::to_string(sum.reg), type));
  add.operands = {sum, operand, term};
  operand = std::move(sum);
  function.body.push_back(std::move(add));
  return {};
}

Status Parser::Guard(Instruction& instruction) {
  if (!Accept("@")) return {};
  instruction.guard_negated = Accept("!");
  const auto guard = registers_.find(std::string(Next()));
  if (guard == registers_.end()) return Bad("unknown guard predicate");
  instruction.guard = guard->second;
  return {};
}

Status Parser::MoveVector(Function& function, Instruction move) {
  const size_t lanes = move.Has("v2") ? 2 : 4;
  if (move.operands.size() == 2 && move.operands[1].kind == Operand::Kind::kSpecial) {  // "%tid"
    Operand all;
    all.kind = Operand::Kind::kVector;
    for (size_t i = 0; i < std::min<size_t>(lanes, 3); ++i) {
      all.elements.push_back(move.operands[1]);
      all.elements.back().name += std::string(".") + kParts[i];
    }
    // that of none is zero
    if (lanes == 4) all.elements.emplace_back().kind = Operand::Kind::kImmediate;
    move.operands[1] = std::move(all);
  }
  const bool fits = move.operands.size() == 2 &&
                    std::ranges::all_of(move.operands, [&](const Operand& operand) {
                      return operand.kind == Operand::Kind::kVector &&
                             operand.elements.size() == lanes;
                    });
  if (!fits) return Bad("a vector is moved to one of its size");
  std::vector<Operand> held;  // all are read before one is written
  for (size_t pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < lanes; ++i) {
      Instruction part = move;
      std::erase_if(part.modifiers, [](const std::string& m) { return m == "v2" || m == "v4"; });
      if (pass == 0) {
        held.emplace_back();
        held.back().kind = Operand::Kind::kRegister;
        held.back().reg = static_cast<int>(function.registers.size());
        const Type type = part.modifiers.empty() ? Type::kB32 : ParseType(part.modifiers.back());
        ATUNNER_RETURN_IF_ERROR(Define(function, "mov#" + std::to_string(held.back().reg), type));
        part.operands = {held[i], move.operands[1].elements[i]};
      } else {
        part.operands = {move.operands[0].elements[i], held[i]};
      }
      function.body.push_back(std::move(part));
    }
  }
  return {};
}

Operand Parser::VectorRegister(std::string_view token, int lanes) const {
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  for (size_t i = 0; i < static_cast<size_t>(lanes); ++i) {
    operand.elements.emplace_back();
    operand.elements.back().kind = Operand::Kind::kRegister;
    operand.elements.back().reg = registers_.at(std::string(token) + "." + kParts[i]);
  }
  return operand;
}

bool Parser::ResolveLater(const std::string& label, size_t index) {
  if (label.empty()) return false;
  if (scope_ != 0) branches_.emplace_back(index, scope_);
  return true;
}

Result<Operand> Parser::ParseOperand(const Function& function) {
  if (operand_depth_ >= kMaxOperandDepth) return Bad("operands are nested too deeply");
  ++operand_depth_;
  Result<Operand> operand = NestedOperand(function);
  --operand_depth_;
  return operand;
}

Result<Operand> Parser::NestedOperand(const Function& function) {
  Operand operand;
  if (Accept("{") || (in_call_ && Peek() == "(")) {
    const bool paren = Accept("(");
    operand.kind = Operand::Kind::kVector;
    while (!Accept(paren ? ")" : "}")) {
      if (End()) return Bad("vector without end");
      ATUNNER_TRY(Operand element, ParseOperand(function));
      operand.elements.push_back(std::move(element));
      Accept(",");
    }
    if (!paren && Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
    return operand;
  }
  if (Accept("[")) return Address();
  if (Peek() == "!" && IsRegister(at_ + 1)) {
    Next();
    ATUNNER_TRY(operand, ParseOperand(function));
    operand.negated = true;
    return operand;
  }
  const std::string_view token = Peek();
  if (token.empty()) return Bad("expected an operand");
  if (token == "_") {
    Next();
    if (Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
    return operand;
  }
  if (token == "-" && IsRegister(at_ + 1)) {
    Next();
    ATUNNER_TRY(operand, ParseOperand(function));
    operand.minus = true;
    return operand;
  }
  const bool fraction = token.size() > 1 && token[0] == '.' && token[1] <= '9';
  if (std::string_view("0123456789-+~!(").find(token[0]) != std::string_view::npos || fraction ||
      token == "WARP_SZ")
    return Immediate();
  if (const size_t point = PartOf(token); point != std::string_view::npos) {
    operand.kind = Operand::Kind::kRegister;
    operand.reg = registers_.find(std::string(token.substr(0, point)))->second;
    operand.part = token.substr(point + 1);
    Next();
    return operand;
  }
  if (const auto vector = vectors_.find(std::string(token)); vector != vectors_.end())
    return VectorRegister(Next(), vector->second);
  if (const auto found = registers_.find(std::string(token)); found != registers_.end()) {
    Next();
    operand.kind = Operand::Kind::kRegister;
    operand.reg = found->second;
    if (Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
    ATUNNER_TRY(operand.bits, Offset());
    return operand;
  }
  if (!IsWordStart(token[0])) return Bad("unexpected '" + std::string(token) + "'");
  operand.kind = IsSpecial(token) ? Operand::Kind::kSpecial : Operand::Kind::kSymbol;
  if (operand.kind == Operand::Kind::kSymbol && token.starts_with('%'))
    return Bad("unknown register '" + std::string(token) + "'");
  operand.name = Renamed(Next());
  if (operand.kind == Operand::Kind::kSymbol) {
    ATUNNER_TRY(operand.bits, Offset());
  }
  return operand;
}

bool Parser::IsRegister(size_t at) const {
  return at < tokens_.size() && (registers_.contains(std::string(tokens_[at].text)) ||
                                 PartOf(tokens_[at].text) != std::string_view::npos);
}

size_t Parser::PartOf(std::string_view token) const {
  const size_t point = token.rfind('.');
  if (point == std::string_view::npos || point + 2 >= token.size()) return std::string_view::npos;
  const std::string_view part = token.substr(point + 1);
  const bool named = (part[0] == 'b' || part[0] == 'h') &&
                     part.find_first_not_of("01234567", 1) == std::string_view::npos &&
                     part.size() <= 5;
  return named && registers_.contains(std::string(token.substr(0, point))) ? point
                                                                           : std::string_view::npos;
}

Status Parser::Second(Operand& operand) {
  const std::string_view second = Next();
  if (second == "_") return {};
  const auto at = registers_.find(std::string(second));
  if (at == registers_.end()) return Bad("unknown register '" + std::string(second) + "'");
  operand.second = at->second;
  return {};
}

Result<Operand> Parser::Address() {
  Operand operand;
  operand.kind = Operand::Kind::kAddress;
  const std::string_view token = Peek();
  if (const auto found = registers_.find(std::string(token)); found != registers_.end()) {
    Next();
    operand.reg = found->second;
  } else if (!token.empty() && IsWordStart(token[0])) {
    operand.name = Renamed(Next());
  } else {
    ATUNNER_TRY(const Operand absolute, Immediate());
    operand.bits = absolute.bits;
  }
  ATUNNER_TRY(const uint64_t offset, Offset());
  operand.bits += offset;
  while (Accept(",")) {
    ATUNNER_TRY(Operand element, ParseOperand(Function{}));
    operand.elements.push_back(std::move(element));
  }
  if (!Accept("]")) return Bad("expected ']'");
  return operand;
}

bool Parser::Accept(std::string_view text) {
  if (Peek() != text) return false;
  ++at_;
  return true;
}

std::unexpected<Error> Parser::Bad(std::string what) const {
  const uint32_t line = tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line;
  return Invalid(std::move(what), "PTX line " + std::to_string(line));
}

}  // namespace atunner::ptx
