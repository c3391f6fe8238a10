// Addresses, loads, stores, atomics and asynchronous copies.
#include <algorithm>
#include <utility>

#include "atunner/vgpu/decode/decoders.h"
#include "atunner/vgpu/instructions/bulk.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

void AddWindow(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    Lane<uint64_t>::Set(d, l, (op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l)) | op.imm);
  });
}

void DropWindow(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    const uint64_t v = Lane<uint64_t>::Get(a, l) & ~kWindowMask;
    if (op.narrow_address)
      d[l] = static_cast<uint32_t>(v);
    else
      Lane<uint64_t>::Set(d, l, v);
  });
}

void IsSpace(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t bits = 0;
  ForLanes(mask, [&](int l) {
    bits |= ((Lane<uint64_t>::Get(a, l) & kWindowMask) == op.imm ? 1u : 0u) << l;
  });
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (bits & mask);
}

/// istypep: the list holds the addresses of the module's references of that kind. Handles are none.
void IsReference(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t bits = 0;
  ForLanes(mask, [&](int l) {
    const auto value = Lane<uint64_t>::Get(a, l);
    bool found = false;
    for (uint32_t i = 0; i < op.list_size; ++i)
      found = found || Lane<uint64_t>::Get(x.Source(x.kernel->lists[op.list + i]), l) == value;
    bits |= (found ? 1u : 0u) << l;
  });
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (bits & mask);
}

/// mapa: the same offset in the shared memory of block `rank` of the cluster.
void MapToRank(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  const uint32_t* rank = x.Source(op.src[1]);
  constexpr uint64_t kOffset = (uint64_t{1} << kRankShift) - 1;
  ForLanes(mask, [&](int l) {
    const uint64_t from = op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l);
    const uint64_t to = (from & (kWindowMask | kOffset)) | (uint64_t{rank[l]} + 1) << kRankShift;
    if (op.narrow_address)
      d[l] = static_cast<uint32_t>(to);
    else
      Lane<uint64_t>::Set(d, l, to);
  });
}

void RankOf(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    const uint64_t address = (op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l)) & ~kWindowMask;
    const uint64_t rank = address >> kRankShift;
    d[l] = rank ? static_cast<uint32_t>(rank - 1) : x.cluster.rank;
  });
}

/// istypep.kind p, a.
Status DecodeIsType(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::string kind = instruction.modifiers.empty() ? "" : instruction.modifiers[0];
  if (instruction.operands.size() != 2 ||
      (kind != "texref" && kind != "surfref" && kind != "samplerref"))
    return c.Unsupported(instruction);
  op.dst = c.Destination(instruction.operands[0]);
  op.src[0] = c.Source(instruction.operands[1], Type::kU64);
  op.list = static_cast<uint32_t>(c.kernel().lists.size());
  for (const ptx::Variable& variable : c.module().globals()) {
    if (variable.opaque != kind || c.kernel().lists.size() - op.list == 255) continue;
    c.kernel().lists.push_back(c.Constant(c.symbols().at(variable.name), true));
  }
  op.list_size = static_cast<uint8_t>(c.kernel().lists.size() - op.list);
  op.run = IsReference;
  return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(c.Unsupported(instruction)) : Status{};
}

/// mapa d, a, rank and getctarank d, a, of 32-bit shared or of generic addresses.
Status DecodeClusterAddress(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool map = instruction.opcode == "mapa";
  if (instruction.operands.size() != (map ? 3u : 2u)) return c.Unsupported(instruction);
  op.dst = c.Destination(instruction.operands[0]);
  const bool wide = map ? ptx::BitsOf(form.type) == 64
                        : instruction.operands[1].kind == Operand::Kind::kRegister &&
                              c.RegisterBits(instruction.operands[1].reg) == 64;
  op.src[0] = c.Source(instruction.operands[1], wide ? Type::kU64 : Type::kU32);
  op.src[1] = map ? c.Source(instruction.operands[2], Type::kU32) : op.src[0];
  if (op.dst == kNoSlot || op.src[0] == kNoSlot || op.src[1] == kNoSlot)
    return c.Unsupported(instruction);
  op.narrow_address = !wide;
  op.run = map ? MapToRank : RankOf;
  return {};
}

/// atom d, [p], b and red [p], b of vectors.
Status DecodeVectorAtomic(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  const bool reduction = instruction.opcode == "red";
  op.run = VectorAtomicHandler(form, op);
  if (op.run == nullptr) return {};
  if (operands.size() < (reduction ? 2u : 3u)) return c.Unsupported(instruction);
  const uint8_t elements = op.variant;
  ATUNNER_RETURN_IF_ERROR(c.Address(operands[reduction ? 0 : 1], instruction, op, op.src[0]));
  const auto& values = operands[reduction ? 1 : 2].elements;
  if (values.size() != elements || (!reduction && operands[0].elements.size() != elements))
    return c.Unsupported(instruction, ": vector");
  std::vector<Operand> list = reduction ? std::vector<Operand>{} : operands[0].elements;
  list.insert(list.end(), values.begin(), values.end());
  ATUNNER_RETURN_IF_ERROR(c.List(list, op, instruction, false, form.type));
  op.variant = elements;
  return reduction || c.Writable(op, elements) ? Status{}
                                               : Status(c.Unsupported(instruction, ": vector"));
}

/// A load or store of 128 bits, as two neighbours of 64 bits.
Status DecodeWideMemory(DecodeContext& c, const Form& form, const Operand& value, bool load,
                        Op& op) {
  const std::vector<int32_t> halves = c.Halves(value);
  if (halves.empty() || value.kind != Operand::Kind::kRegister)
    return c.Unsupported(*form.instruction);
  op.width = 8;
  op.variant = 1;
  op.list_written = load;
  c.AppendList(op, halves);
  op.run = MemoryHandler(form, op);
  return {};
}

/// The elements of a load or store. Bit 0 of the variant: the registers have 64 bits.
Status DecodeMemoryElements(DecodeContext& c, const Form& form, const Operand& value, bool load,
                            Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::vector<Operand> elements = value.kind == Operand::Kind::kVector
                                            ? value.elements
                                            : std::vector<Operand>{value};
  const size_t bytes = op.width * elements.size();
  if (elements.empty() || bytes > 32 || (bytes & (bytes - 1)) != 0)
    return c.Unsupported(instruction);
  ATUNNER_RETURN_IF_ERROR(c.List(elements, op, instruction, load, form.type));
  for (const Operand& element : elements) {
    if (element.kind == Operand::Kind::kRegister && c.RegisterBits(element.reg) == 64)
      op.variant |= 1;
  }
  op.run = MemoryHandler(form, op);
  return {};
}

}  // namespace

Status DecodeAddressSpace(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.opcode == "mapa" || instruction.opcode == "getctarank")
    return DecodeClusterAddress(c, form, op);
  if (instruction.opcode == "istypep") return DecodeIsType(c, form, op);
  if (instruction.operands.size() != 2) return c.Unsupported(instruction);
  op.dst = c.Destination(instruction.operands[0]);
  op.src[0] = c.Source(instruction.operands[1], Type::kU64);
  if (op.dst == kNoSlot || op.src[0] == kNoSlot) return c.Unsupported(instruction);
  const Space space = c.SpaceOf(form);
  op.imm = space == Space::kShared  ? kSharedWindow
           : space == Space::kLocal ? kLocalWindow
           : space == Space::kParam ? kParamWindow
                                    : 0;
  if (instruction.opcode == "isspacep") {
    op.run = IsSpace;
  } else if (op.imm == 0) {
    SetMove(op, ptx::BitsOf(form.type));
  } else {
    const Operand& narrow = instruction.operands[form.Has("to") ? 0 : 1];
    op.narrow_address = narrow.kind == Operand::Kind::kRegister && c.RegisterBits(narrow.reg) == 32;
    op.run = form.Has("to") ? DropWindow : AddWindow;
  }
  return {};
}

Status DecodeMemory(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.empty()) return c.Unsupported(instruction);
  op.space = c.SpaceOf(form);
  op.is_volatile = form.Has("volatile");
  op.relaxed = op.is_volatile || form.Has("relaxed") || form.Has("acquire") || form.Has("release");
  op.order.of_block = form.Has("cta");
  op.order.read_only = form.Has("nc");
  const bool store = instruction.opcode == "st";
  const bool load = instruction.opcode == "ld" || instruction.opcode == "ldu";
  if (!store && !load) {
    op.run = MemoryHandler(form, op);
    return {};
  }
  if (store && form.Has("async")) return DecodeRemoteStore(c, form, op);
  op.fence = form.Has("acquire") || form.Has("release");
  if (instruction.operands.size() < 2) return c.Unsupported(instruction);
  const Operand& address = instruction.operands[store ? 0 : 1];
  const Operand& value = instruction.operands[store ? 1 : 0];
  op.width = static_cast<uint8_t>(std::max(8, ptx::BitsOf(form.type)) / 8);
  op.sign_extend = form.type == Type::kS8 || form.type == Type::kS16 || form.type == Type::kS32;
  ATUNNER_RETURN_IF_ERROR(c.Address(address, instruction, op, op.src[0]));
  return form.type == Type::kB128 ? DecodeWideMemory(c, form, value, load, op)
                                  : DecodeMemoryElements(c, form, value, load, op);
}

Status DecodeAtomic(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool reduction = instruction.opcode == "red";
  const size_t first = reduction ? 0 : 1;
  if (instruction.operands.size() < first + 2) return c.Unsupported(instruction);
  if (form.Has("async")) return DecodeRemoteStore(c, form, op);
  op.space = c.SpaceOf(form);
  if (form.Has("v2") || form.Has("v4") || form.Has("v8")) return DecodeVectorAtomic(c, form, op);
  op.dst = reduction ? kNoSlot : c.Destination(instruction.operands[0]);
  ATUNNER_RETURN_IF_ERROR(c.Address(instruction.operands[first], instruction, op, op.src[0]));
  op.src[1] = c.Source(instruction.operands[first + 1], form.type);
  op.src[2] = instruction.operands.size() > first + 2
                  ? c.Source(instruction.operands[first + 2], form.type)
                  : op.src[1];
  if (op.src[1] == kNoSlot || op.src[2] == kNoSlot) return c.Unsupported(instruction);
  if (form.type == Type::kB128) {
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kAddress && c.Halves(operand).empty())
        return c.Unsupported(instruction);
      if (operand.kind == Operand::Kind::kVector) return c.Unsupported(instruction);
    }
  }
  op.fence = form.Has("acquire") || form.Has("release") || form.Has("acq_rel") ||
             form.Has("seq_cst");
  op.order.of_block = form.Has("cta");
  const uint64_t offset = op.imm;
  op.run = AtomicHandler(form, op);
  op.imm = offset;
  return {};
}

/// multimem: on a device that is alone a multicast address is that of its own memory, whose values
/// are sums already.
Status DecodeMulticast(DecodeContext& c, const Form& form, Op& op) {
  Instruction plain = *form.instruction;
  Form alone = form;
  alone.instruction = &plain;
  if (form.Has("e4m3x4") || form.Has("e5m2x4")) alone.type = Type::kB32;
  plain.opcode = form.Has("red") ? "red" : form.Has("st") ? "st" : "ld";
  if (plain.opcode == "ld" && !form.Has("ld_reduce")) return c.Unsupported(*form.instruction);
  if (plain.opcode == "red") return DecodeAtomic(c, alone, op);
  return DecodeMemory(c, alone, op);
}

/// st.async [p], b, [mbarrier] and red.async.
Status DecodeRemoteStore(DecodeContext& c, const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = RemoteStoreHandler(form, op);
  if (op.run == nullptr) return {};
  if (operands.size() < 3) return c.Unsupported(instruction);
  ATUNNER_RETURN_IF_ERROR(
      BulkAddresses(c, operands[0], operands[0], &operands[2], instruction, op));
  const std::vector<Operand> values = operands[1].kind == Operand::Kind::kVector
                                          ? operands[1].elements
                                          : std::vector<Operand>{operands[1]};
  if (op.src[3] == kNoSlot || values.empty() || op.width * values.size() > 16)
    return c.Unsupported(instruction);
  op.space = Space::kShared;
  return c.List(values, op, instruction, false, form.type);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
