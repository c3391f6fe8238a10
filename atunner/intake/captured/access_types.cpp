#include "atunner/intake/captured/access_types.h"

#include <algorithm>
#include <array>
#include <string>

namespace atunner {
namespace {

using Slot = std::pair<size_t, uint64_t>;
using Slots = std::set<Slot>;

constexpr const char* kAxes[] = {".x", ".y", ".z"};

bool IsAccess(const ptx::Instruction& instruction) {
  constexpr std::array<std::string_view, 6> kAccesses = {"ld", "st", "ldu", "atom", "red", "cp"};
  return std::ranges::find(kAccesses, instruction.opcode) != kAccesses.end() &&
         !instruction.Has("param") && !instruction.Has("shared") && !instruction.Has("local") &&
         !instruction.Has("const");
}

ptx::Type TypeOf(const ptx::Instruction& instruction) {
  for (const std::string& modifier : instruction.modifiers) {
    if (const ptx::Type type = ptx::ParseType(modifier); type != ptx::Type::kNone) return type;
  }
  return ptx::Type::kNone;
}

class Accesses {
 public:
  Accesses(const ptx::Function& kernel, const Dim3& block)
      : kernel_(kernel), extents_{block.x, block.y, block.z} {
    for (size_t i = 0; i < kernel.params.size(); ++i) numbers_[kernel.params[i].name] = i;
  }

  KernelAccesses Run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ptx::Instruction& instruction : kernel_.body) changed |= Follow(instruction);
    }
    for (const ptx::Instruction& instruction : kernel_.body) Note(instruction);
    for (const ptx::Instruction& instruction : kernel_.body) NoteIndex(instruction);
    return std::move(out_);
  }

 private:
  bool Add(int reg, const Slots& slots) {
    Slots& known = registers_[reg];
    const size_t before = known.size();
    known.insert(slots.begin(), slots.end());
    return known.size() != before;
  }

  /// Pointers that a value may be derived from.
  Slots SlotsOf(const ptx::Operand& operand) const {
    if (operand.kind == ptx::Operand::Kind::kVector) {
      Slots all;
      for (const ptx::Operand& element : operand.elements) all.merge(SlotsOf(element));
      return all;
    }
    const auto at = registers_.find(operand.reg);
    return operand.reg < 0 || at == registers_.end() ? Slots{} : at->second;
  }

  /// A load of a parameter makes pointers; everything else hands them on.
  bool Follow(const ptx::Instruction& instruction) {
    if (instruction.operands.empty()) return false;
    if (instruction.opcode == "ld" && instruction.Has("param")) return FollowParameter(instruction);
    if (instruction.opcode == "st" || instruction.opcode == "ld" || instruction.opcode == "setp")
      return false;
    Slots sources;
    for (size_t i = 1; i < instruction.operands.size(); ++i)
      sources.merge(SlotsOf(instruction.operands[i]));
    return !sources.empty() && AddTo(instruction.operands[0], sources);
  }

  bool AddTo(const ptx::Operand& target, const Slots& slots) {
    if (target.kind == ptx::Operand::Kind::kRegister) return Add(target.reg, slots);
    bool changed = false;
    for (const ptx::Operand& element : target.elements) changed |= AddTo(element, slots);
    return changed;
  }

  bool FollowParameter(const ptx::Instruction& instruction) {
    constexpr int kPointerBits = 64;
    const ptx::Operand& from = instruction.operands[1];
    const auto number = numbers_.find(from.name);
    if (number == numbers_.end() || ptx::BitsOf(TypeOf(instruction)) != kPointerBits) return false;
    const ptx::Operand& to = instruction.operands[0];
    if (to.kind == ptx::Operand::Kind::kRegister) return Add(to.reg, {{number->second, from.bits}});
    bool changed = false;
    for (size_t i = 0; i < to.elements.size(); ++i)
      changed |= Add(to.elements[i].reg, {{number->second, from.bits + i * sizeof(uint64_t)}});
    return changed;
  }

  void Note(const ptx::Instruction& instruction) {
    if (instruction.opcode == "call") out_.complete = false;
    for (const ptx::Operand& operand : instruction.operands) {
      out_.reads_block_size |= operand.name.starts_with("%ntid");
      out_.reads_grid_size |= operand.name.starts_with("%nctaid");
      for (size_t axis = 0; axis < 3; ++axis)
        out_.reads_block_extent[axis] |= operand.name == std::string("%ntid") + kAxes[axis];
    }
    if (!IsAccess(instruction)) return;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind != ptx::Operand::Kind::kAddress || operand.reg < 0) continue;
      NoteAddress(instruction, SlotsOf(operand));
    }
  }

  void NoteAddress(const ptx::Instruction& instruction, const Slots& slots) {
    if (slots.empty() && !instruction.Has("global"))
      return;  // shared or local, by a generic address
    out_.complete = out_.complete && !slots.empty();
    const bool store = instruction.opcode == "st";
    const bool load = instruction.opcode == "ld" || instruction.opcode == "ldu" ||
                      instruction.opcode == "cp";
    for (const Slot& slot : slots) {
      PointerUse& use = out_.pointers[slot];
      const ptx::Type type = TypeOf(instruction);
      if (type != ptx::Type::kNone) use.types.insert(type);
      use.read |= !store;
      use.written |= !load;
    }
  }

  /// True if the operand is the special register, or a copy of it.
  bool Holds(const ptx::Operand& operand, const std::string& special) const {
    if (operand.name == special) return true;
    const auto at = specials_.find(operand.reg);
    return operand.kind == ptx::Operand::Kind::kRegister && at != specials_.end() &&
           at->second == special;
  }

  void FollowSpecial(const ptx::Operand& to, const ptx::Operand& from) {
    if (to.kind != ptx::Operand::Kind::kRegister) return;
    const auto at = specials_.find(from.reg);
    if (from.name.starts_with('%'))
      specials_[to.reg] = from.name;
    else if (from.kind == ptx::Operand::Kind::kRegister && at != specials_.end())
      specials_[to.reg] = std::string(at->second);
  }

  /// True for the block's extent as a constant factor, or as a shift by its logarithm.
  bool IsExtent(const ptx::Operand& operand, bool shifts, size_t axis) const {
    if (operand.kind != ptx::Operand::Kind::kImmediate || extents_[axis] < 2) return false;
    return (shifts ? uint64_t{1} << (operand.bits & 63) : operand.bits) == extents_[axis];
  }

  /// Products of %ctaid with %ntid, or with the block's extent as a constant.
  void NoteIndex(const ptx::Instruction& instruction) {
    const auto& operands = instruction.operands;
    if (operands.size() == 2 && (instruction.opcode == "mov" || instruction.opcode == "cvt"))
      FollowSpecial(operands[0], operands[1]);
    const bool shifts = instruction.opcode == "shl";
    if ((!shifts && instruction.opcode != "mad" && instruction.opcode != "mul") ||
        operands.size() < 3)
      return;
    for (size_t axis = 0; axis < 3; ++axis) {
      for (const size_t i : {size_t{1}, size_t{2}}) {
        const ptx::Operand& other = operands[3 - i];
        if (Holds(operands[i], std::string("%ctaid") + kAxes[axis]) &&
            (IsExtent(other, shifts, axis) || Holds(other, std::string("%ntid") + kAxes[axis])))
          out_.block_scales_index[axis] = true;
        if (axis == 0 && Holds(operands[i], "%nctaid.x") &&
            (IsExtent(other, shifts, axis) || Holds(other, "%ntid.x")))
          out_.strides_by_grid = true;
      }
    }
  }

  const ptx::Function& kernel_;
  std::array<uint64_t, 3> extents_;
  std::map<int, std::string> specials_;  ///< registers that hold special registers
  std::map<std::string, size_t> numbers_;
  std::map<int, Slots> registers_;
  KernelAccesses out_;
};

std::optional<DType> DTypeOf(ptx::Type type) {
  using enum ptx::Type;
  switch (type) {
    case kF32:
      return DType::kFloat32;
    case kF64:
      return DType::kFloat64;
    case kF16:
    case kF16x2:
      return DType::kFloat16;
    case kBF16:
    case kBF16x2:
      return DType::kBFloat16;
    case kS8:
      return DType::kInt8;
    case kS16:
      return DType::kInt16;
    case kB32:
    case kU32:
    case kS32:
      return DType::kInt32;
    case kB64:
    case kU64:
    case kS64:
      return DType::kInt64;
    case kB8:
    case kU8:
      return DType::kUInt8;
    default:
      return std::nullopt;
  }
}

}  // namespace

KernelAccesses FindAccesses(const ptx::Function& kernel, const Dim3& block) {
  return Accesses(kernel, block).Run();
}

std::optional<DType> ElementTypeOf(const PointerUse& use) {
  std::optional<DType> agreed;
  for (const ptx::Type type : use.types) {
    const auto one = DTypeOf(type);
    if (!one) return std::nullopt;
    // Floats are also moved by loads of bits, and updated by integer atomics.
    if (agreed && SizeOf(*agreed) != SizeOf(*one)) return std::nullopt;
    if (!agreed || IsFloat(*one)) agreed = one;
  }
  return agreed;
}

}  // namespace atunner
