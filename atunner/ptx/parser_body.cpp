#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

#include "atunner/ptx/parser.h"

namespace atunner::ptx {
namespace {

/// Operands nest twice at most: a vector in an address.
constexpr int kMaxOperandDepth = 16;
constexpr std::string_view kWarpSize = "WARP_SZ";  // the one constant that PTX has a name for

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
      while (!End() && !Accept(";")) {
        const std::string target(Next());
        if (branch && target != ",") function.branch_targets[label].push_back(target);
      }
      return {};
    }
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
    function.used_bytes[static_cast<uint32_t>(function.body.size())] = std::strtoull(mask.c_str(), nullptr, 0);
  }
  return {};
}

Status Parser::Registers(Function& function) {
  Next();
  std::string_view type_word = Next();
  if (type_word == ".v2" || type_word == ".v4") type_word = Next();
  const Type type = TypeOfWord(type_word);
  if (type == Type::kNone) return Bad("unknown register type '" + std::string(type_word) + "'");
  do {
    const std::string name(Next());
    if (Accept("<")) {
      ATUNNER_TRY(const uint64_t count, Number());
      if (count > 1000000) return Bad("too many registers");
      if (!Accept(">")) return Bad("expected '>'");
      for (uint64_t i = 0; i < count; ++i) Define(function, name + std::to_string(i), type);
    } else {
      Define(function, name, type);
    }
  } while (Accept(","));
  return Accept(";") ? Status{} : Bad("expected ';'");
}

void Parser::Define(Function& function, std::string name, Type type) {
  const auto known = registers_.find(name);
  if (scope_ != 0) undo_.push_back({name, known == registers_.end() ? -1 : known->second, true, {}});
  registers_[name] = static_cast<int>(function.registers.size());
  function.registers.push_back({std::move(name), type});
}

Status Parser::LocalVariable(Function& function) {
  const std::string space(Next());
  ATUNNER_TRY(Variable variable, Declaration());
  if (Accept("=")) ATUNNER_RETURN_IF_ERROR(Initialiser(variable));
  if (!Accept(";")) return Bad("expected ';'");
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

void Parser::StartScopes() {
  scope_ = 0;
  scope_parents_.assign(1, 0);
  undo_.clear();
  undo_starts_.clear();
  renamed_.clear();
}

void Parser::OpenScope() {
  scope_parents_.push_back(scope_);
  scope_ = static_cast<uint32_t>(scope_parents_.size() - 1);
  undo_starts_.push_back(undo_.size());
}

void Parser::CloseScope() {
  for (size_t i = undo_.size(); i > undo_starts_.back(); --i) {
    const Hidden& hidden = undo_[i - 1];
    if (hidden.is_register && hidden.reg >= 0) registers_[hidden.name] = hidden.reg;
    if (!hidden.is_register && hidden.variable.empty()) renamed_.erase(hidden.name);
    if (!hidden.is_register && !hidden.variable.empty()) renamed_[hidden.name] = hidden.variable;
  }
  undo_.resize(undo_starts_.back());
  undo_starts_.pop_back();
  scope_ = scope_parents_[scope_];
}

void Parser::Rename(std::string& name) {
  const auto known = renamed_.find(name);
  undo_.push_back({name, -1, false, known == renamed_.end() ? "" : known->second});
  std::string unique = name + "#" + std::to_string(scope_);
  renamed_[name] = unique;
  name = std::move(unique);
}

std::string Parser::Renamed(std::string_view name) const {
  if (renamed_.empty()) return std::string(name);
  const auto at = renamed_.find(std::string(name));
  return at == renamed_.end() ? std::string(name) : at->second;
}

std::string Parser::InScope(const std::string& label, uint32_t scope) {
  return scope == 0 ? label : label + "#" + std::to_string(scope);
}

Status Parser::Location() {
  const uint32_t line = tokens_[at_].line;
  Next();
  ATUNNER_TRY(const uint64_t file, Number());
  ATUNNER_TRY(const uint64_t source_line, Number());
  // The rest stands on the same line: column, and for inlined code "function_name …, inlined_at file line column".
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
  if (Accept("@")) {
    instruction.guard_negated = Accept("!");
    const auto guard = registers_.find(std::string(Next()));
    if (guard == registers_.end()) return Bad("unknown guard predicate");
    instruction.guard = guard->second;
  }
  std::vector<std::string> parts = SplitDots(Next());
  if (parts.empty()) return Bad("expected an instruction");
  instruction.opcode = std::move(parts[0]);
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  while (!Accept(";")) {
    if (End()) return Bad("instruction without ';'");
    ATUNNER_TRY(Operand operand, ParseOperand(function));
    instruction.operands.push_back(std::move(operand));
    Accept(",");
  }
  if (instruction.opcode == "bra" && instruction.operands.size() == 1 &&
      !ResolveLater(instruction.operands[0].name, function.body.size()))
    return Bad("branch without a label");
  function.body.push_back(std::move(instruction));
  return {};
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
  if (Accept("{") || Peek() == "(") {
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
  if (Accept("!")) {
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
  if (std::isdigit(static_cast<unsigned char>(token[0])) || token == "-" || token == kWarpSize) return Immediate();
  if (const size_t point = PartOf(token); point != std::string_view::npos) {
    operand.kind = Operand::Kind::kRegister;
    operand.reg = registers_.find(std::string(token.substr(0, point)))->second;
    operand.part = token.substr(point + 1);
    Next();
    return operand;
  }
  if (const auto found = registers_.find(std::string(token)); found != registers_.end()) {
    Next();
    operand.kind = Operand::Kind::kRegister;
    operand.reg = found->second;
    if (Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
    return operand;
  }
  if (!IsWordStart(token[0])) return Bad("unexpected '" + std::string(token) + "'");
  operand.kind = IsSpecial(token) ? Operand::Kind::kSpecial : Operand::Kind::kSymbol;
  if (operand.kind == Operand::Kind::kSymbol && token.starts_with('%'))
    return Bad("unknown register '" + std::string(token) + "'");
  operand.name = Renamed(Next());
  if (operand.kind == Operand::Kind::kSymbol && Accept("+")) {
    ATUNNER_TRY(operand.bits, Number());
  }
  return operand;
}

bool Parser::IsRegister(size_t at) const {
  return at < tokens_.size() &&
         (registers_.contains(std::string(tokens_[at].text)) || PartOf(tokens_[at].text) != std::string_view::npos);
}

size_t Parser::PartOf(std::string_view token) const {
  const size_t point = token.rfind('.');
  if (point == std::string_view::npos || point + 2 >= token.size()) return std::string_view::npos;
  const std::string_view part = token.substr(point + 1);
  const bool named = (part[0] == 'b' || part[0] == 'h') &&
                     part.find_first_not_of("01234567", 1) == std::string_view::npos && part.size() <= 5;
  return named && registers_.contains(std::string(token.substr(0, point))) ? point : std::string_view::npos;
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
  while (Peek() == "+" || Peek() == "-") {
    const bool minus = Next() == "-";
    ATUNNER_TRY(const Operand offset, Immediate());
    operand.bits += minus ? ~offset.bits + 1 : offset.bits;
  }
  while (Accept(",")) {
    ATUNNER_TRY(Operand element, ParseOperand(Function{}));
    operand.elements.push_back(std::move(element));
  }
  if (!Accept("]")) return Bad("expected ']'");
  return operand;
}

Result<Operand> Parser::Immediate() {
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  const bool minus = Accept("-");
  std::string token(Next());
  if (token == kWarpSize) token = "32";
  if (token.empty() || !std::isdigit(static_cast<unsigned char>(token[0]))) return Bad("expected a number");
  if (token.size() == 10 && (token.starts_with("0f") || token.starts_with("0F"))) {
    operand.is_float = operand.is_single = true;
    operand.bits = std::strtoul(token.c_str() + 2, nullptr, 16) ^ (minus ? 0x80000000u : 0u);
  } else if (token.size() == 18 && (token.starts_with("0d") || token.starts_with("0D"))) {
    operand.is_float = true;
    operand.bits = std::strtoull(token.c_str() + 2, nullptr, 16) ^ (minus ? uint64_t{1} << 63 : 0);
  } else if (token.find('.') != std::string::npos) {
    operand.is_float = true;
    operand.bits = std::bit_cast<uint64_t>(std::strtod(token.c_str(), nullptr) * (minus ? -1 : 1));
  } else {
    const uint64_t magnitude = token.starts_with("0b") ? std::strtoull(token.c_str() + 2, nullptr, 2)
                                                       : std::strtoull(token.c_str(), nullptr, 0);
    operand.bits = minus ? ~magnitude + 1 : magnitude;
  }
  return operand;
}

Result<uint64_t> Parser::Number() {
  ATUNNER_TRY(const Operand value, Immediate());
  return value.bits;
}

Status Parser::ResolveLabels(Function& function) {
  for (const auto& [index, inner] : branches_) {
    std::string& name = function.body[index].operands[0].name;
    uint32_t scope = inner;
    while (scope != 0 && !function.labels.contains(InScope(name, scope))) scope = scope_parents_[scope];
    name = InScope(name, scope);
  }
  branches_.clear();
  for (const Instruction& instruction : function.body) {
    if (instruction.opcode != "bra") continue;
    if (instruction.operands.size() != 1 || !function.labels.contains(instruction.operands[0].name)) {
      return Invalid("branch to an unknown label", "PTX line " + std::to_string(instruction.line));
    }
  }
  return {};
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
