#include "atunner/vgpu/timing/op_cost.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace atunner::vgpu {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

/// Which operands a row of the table is for.
enum class Kind : uint8_t {
  kAny,
  kF32,
  kF32Rounded,    ///< .rn and the other IEEE roundings of division, reciprocal and root
  kF32Flushed,    ///< .ftz
  kF64,           ///< anywhere among the types
  kHalf,          ///< 16-bit floats
  kHalfToSingle,  ///< cvt
  kFloatToInteger,
  kNarrow,      ///< integers of 32 bits and less
  kInteger,     ///< cvt between integers
  kExtendFree,  ///< cvt that only renames registers
  kWide,        ///< 64-bit integers
  kWidening,    ///< mul.wide
  kSpecialRegister,
  kHalves,    ///< mov that packs or unpacks 16-bit parts
  kTransfer,  ///< wmma between memory and registers
};

struct Uses {
  uint8_t fma = 0, alu = 0, either = 0, imad = 0, sfu = 0, fp64 = 0, tensor = 0, lsu = 0,
          control = 0;
};

OpCost Cost(uint8_t steps, Wait wait, Uses u) {
  OpCost cost;
  cost.uses = {u.fma, u.alu, u.either, u.imad, u.sfu, u.fp64, u.tensor, u.lsu};
  for (uint8_t count : cost.uses) cost.issue = static_cast<uint8_t>(cost.issue + count);
  cost.issue = static_cast<uint8_t>(cost.issue + u.control);
  cost.steps = steps;
  cost.wait = wait;
  return cost;
}

struct Row {
  Kind kind;
  OpCost cost;
};

const std::unordered_map<std::string_view, std::vector<Row>>& Table() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::vector<Row>> rows;
#define ATUNNER_OP_COST(opcode, kind, steps, wait, ...) \
  rows[opcode].push_back({Kind::kind, Cost(steps, Wait::wait, Uses{__VA_ARGS__})});
#include "atunner/vgpu/timing/op_cost.def"
#undef ATUNNER_OP_COST
    return rows;
  }();
  return table;
}

/// The types that the modifiers name, first and last.
struct Types {
  Type first = Type::kNone;
  Type last = Type::kNone;
  bool Any(Type type) const { return first == type || last == type; }
};

Types TypesOf(const Instruction& instruction) {
  Types types;
  for (const std::string& modifier : instruction.modifiers) {
    const Type type = ptx::ParseType(modifier);
    if (type == Type::kNone) continue;
    if (types.first == Type::kNone) types.first = type;
    types.last = type;
  }
  return types;
}

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2;
}
bool IsFloat(Type type) {
  return IsHalf(type) || type == Type::kF32 || type == Type::kF64 || type == Type::kTF32 ||
         type == Type::kE4M3x2 || type == Type::kE5M2x2;
}

bool MovesHalves(const Instruction& instruction) {
  const auto parts = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::kVector && !operand.elements.empty() &&
           ptx::BitsOf(TypesOf(instruction).last) / static_cast<int>(operand.elements.size()) < 32;
  };
  return std::ranges::any_of(instruction.operands, parts);
}

/// Registers of 32 bits hold narrower values; wider ones are pairs.
bool OnlyRenames(const Types& types) {
  if (IsFloat(types.first) || IsFloat(types.last)) return false;
  const int to = ptx::BitsOf(types.first);
  const int from = ptx::BitsOf(types.last);
  const bool sign = types.last == Type::kS8 || types.last == Type::kS16 || types.last == Type::kS32;
  return to <= from || (from >= 16 && !sign);
}

bool Fits(Kind kind, const Instruction& instruction, const Types& types) {
  switch (kind) {
    case Kind::kAny:
      return true;
    case Kind::kF32:
      return types.last == Type::kF32;
    case Kind::kF32Rounded:
      return types.last == Type::kF32 && (instruction.Has("rn") || instruction.Has("rz") ||
                                          instruction.Has("rm") || instruction.Has("rp"));
    case Kind::kF32Flushed:
      return types.last == Type::kF32 && instruction.Has("ftz");
    case Kind::kF64:
      return types.Any(Type::kF64);
    case Kind::kHalf:
      return IsHalf(types.last);
    case Kind::kHalfToSingle:
      return IsHalf(types.last) && types.first == Type::kF32;
    case Kind::kFloatToInteger:
      return IsFloat(types.last) && !IsFloat(types.first);
    case Kind::kNarrow:
      return !IsFloat(types.last) && ptx::BitsOf(types.last) <= 32;
    case Kind::kInteger:
      return !IsFloat(types.first) && !IsFloat(types.last);
    case Kind::kExtendFree:
      return OnlyRenames(types);
    case Kind::kWide:
      return !IsFloat(types.last) && ptx::BitsOf(types.last) == 64;
    case Kind::kWidening:
      return instruction.Has("wide");
    case Kind::kSpecialRegister:
      return std::ranges::any_of(
          instruction.operands, [](const Operand& o) { return o.kind == Operand::Kind::kSpecial; });
    case Kind::kHalves:
      return MovesHalves(instruction);
    case Kind::kTransfer:
      return instruction.Has("load") || instruction.Has("store");
  }
  return false;
}

/// Loads of parameters and of constants at fixed places are operands of other instructions.
bool IsConstantOperand(const Instruction& instruction) {
  if (instruction.opcode != "ld" || instruction.operands.size() < 2) return false;
  return instruction.Has("param") || (instruction.Has("const") && instruction.operands[1].reg < 0);
}

}  // namespace

std::string_view Name(Pipe pipe) {
  switch (pipe) {
#define ATUNNER_PIPE(id, name) \
  case Pipe::id:               \
    return name;
#include "atunner/vgpu/timing/pipe.def"
#undef ATUNNER_PIPE
    case Pipe::kCount:
      break;
  }
  return "";
}

OpCost CostOf(const Instruction& instruction) {
  if (IsConstantOperand(instruction)) return {};
  const Types types = TypesOf(instruction);
  for (const std::string_view opcode :
       {std::string_view(instruction.opcode), std::string_view("*")}) {
    const auto rows = Table().find(opcode);
    if (rows == Table().end()) continue;
    for (const Row& row : rows->second) {
      if (!Fits(row.kind, instruction, types)) continue;
      OpCost cost = row.cost;
      if (instruction.opcode == "ld" && instruction.Has("const")) cost.wait = Wait::kConstant;
      return cost;
    }
  }
  return {};
}

}  // namespace atunner::vgpu
