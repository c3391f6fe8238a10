// Operands of textures and surfaces: "[handle, {x, y}]".
#include "atunner/vgpu/decode/decoders.h"
#include "atunner/vgpu/instructions/texture.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

/// The elements of a vector, or the operand itself.
std::vector<Operand> Elements(const Operand& operand) {
  return operand.kind == Operand::Kind::kVector ? operand.elements : std::vector<Operand>{operand};
}

/// Operands behind the coordinates: level or gradients, which have no effect because textures have
/// one level; offsets in texels; a depth to compare with, which textures here do not support.
Status DecodeTexelOffsets(DecodeContext& c, const Form& form, Op& op, TextureOptions options) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  const size_t skipped = form.Has("grad") ? 2 : form.Has("level") ? 1 : 0;
  if (operands.size() <= 2 + skipped) return {};
  const Operand& further = operands[2 + skipped];
  const auto dims = static_cast<size_t>(DimsOf(options.geometry));
  const std::vector<Operand> offsets = Elements(further);
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

/// Appends loaded or stored values to the list.
Status DecodeTexels(DecodeContext& c, const Instruction& instruction,
                    const std::vector<Operand>& values, bool stores, const Op& op) {
  const Type stored = op.width == 8 ? Type::kB64 : Type::kB32;
  for (const Operand& value : values) {
    const bool wide = value.kind == Operand::Kind::kRegister && c.RegisterBits(value.reg) == 64;
    const int32_t slot = stores ? c.Source(value, stored) : c.Destination(value);
    const bool dropped = !stores && value.kind == Operand::Kind::kSink;
    if ((slot == kNoSlot && !dropped) ||
        (value.kind == Operand::Kind::kRegister && wide != (op.width == 8)))
      return c.Unsupported(instruction, ": values");
    c.kernel().lists.push_back(slot == kNoSlot ? -1 : slot);
  }
  return {};
}

/// Appends `count` coordinates to the list, the layer first.
Status DecodeCoordinates(DecodeContext& c, const Instruction& instruction,
                         const std::vector<Operand>& coordinates, size_t count,
                         const TextureOptions& options) {
  const Type type = options.float_coordinates ? Type::kF32 : Type::kB32;
  for (size_t i = 0; i < count; ++i) {
    const bool layer = IsLayered(options.geometry) && i == 0;
    const int32_t slot = c.Source(coordinates[i], layer ? Type::kU32 : type);
    if (slot == kNoSlot) return c.Unsupported(instruction, ": coordinates");
    c.kernel().lists.push_back(slot);
  }
  return {};
}

Status DecodeTexelAccess(DecodeContext& c, const Form& form, const Operand& place,
                         const Operand& values, bool stores, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto options = std::bit_cast<TextureOptions>(op.imm);
  if (place.elements.size() != 1) return c.Unsupported(instruction, ": coordinates");
  const std::vector<Operand> texels = Elements(values);
  const std::vector<Operand> coordinates = Elements(place.elements[0]);
  const size_t count = static_cast<size_t>(DimsOf(options.geometry)) +
                       (IsLayered(options.geometry) ? 1 : 0);
  if (texels.size() != options.results || coordinates.size() < count)
    return c.Unsupported(instruction, ": operands");
  op.list = static_cast<uint32_t>(c.kernel().lists.size());
  op.list_size = static_cast<uint8_t>(texels.size() + count);
  ATUNNER_RETURN_IF_ERROR(DecodeTexels(c, instruction, texels, stores, op));
  if (values.second) op.dst2 = c.SlotOf(*values.second);
  ATUNNER_RETURN_IF_ERROR(DecodeCoordinates(c, instruction, coordinates, count, options));
  return stores ? Status{} : DecodeTexelOffsets(c, form, op, options);
}

}  // namespace

/// src[0] is the handle. The list holds destinations or stored values, then the coordinates.
Status DecodeTexture(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TextureHandler(form, op);
  op.dst2 = -1;
  if (op.run == nullptr) return {};
  const bool stores = instruction.opcode == "sust" || instruction.opcode == "sured";
  if (operands.size() < 2) return c.Unsupported(instruction, ": operands");
  const Operand& place = operands[stores ? 0 : 1];
  const Operand& values = operands[stores ? 1 : 0];
  if (place.kind != Operand::Kind::kAddress || place.reg < 0 || c.RegisterBits(place.reg) != 64 ||
      place.bits != 0)
    return c.Unsupported(instruction, ": textures are named by handles in 64-bit registers");
  op.src[0] = c.SlotOf(place.reg);
  const bool query = instruction.opcode == "txq" || instruction.opcode == "suq";
  if (!query) return DecodeTexelAccess(c, form, place, values, stores, op);
  op.dst = c.Destination(values);
  return op.dst == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
