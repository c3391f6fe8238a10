// Asynchronous copies, mbarriers and tensor maps.
#include <utility>

#include "atunner/model/kernel/tensor_map.h"
#include "atunner/vgpu/decode/decoders.h"
#include "atunner/vgpu/instructions/bulk.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

/// mbarrier: src[0] the object, src[1] count or phase, src[2] a second operand; dst a state or a
/// predicate.
Status DecodePendingCount(DecodeContext& c, const Instruction& instruction, Op& op) {
  if (instruction.operands.size() != 2) return c.Unsupported(instruction);
  op.dst = c.Destination(instruction.operands[0]);
  op.src[0] = c.Source(instruction.operands[1], Type::kB64);
  return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

Status DecodeMbarrier(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.space = Space::kShared;
  op.run = MbarrierHandler(form, op);
  if (op.run == nullptr) return {};
  op.dst = op.dst2 = kNoSlot;
  if (form.Has("pending_count")) return DecodePendingCount(c, instruction, op);
  size_t at = 0;
  while (at < operands.size() && operands[at].kind != Operand::Kind::kAddress) ++at;
  if (at == operands.size()) return c.Unsupported(instruction);
  if (at > 0) op.dst = c.Destination(operands[0]);
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[at], instruction, op, op.src[0]));
  op.src[1] = op.src[2] = kNoSlot;
  const bool tests_state = (form.Has("test_wait") || form.Has("try_wait")) && !form.Has("parity");
  for (size_t i = at + 1; i < operands.size() && i < at + 3; ++i) {
    op.src[i - at] = c.Source(operands[i], tests_state && i == at + 1 ? Type::kB64 : Type::kU32);
    if (op.src[i - at] == kNoSlot) return c.Unsupported(instruction);
  }
  return {};
}

/// tensormap.replace [map], ordinal, value and tensormap.cp_fenceproxy [to], [from], 128.
Status DecodeTensorMap(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TensorMapHandler(form, op);
  if (op.run == nullptr) return {};
  const bool publishes = form.Has("cp_fenceproxy");
  const size_t ordinals = publishes ? 0 : TensorMapOrdinals(op);
  if (operands.size() != (publishes || ordinals > 0 ? 3u : 2u))
    return c.Unsupported(instruction, ": operands");
  const uint8_t field = op.variant;
  if (publishes) {
    Op from;
    ATUNNER_RETURN_IF_ERROR(c.Address(operands[1], instruction, from, op.src[1]));
    if (op.src[1] == kNoSlot) op.src[1] = c.Constant(std::exchange(from.imm, 0), true);
    op.target = static_cast<uint32_t>(from.imm);
    op.width = from.narrow_address ? 4 : 8;
    op.space = Space::kGlobal;
    if (operands[2].bits != sizeof(TensorMap::bytes)) return c.Unsupported(instruction, ": size");
  } else {
    const bool numbered = ordinals > 0;
    if (numbered && (operands[1].kind != Operand::Kind::kImmediate || operands[1].bits >= ordinals))
      return c.Unsupported(instruction, ": ordinal");
    op.target = numbered ? static_cast<uint32_t>(operands[1].bits) : 0;
    op.width = form.type == Type::kB64 ? 8 : 4;
    op.src[1] = c.Source(operands.back(), form.type);
    const bool fits = operands.back().kind != Operand::Kind::kRegister ||
                      c.RegisterBits(operands.back().reg) == 8 * op.width;
    if (op.src[1] == kNoSlot || !fits) return c.Unsupported(instruction, ": value");
    op.space = c.SpaceOf(form);
  }
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[0], instruction, op, op.src[0]));
  op.variant = field;
  return {};
}

/// cp.async.bulk.tensor [box], [map, {c…}], [mbarrier], {offset…}, mask and [map, {c…}], [box]; the
/// list holds the coordinates, the offsets of im2col mode and the multicast mask.
Status DecodeTensorCopy(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TensorCopyHandler(form, op);
  if (op.run == nullptr || form.Has("prefetch")) return {};
  const bool load = form.Has("mbarrier::complete_tx::bytes");
  if (operands.size() < (load ? 3u : 2u)) return c.Unsupported(instruction);
  const Operand& map = operands[load ? 1 : 0];
  if (map.elements.size() != 1 || map.elements[0].elements.size() != op.width)
    return c.Unsupported(instruction, ": coordinates");
  ATUNNER_RETURN_IF_ERROR(BulkAddresses(c, operands[load ? 0 : 1], map,
                                        load ? &operands[2] : nullptr, instruction, op));
  if (load && op.src[3] == kNoSlot) return c.Unsupported(instruction, ": mbarrier");
  std::vector<Operand> list = map.elements[0].elements;
  size_t next = 3;
  if (form.Has("im2col")) {
    if (operands.size() <= next || operands[next].elements.size() + 2 != op.width)
      return c.Unsupported(instruction, ": offsets");
    list.insert(list.end(), operands[next].elements.begin(), operands[next].elements.end());
    ++next;
  }
  if (form.Has("multicast::cluster") && operands.size() > next) list.push_back(operands[next]);
  return c.List(list, op, instruction, false, Type::kB32);
}

/// cp.async.bulk and cp.reduce.async.bulk without a tensor map. src: destination, source, size,
/// mbarrier; the list holds a multicast mask.
Status DecodeBulkCopy(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = AsyncHandler(form, op);
  if (op.run == nullptr || form.Has("commit_group")) return {};
  if (form.Has("wait_group")) {
    op.imm = operands.empty() ? 0 : operands[0].bits;
    return {};
  }
  const bool prefetch = form.Has("prefetch");
  if (operands.size() < (prefetch ? 2u : 3u)) return c.Unsupported(instruction);
  if (prefetch) return {};
  op.src[2] = c.Source(operands[2], Type::kU32);
  ATUNNER_RETURN_IF_ERROR(BulkAddresses(
      c, operands[0], operands[1], operands.size() > 3 ? &operands[3] : nullptr, instruction, op));
  std::vector<Operand> multicast;
  if (form.Has("multicast::cluster") && operands.size() > 4) multicast.push_back(operands[4]);
  return c.List(multicast, op, instruction, false, Type::kB16);
}

/// cp.async.mbarrier.arrive [mbarrier].
Status DecodeAsyncArrival(DecodeContext& c, const Instruction& instruction, Op& op) {
  if (instruction.operands.size() != 1) return c.Unsupported(instruction);
  ATUNNER_RETURN_IF_ERROR(c.Address(instruction.operands[0], instruction, op, op.src[0]));
  if (op.src[0] != kNoSlot && op.imm != 0)
    return c.Unsupported(instruction, ": mbarrier with an offset");
  if (op.src[0] == kNoSlot) op.src[0] = c.Constant(op.imm, false), op.narrow_address = true;
  op.variant = op.narrow_address;
  return {};
}

/// The operand behind the size: how many bytes to read, or a predicate to read none.
Status DecodeSourceSize(DecodeContext& c, const Instruction& instruction, Op& op) {
  const Operand& size = instruction.operands[3];
  const bool ignores = size.kind == Operand::Kind::kRegister && c.RegisterBits(size.reg) == 1;
  op.variant = ignores ? (size.negated ? 2 : 1) : 0;
  op.src[2] = c.Source(size, ignores ? Type::kPred : Type::kU32);
  return op.src[2] == kNoSlot ? Status(c.Unsupported(instruction, ": size")) : Status{};
}

/// cp.async [to], [from], size.
Status DecodeThreadCopy(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  if (operands.size() < 3) return c.Unsupported(instruction);
  Op source;
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[1], instruction, source, op.src[1]));
  if (op.src[1] == kNoSlot) return c.Unsupported(instruction);
  op.target = static_cast<uint32_t>(source.imm);
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[0], instruction, op, op.src[0]));
  op.space = Space::kGlobal;
  op.variant = form.Has("cg");
  op.width = static_cast<uint8_t>(operands[2].bits);
  if (op.width != 4 && op.width != 8 && op.width != 16) return c.Unsupported(instruction, ": size");
  op.src[2] = kNoSlot;
  const size_t without_size = form.Has("L2::cache_hint") ? 4 : 3;  // the hint is the last operand
  return operands.size() == without_size ? Status{} : DecodeSourceSize(c, instruction, op);
}

Status DecodeAsyncCopy(DecodeContext& c, const Form& form, Op& op) {
  const auto& operands = form.instruction->operands;
  op.run = AsyncHandler(form, op);
  if (op.run == nullptr) return {};
  op.space = Space::kGlobal;
  if (form.Has("commit_group")) return {};
  if (form.Has("mbarrier")) return DecodeAsyncArrival(c, *form.instruction, op);
  const bool wait_all = form.Has("wait_all");
  if (!wait_all && !form.Has("wait_group")) return DecodeThreadCopy(c, form, op);
  op.imm = wait_all ? ~uint64_t{0} : operands.empty() ? 0 : operands[0].bits;
  return {};
}

}  // namespace

/// Operands as bulk.h describes them. What stands in the barrier's place may be a cache hint.
Status BulkAddresses(DecodeContext& c, const Operand& first, const Operand& second,
                     const Operand* barrier, const Instruction& instruction, Op& op) {
  Op to;
  Op from;
  ATUNNER_RETURN_IF_ERROR(c.Address(first, instruction, to, op.src[0]));
  ATUNNER_RETURN_IF_ERROR(c.Address(second, instruction, from, op.src[1]));
  if (op.src[0] == kNoSlot) op.src[0] = c.Constant(std::exchange(to.imm, 0), true);
  if (op.src[1] == kNoSlot) op.src[1] = c.Constant(std::exchange(from.imm, 0), true);
  op.imm = to.imm;
  op.target = static_cast<uint32_t>(from.imm);
  op.variant = static_cast<uint8_t>((to.narrow_address ? 1 : 0) | (from.narrow_address ? 2 : 0));
  op.src[3] = kNoSlot;
  if (barrier == nullptr || barrier->kind != Operand::Kind::kAddress) return {};
  Op at;
  ATUNNER_RETURN_IF_ERROR(c.Address(*barrier, instruction, at, op.src[3]));
  if (op.src[3] == kNoSlot) op.src[3] = c.Constant(at.imm, false), at.narrow_address = true;
  if (at.narrow_address) op.variant |= 4;
  return {};
}

Status DecodeAsync(DecodeContext& c, const Form& form, Op& op) {
  if (form.instruction->opcode == "mbarrier") return DecodeMbarrier(c, form, op);
  if (form.instruction->opcode == "tensormap") return DecodeTensorMap(c, form, op);
  if (form.Has("bulk"))
    return form.Has("tensor") ? DecodeTensorCopy(c, form, op) : DecodeBulkCopy(c, form, op);
  return DecodeAsyncCopy(c, form, op);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
