// Parameters of functions may be registers, and operands of calls registers and constants. They
// become parameters in memory: a function loads them as it begins and stores its results before it
// returns, a call does the reverse.
#include <algorithm>
#include <bit>

#include "atunner/ptx/parser.h"

namespace atunner::ptx {
namespace {

/// Names that no text can spell.
std::string InMemory(const std::string& name) { return name + "#value"; }

std::string Untyped(uint64_t bytes) { return "b" + std::to_string(bytes * 8); }
uint64_t BytesOf(Type type) { return static_cast<uint64_t>(std::max(8, BitsOf(type))) / 8; }

/// "ld.param" or "st.param" of a variable, as far as `like` is guarded.
Instruction Access(const Instruction& like, const std::string& opcode, const std::string& variable,
                   Operand moved, uint64_t bytes) {
  Instruction access = like;
  access.opcode = opcode;
  access.modifiers = {"param", Untyped(bytes)};
  Operand address;
  address.kind = Operand::Kind::kAddress;
  address.name = variable;
  access.operands = {address, std::move(moved)};
  if (opcode == "ld") std::swap(access.operands[0], access.operands[1]);
  return access;
}

Operand RegisterOf(int reg) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = reg;
  return operand;
}

/// A float constant as the bits of a parameter of so many bytes.
void FitFloat(Operand& constant, uint64_t bytes) {
  if (!constant.is_float || constant.is_single == (bytes == 4)) return;
  if (bytes == 4)
    constant.bits = std::bit_cast<uint32_t>(
        static_cast<float>(std::bit_cast<double>(constant.bits)));
  else
    constant.bits = std::bit_cast<uint64_t>(
        double{std::bit_cast<float>(static_cast<uint32_t>(constant.bits))});
  constant.is_single = bytes == 4;
}

}  // namespace

Status Parser::RegisterParameters(Function& function) {
  Instruction begin;
  begin.line = tokens_[std::min(at_, tokens_.size() - 1)].line;
  for (const InRegister& parameter : in_registers_) {
    ATUNNER_RETURN_IF_ERROR(Define(function, parameter.name, parameter.type));
    if (parameter.result) continue;
    Operand to = RegisterOf(registers_[parameter.name]);
    function.body.push_back(
        Access(begin, "ld", InMemory(parameter.name), std::move(to), BytesOf(parameter.type)));
  }
  return {};
}

void Parser::StoreResults(Function& function, const Instruction& instruction) {
  for (const InRegister& parameter : in_registers_) {
    if (!parameter.result) continue;
    Operand from = RegisterOf(registers_[parameter.name]);
    function.body.push_back(Access(instruction, "st", InMemory(parameter.name), std::move(from),
                                   BytesOf(parameter.type)));
  }
}

Status Parser::PassOperand(Function& function, const Instruction& call, Operand& operand,
                           uint64_t bytes, std::vector<Instruction>* loads) {
  const bool reg = operand.kind == Operand::Kind::kRegister;
  if (!reg && operand.kind != Operand::Kind::kImmediate) return {};
  FitFloat(operand, bytes);
  if (reg) bytes = BytesOf(function.registers[static_cast<size_t>(operand.reg)].type);
  Variable variable;
  variable.name = InMemory("call" + std::to_string(passed_++));
  variable.bytes = bytes;
  variable.align = static_cast<uint32_t>(bytes);
  Place(variable, function.local_bytes);
  Operand symbol;
  symbol.kind = Operand::Kind::kSymbol;
  symbol.name = variable.name;
  Instruction access = Access(call, loads ? "ld" : "st", variable.name, operand, bytes);
  (loads ? *loads : function.body).push_back(std::move(access));
  function.local.push_back(std::move(variable));
  operand = std::move(symbol);
  return {};
}

Status Parser::ParseCall(Function& function, Instruction call) {
  const auto is_list = [](const Operand& operand) {
    return operand.kind == Operand::Kind::kVector;
  };
  const auto callee = std::ranges::find_if_not(call.operands, is_list);
  if (callee == call.operands.end()) return Bad("call of nothing");
  const auto known = parameter_bytes_.find(callee->name);
  std::vector<Instruction> loads;
  for (auto list = call.operands.begin(); list != call.operands.end(); ++list) {
    if (!is_list(*list)) continue;
    for (size_t i = 0; i < list->elements.size(); ++i) {
      const bool told = list > callee && known != parameter_bytes_.end() &&
                        i < known->second.size();
      const uint64_t bytes = told ? std::clamp<uint64_t>(known->second[i], 1, 16) : 4;
      ATUNNER_RETURN_IF_ERROR(
          PassOperand(function, call, list->elements[i], bytes, list < callee ? &loads : nullptr));
    }
  }
  function.body.push_back(std::move(call));
  std::ranges::move(loads, std::back_inserter(function.body));
  return {};
}

}  // namespace atunner::ptx
