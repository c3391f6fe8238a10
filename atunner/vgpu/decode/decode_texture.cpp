// Operands of textures and surfaces: "[handle, {x, y}]".
#include "atunner/vgpu/decode/decoders.h"
#include "atunner/vgpu/instructions/texture.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

/// What stands behind the place: level or gradients, of textures with one level of no interest; how
/// many texels further to read; the depth to compare with, which textures here do not have.
Status DecodeTexelOffsets(DecodeContext& c, const Form& form, Op& op, TextureOptions options) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  const size_t skipped = form.Has("grad") ? 2 : form.Has("level") ? 1 : 0;
  if (operands.size() <= 2 + skipped) return {};
  const Operand& further = operands[2 + skipped];
  const auto dims = static_cast<size_t>(DimsOf(options.geometry));
  const std::vector<Operand> offsets = further.kind == Operand::Kind::kVector
                                           ? further.elements
                                           : std::vector<Operand>{further};
  const bool depth = further.kind == Operand::Kind::kRegister &&
                     c.function().registers[static_cast<size_t>(further.reg)].type == Type::kF32;
  if (operands.size() > 3 + skipped || depth || offsets.size() < dims)
    return c.Unsupported(instruction, ": comparison with a depth, textures here hold none");
  options.shifted = true;
  op.imm = std::bit_cast<uint64_t>(options);
  for (size_t i = 0; i < dims; ++i) {
    const int32_t slot = c.Source(offsets[i], Type::kB32);
    if (slot == kNoSlot) return c.Unsupported(instruction, ": offsets");
    c.kernel().lists.push_back(slot);
  }
  op.list_size = static_cast<uint8_t>(op.list_size + dims);
  return {};
}

}  // namespace

/// src[0] is the handle; the list holds destinations or stored values, then the coordinates, the
/// layer first.
Status DecodeTexture(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TextureHandler(form, op);
  op.dst2 = -1;
  if (op.run == nullptr) return {};
  auto options = std::bit_cast<TextureOptions>(op.imm);
  const bool stores = instruction.opcode == "sust" || instruction.opcode == "sured";
  if (operands.size() < 2) return c.Unsupported(instruction, ": operands");
  const Operand& place = operands[stores ? 0 : 1];
  const Operand& values = operands[stores ? 1 : 0];
  if (place.kind != Operand::Kind::kAddress || place.reg < 0 || c.RegisterBits(place.reg) != 64 ||
      place.bits != 0)
    return c.Unsupported(instruction, ": textures are named by handles in 64-bit registers");
  op.src[0] = c.SlotOf(place.reg);
  if (instruction.opcode == "txq" || instruction.opcode == "suq") {
    op.dst = c.Destination(values);
    return op.dst == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
  }
  if (place.elements.size() != 1) return c.Unsupported(instruction, ": coordinates");
  const bool vector = values.kind == Operand::Kind::kVector;
  const std::vector<Operand> several = vector ? values.elements : std::vector<Operand>{values};
  const Operand& at = place.elements[0];
  const std::vector<Operand> coordinates = at.kind == Operand::Kind::kVector
                                               ? at.elements
                                               : std::vector<Operand>{at};
  const bool layered = IsLayered(options.geometry);
  const auto needed = static_cast<size_t>(DimsOf(options.geometry)) + (layered ? 1 : 0);
  if (several.size() != options.results || coordinates.size() < needed)
    return c.Unsupported(instruction, ": operands");
  const Type stored = op.width == 8 ? Type::kB64 : Type::kB32;
  op.list = static_cast<uint32_t>(c.kernel().lists.size());
  op.list_size = static_cast<uint8_t>(several.size() + needed);
  for (const Operand& value : several) {
    const bool wide = value.kind == Operand::Kind::kRegister && c.RegisterBits(value.reg) == 64;
    const int32_t slot = stores ? c.Source(value, stored) : c.Destination(value);
    const bool nobody = !stores && value.kind == Operand::Kind::kSink;
    if ((slot == kNoSlot && !nobody) ||
        (value.kind == Operand::Kind::kRegister && wide != (op.width == 8)))
      return c.Unsupported(instruction, ": values");
    c.kernel().lists.push_back(slot == kNoSlot ? -1 : slot);
  }
  const Type type = options.float_coordinates ? Type::kF32 : Type::kB32;
  if (values.second) op.dst2 = c.SlotOf(*values.second);
  for (size_t i = 0; i < needed; ++i) {
    const int32_t slot = c.Source(coordinates[i], layered && i == 0 ? Type::kU32 : type);
    if (slot == kNoSlot) return c.Unsupported(instruction, ": coordinates");
    c.kernel().lists.push_back(slot);
  }
  return stores ? Status{} : DecodeTexelOffsets(c, form, op, options);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
