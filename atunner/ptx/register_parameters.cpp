#include <algorithm>
#include <bit>

#include "atunner/ptx/function_parser.h"

namespace atunner::ptx {
namespace {

/// The name of the variable that replaces a register; no text can spell it.
std::string InMemory(const std::string& name) { return name + "#value"; }

std::string Untyped(uint64_t bytes) { return "b" + std::to_string(bytes * 8); }
uint64_t BytesOf(Type type) { return static_cast<uint64_t>(std::max(8, BitsOf(type))) / 8; }

/// "ld.param" or "st.param" of `bytes` bytes of a variable from `offset` on, with the line and the
/// guard of `like`.
Instruction Access(const Instruction& like, const std::string& opcode, const std::string& variable,
                   Operand moved, uint64_t bytes, uint64_t offset = 0) {
  Instruction access = like;
  access.opcode = opcode;
  access.modifiers = {"param", Untyped(bytes)};
  Operand address;
  address.kind = Operand::Kind::kAddress;
  address.name = variable;
  address.bits = offset;
  access.operands = {address, std::move(moved)};
  if (opcode == "ld") std::swap(access.operands[0], access.operands[1]);
  return access;
}

/// Converts a float constant to a parameter of `bytes` bytes.
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

void RegisterParameters::Add(Variable& variable) {
  const auto lanes = static_cast<int>(variable.bytes / BytesOf(variable.type));
  parameters_.push_back({variable.name, variable.type, lanes});
  variable.name = InMemory(variable.name);
}

void RegisterParameters::MarkResults() {
  for (RegisterParameter& parameter : parameters_) parameter.result = true;
}

std::vector<Operand> RegisterParameters::RegistersOf(const RegisterParameter& parameter) const {
  if (const auto vector = names_.VectorRegister(parameter.name)) return vector->elements;
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = names_.FindRegister(parameter.name);
  return {operand};
}

Status RegisterParameters::Load(Function& function) {
  Instruction begin;
  begin.line = tokens_.Line();
  for (const RegisterParameter& parameter : parameters_) {
    ATUNNER_RETURN_IF_ERROR(
        names_.DefineVector(function, parameter.name, parameter.type, parameter.lanes));
    if (parameter.result) continue;
    uint64_t offset = 0;
    for (const Operand& reg : RegistersOf(parameter)) {
      function.body.push_back(
          Access(begin, "ld", InMemory(parameter.name), reg, BytesOf(parameter.type), offset));
      offset += BytesOf(parameter.type);
    }
  }
  return {};
}

void RegisterParameters::StoreResults(Function& function, const Instruction& instruction) const {
  for (const RegisterParameter& parameter : parameters_) {
    if (!parameter.result) continue;
    uint64_t offset = 0;
    for (const Operand& reg : RegistersOf(parameter)) {
      function.body.push_back(Access(instruction, "st", InMemory(parameter.name), reg,
                                     BytesOf(parameter.type), offset));
      offset += BytesOf(parameter.type);
    }
  }
}

void RegisterParameters::PassOperand(Function& function, const Instruction& call, Operand& operand,
                                     uint64_t bytes, std::vector<Instruction>* loads) {
  const bool vector = operand.kind == Operand::Kind::kVector && !operand.elements.empty();
  std::vector<Operand> parts = vector ? operand.elements : std::vector<Operand>{operand};
  const auto is_register = [](const Operand& part) {
    return part.kind == Operand::Kind::kRegister;
  };
  const bool reg = std::ranges::all_of(parts, is_register);
  if (!reg && operand.kind != Operand::Kind::kImmediate) return;
  FitFloat(parts.front(), bytes);
  if (reg) bytes = BytesOf(function.registers[static_cast<size_t>(parts.front().reg)].type);
  Variable variable;
  variable.name = InMemory("call" + std::to_string(passed_++));
  variable.bytes = bytes * parts.size();
  variable.align = static_cast<uint32_t>(variable.bytes);
  Place(variable, function.local_bytes);
  Operand symbol;
  symbol.kind = Operand::Kind::kSymbol;
  symbol.name = variable.name;
  for (size_t i = 0; i < parts.size(); ++i)
    (loads ? *loads : function.body)
        .push_back(Access(call, loads ? "ld" : "st", variable.name, parts[i], bytes, i * bytes));
  function.local.push_back(std::move(variable));
  operand = std::move(symbol);
}

void RegisterParameters::AddCall(Function& function, Instruction call,
                                 const std::vector<uint64_t>* bytes) {
  constexpr uint64_t kUnknownBytes = 4;
  const auto is_list = [](const Operand& operand) {
    return operand.kind == Operand::Kind::kVector;
  };
  const auto callee = std::ranges::find_if_not(call.operands, is_list);
  std::vector<Instruction> loads;
  for (auto list = call.operands.begin(); list != call.operands.end(); ++list) {
    if (!is_list(*list)) continue;
    for (size_t i = 0; i < list->elements.size(); ++i) {
      const bool known = list > callee && bytes != nullptr && i < bytes->size();
      const uint64_t size = known ? std::clamp<uint64_t>((*bytes)[i], 1, 16) : kUnknownBytes;
      PassOperand(function, call, list->elements[i], size, list < callee ? &loads : nullptr);
    }
  }
  function.body.push_back(std::move(call));
  std::ranges::move(loads, std::back_inserter(function.body));
}

}  // namespace atunner::ptx
