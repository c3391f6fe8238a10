// Addresses, loads, stores, atomics and asynchronous copies.
#include <algorithm>
#include <utility>

#include "atunner/model/kernel/tensor_map.h"
#include "atunner/vgpu/decode/decoder.h"
#include "atunner/vgpu/instructions/bulk.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

void AddWindow(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    Lane<uint64_t>::Set(d, l, (op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l)) | op.imm);
  });
}
void DropWindow(Exec& x, const Op& op, uint32_t mask) {
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
void IsSpace(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  uint32_t bits = 0;
  ForLanes(mask, [&](int l) {
    bits |= ((Lane<uint64_t>::Get(a, l) & kWindowMask) == op.imm ? 1u : 0u) << l;
  });
  uint32_t* d = x.Slot(op.dst);
  *d = (*d & ~mask) | (bits & mask);
}

/// istypep: the list holds the addresses of the module's references of that kind. Handles are none.
void IsReference(Exec& x, const Op& op, uint32_t mask) {
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

/// The same place in the shared memory of block `rank` of the cluster.
void MapToRank(Exec& x, const Op& op, uint32_t mask) {
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
void RankOf(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const uint32_t* a = x.Source(op.src[0]);
  ForLanes(mask, [&](int l) {
    const uint64_t address = (op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l)) & ~kWindowMask;
    const uint64_t rank = address >> kRankShift;
    d[l] = rank ? static_cast<uint32_t>(rank - 1) : x.rank;
  });
}

}  // namespace

Status Decoder::DecodeAddressSpace(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.opcode == "mapa" || instruction.opcode == "getctarank")
    return DecodeClusterAddress(form, op);
  if (instruction.opcode == "istypep") return DecodeIsType(form, op);
  if (instruction.operands.size() != 2) return Unsupported(instruction);
  op.dst = Destination(instruction.operands[0]);
  op.src[0] = Source(instruction.operands[1], Type::kU64);
  if (op.dst == kNoSlot || op.src[0] == kNoSlot) return Unsupported(instruction);
  const Space space = SpaceOf(form);
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
    op.narrow_address = narrow.kind == Operand::Kind::kRegister && RegisterBits(narrow.reg) == 32;
    op.run = form.Has("to") ? DropWindow : AddWindow;
  }
  return {};
}

/// istypep.kind p, a.
Status Decoder::DecodeIsType(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const std::string kind = instruction.modifiers.empty() ? "" : instruction.modifiers[0];
  if (instruction.operands.size() != 2 ||
      (kind != "texref" && kind != "surfref" && kind != "samplerref"))
    return Unsupported(instruction);
  op.dst = Destination(instruction.operands[0]);
  op.src[0] = Source(instruction.operands[1], Type::kU64);
  op.list = static_cast<uint32_t>(kernel_.lists.size());
  for (const ptx::Variable& variable : module_.globals()) {
    if (variable.opaque != kind || kernel_.lists.size() - op.list == 255) continue;
    kernel_.lists.push_back(Constant(symbols_.at(variable.name), true));
  }
  op.list_size = static_cast<uint8_t>(kernel_.lists.size() - op.list);
  op.run = IsReference;
  return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(Unsupported(instruction)) : Status{};
}

/// mapa d, a, rank and getctarank d, a, of 32-bit shared or of generic addresses.
Status Decoder::DecodeClusterAddress(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool map = instruction.opcode == "mapa";
  if (instruction.operands.size() != (map ? 3u : 2u)) return Unsupported(instruction);
  op.dst = Destination(instruction.operands[0]);
  const bool wide = map ? ptx::BitsOf(form.type) == 64
                        : instruction.operands[1].kind == Operand::Kind::kRegister &&
                              RegisterBits(instruction.operands[1].reg) == 64;
  op.src[0] = Source(instruction.operands[1], wide ? Type::kU64 : Type::kU32);
  op.src[1] = map ? Source(instruction.operands[2], Type::kU32) : op.src[0];
  if (op.dst == kNoSlot || op.src[0] == kNoSlot || op.src[1] == kNoSlot)
    return Unsupported(instruction);
  op.narrow_address = !wide;
  op.run = map ? MapToRank : RankOf;
  return {};
}

Space Decoder::SpaceOf(const Form& form) const {
  if (form.Has("global")) return Space::kGlobal;
  if (form.Has("shared") || form.Has("shared::cta") || form.Has("shared::cluster"))
    return Space::kShared;
  if (form.Has("local")) return Space::kLocal;
  if (form.Has("const")) return Space::kConst;
  const bool param = form.Has("param") || form.Has("param::entry") || form.Has("param::func");
  // those of functions lie in their frame
  if (param) return IsEntry() ? Space::kParam : Space::kLocal;
  return Space::kGeneric;
}

/// Base register or absolute address into `base` and Op::imm.
Status Decoder::Address(const Operand& operand, const Instruction& instruction, Op& op,
                        int32_t& base) {
  op.imm = operand.bits;
  base = kNoSlot;
  if (operand.kind != Operand::Kind::kAddress)
    return Unsupported(instruction, ": address expected");
  if (operand.reg >= 0) {
    base = slots_[static_cast<size_t>(operand.reg)];
    op.narrow_address = RegisterBits(operand.reg) == 32;
    return {};
  }
  if (operand.name.empty()) return {};
  Space space = Space::kGeneric;
  bool in_frame = false;
  const auto address = SymbolAddress(operand.name, space, in_frame);
  if (!address) return Unsupported(instruction, ": unknown symbol '" + operand.name + "'");
  op.imm += *address;
  if (in_frame) {
    base = frame_slot_;
    op.narrow_address = true;
  }
  // .param variables of calls are kept on the stack; module constants lie in global memory.
  if (op.space == Space::kParam || op.space == Space::kGeneric) op.space = space;
  return {};
}

Status Decoder::DecodeMemory(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  if (instruction.operands.empty()) return Unsupported(instruction);
  op.space = SpaceOf(form);
  op.relaxed = form.Has("volatile") || form.Has("relaxed") || form.Has("acquire") ||
               form.Has("release");
  op.is_volatile = form.Has("volatile");
  const bool store = instruction.opcode == "st";
  const bool load = instruction.opcode == "ld" || instruction.opcode == "ldu";
  if (!store && !load) {
    op.run = MemoryHandler(form, op);
    return {};
  }
  if (store && form.Has("async")) return DecodeRemoteStore(form, op);
  op.fence = form.Has("acquire") || form.Has("release");
  if (instruction.operands.size() < 2) return Unsupported(instruction);
  const Operand& address = instruction.operands[store ? 0 : 1];
  const Operand& value = instruction.operands[store ? 1 : 0];
  op.width = static_cast<uint8_t>(std::max(8, ptx::BitsOf(form.type)) / 8);
  op.sign_extend = form.type == Type::kS8 || form.type == Type::kS16 || form.type == Type::kS32;
  ATUNNER_RETURN_IF_ERROR(Address(address, instruction, op, op.src[0]));
  if (form.type == Type::kB128) {  // as two neighbours of 64 bits
    const std::vector<int32_t> halves = Halves(value);
    if (halves.empty() || value.kind != Operand::Kind::kRegister) return Unsupported(instruction);
    op.width = 8;
    op.variant = 1;
    op.list = static_cast<uint32_t>(kernel_.lists.size());
    op.list_size = 2;
    op.list_written = load;
    kernel_.lists.insert(kernel_.lists.end(), halves.begin(), halves.end());
    op.run = MemoryHandler(form, op);
    return {};
  }
  std::vector<Operand> single;
  if (value.kind != Operand::Kind::kVector) single.push_back(value);
  const std::vector<Operand>& elements = single.empty() ? value.elements : single;
  const size_t bytes = op.width * elements.size();
  if (elements.empty() || bytes > 32 || (bytes & (bytes - 1)) != 0) return Unsupported(instruction);
  ATUNNER_RETURN_IF_ERROR(List(elements, op, instruction, load, form.type));
  // Bit 0: the registers have 64 bits.
  for (const Operand& element : elements) {
    if (element.kind == Operand::Kind::kRegister && RegisterBits(element.reg) == 64)
      op.variant |= 1;
  }
  op.run = MemoryHandler(form, op);
  return {};
}

Status Decoder::DecodeAtomic(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const bool reduction = instruction.opcode == "red";
  const size_t first = reduction ? 0 : 1;
  if (instruction.operands.size() < first + 2) return Unsupported(instruction);
  if (form.Has("async")) return DecodeRemoteStore(form, op);
  op.space = SpaceOf(form);
  if (form.Has("v2") || form.Has("v4") || form.Has("v8")) return DecodeVectorAtomic(form, op);
  op.dst = reduction ? kNoSlot : Destination(instruction.operands[0]);
  ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[first], instruction, op, op.src[0]));
  op.src[1] = Source(instruction.operands[first + 1], form.type);
  op.src[2] = instruction.operands.size() > first + 2
                  ? Source(instruction.operands[first + 2], form.type)
                  : op.src[1];
  if (op.src[1] == kNoSlot || op.src[2] == kNoSlot) return Unsupported(instruction);
  if (form.type == Type::kB128) {
    for (const Operand& operand : instruction.operands) {
      if (operand.kind != Operand::Kind::kAddress && Halves(operand).empty())
        return Unsupported(instruction);
      if (operand.kind == Operand::Kind::kVector) return Unsupported(instruction);
    }
  }
  op.fence = form.Has("acquire") || form.Has("release") || form.Has("acq_rel") ||
             form.Has("seq_cst");
  const uint64_t offset = op.imm;
  op.run = AtomicHandler(form, op);
  op.imm = offset;
  return {};
}

/// multimem: on a device that is alone a multicast address is that of its own memory, whose values
/// are sums already.
Status Decoder::DecodeMulticast(const Form& form, Op& op) {
  Instruction plain = *form.instruction;
  Form alone = form;
  alone.instruction = &plain;
  if (form.Has("e4m3x4") || form.Has("e5m2x4")) alone.type = Type::kB32;
  plain.opcode = form.Has("red") ? "red" : form.Has("st") ? "st" : "ld";
  if (plain.opcode == "ld" && !form.Has("ld_reduce")) return Unsupported(*form.instruction);
  if (plain.opcode == "red") return DecodeAtomic(alone, op);
  return DecodeMemory(alone, op);
}

/// atom d, [p], b and red [p], b of vectors.
Status Decoder::DecodeVectorAtomic(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  const bool reduction = instruction.opcode == "red";
  op.run = VectorAtomicHandler(form, op);
  if (op.run == nullptr) return {};
  if (operands.size() < (reduction ? 2u : 3u)) return Unsupported(instruction);
  const uint8_t elements = op.variant;
  ATUNNER_RETURN_IF_ERROR(Address(operands[reduction ? 0 : 1], instruction, op, op.src[0]));
  const auto& values = operands[reduction ? 1 : 2].elements;
  if (values.size() != elements || (!reduction && operands[0].elements.size() != elements))
    return Unsupported(instruction, ": vector");
  std::vector<Operand> list = reduction ? std::vector<Operand>{} : operands[0].elements;
  list.insert(list.end(), values.begin(), values.end());
  ATUNNER_RETURN_IF_ERROR(List(list, op, instruction, false, form.type));
  op.variant = elements;
  return reduction || Writable(op, elements) ? Status{}
                                             : Status(Unsupported(instruction, ": vector"));
}

/// st.async [p], b, [mbarrier] and red.async.
Status Decoder::DecodeRemoteStore(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = RemoteStoreHandler(form, op);
  if (op.run == nullptr) return {};
  if (operands.size() < 3) return Unsupported(instruction);
  ATUNNER_RETURN_IF_ERROR(BulkAddresses(operands[0], operands[0], &operands[2], instruction, op));
  const std::vector<Operand> values = operands[1].kind == Operand::Kind::kVector
                                          ? operands[1].elements
                                          : std::vector<Operand>{operands[1]};
  if (op.src[3] == kNoSlot || values.empty() || op.width * values.size() > 16)
    return Unsupported(instruction);
  op.space = Space::kShared;
  return List(values, op, instruction, false, form.type);
}

Status Decoder::DecodeAsync(const Form& form, Op& op) {
  if (form.instruction->opcode == "mbarrier") return DecodeMbarrier(form, op);
  if (form.instruction->opcode == "tensormap") return DecodeTensorMap(form, op);
  if (form.Has("bulk"))
    return form.Has("tensor") ? DecodeTensorCopy(form, op) : DecodeBulkCopy(form, op);
  return DecodeAsyncCopy(form, op);
}

Status Decoder::DecodeAsyncCopy(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  op.run = AsyncHandler(form, op);
  if (op.run == nullptr) return {};
  op.space = Space::kGlobal;
  if (form.Has("commit_group")) return {};
  if (form.Has("mbarrier")) {
    if (instruction.operands.size() != 1) return Unsupported(instruction);
    ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[0], instruction, op, op.src[0]));
    if (op.src[0] != kNoSlot && op.imm != 0)
      return Unsupported(instruction, ": mbarrier with an offset");
    if (op.src[0] == kNoSlot) op.src[0] = Constant(op.imm, false), op.narrow_address = true;
    op.variant = op.narrow_address;
    return {};
  }
  if (form.Has("wait_group") || form.Has("wait_all")) {
    op.imm = form.Has("wait_all")           ? ~uint64_t{0}
             : instruction.operands.empty() ? 0
                                            : instruction.operands[0].bits;
    return {};
  }
  if (instruction.operands.size() < 3) return Unsupported(instruction);
  Op source;
  ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[1], instruction, source, op.src[1]));
  if (op.src[1] == kNoSlot) return Unsupported(instruction);
  op.target = static_cast<uint32_t>(source.imm);
  ATUNNER_RETURN_IF_ERROR(Address(instruction.operands[0], instruction, op, op.src[0]));
  op.space = Space::kGlobal;
  op.variant = form.Has("cg");
  op.width = static_cast<uint8_t>(instruction.operands[2].bits);
  if (op.width != 4 && op.width != 8 && op.width != 16) return Unsupported(instruction, ": size");
  op.src[2] = kNoSlot;
  // the last one is the policy
  if (instruction.operands.size() == (form.Has("L2::cache_hint") ? 4u : 3u)) return {};
  const Operand& size = instruction.operands[3];
  const bool ignores = size.kind == Operand::Kind::kRegister && RegisterBits(size.reg) == 1;
  op.variant = ignores ? (size.negated ? 2 : 1) : 0;
  op.src[2] = Source(size, ignores ? Type::kPred : Type::kU32);
  return op.src[2] == kNoSlot ? Status(Unsupported(instruction, ": size")) : Status{};
}

/// cp.async.bulk and cp.reduce.async.bulk without a tensor map. src: destination, source, size,
/// mbarrier; the list holds a multicast mask.
Status Decoder::DecodeBulkCopy(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = AsyncHandler(form, op);
  if (op.run == nullptr || form.Has("commit_group")) return {};
  if (form.Has("wait_group")) {
    op.imm = operands.empty() ? 0 : operands[0].bits;
    return {};
  }
  const bool prefetch = form.Has("prefetch");
  if (operands.size() < (prefetch ? 2u : 3u)) return Unsupported(instruction);
  if (prefetch) return {};
  op.src[2] = Source(operands[2], Type::kU32);
  ATUNNER_RETURN_IF_ERROR(BulkAddresses(
      operands[0], operands[1], operands.size() > 3 ? &operands[3] : nullptr, instruction, op));
  std::vector<Operand> multicast;
  if (form.Has("multicast::cluster") && operands.size() > 4) multicast.push_back(operands[4]);
  return List(multicast, op, instruction, false, Type::kB16);
}

/// Operands as bulk.h describes them. What stands in the barrier's place may be a cache hint.
Status Decoder::BulkAddresses(const Operand& first, const Operand& second, const Operand* barrier,
                              const Instruction& instruction, Op& op) {
  Op to;
  Op from;
  ATUNNER_RETURN_IF_ERROR(Address(first, instruction, to, op.src[0]));
  ATUNNER_RETURN_IF_ERROR(Address(second, instruction, from, op.src[1]));
  if (op.src[0] == kNoSlot) op.src[0] = Constant(std::exchange(to.imm, 0), true);
  if (op.src[1] == kNoSlot) op.src[1] = Constant(std::exchange(from.imm, 0), true);
  op.imm = to.imm;
  op.target = static_cast<uint32_t>(from.imm);
  op.variant = static_cast<uint8_t>((to.narrow_address ? 1 : 0) | (from.narrow_address ? 2 : 0));
  op.src[3] = kNoSlot;
  if (barrier == nullptr || barrier->kind != Operand::Kind::kAddress) return {};
  Op at;
  ATUNNER_RETURN_IF_ERROR(Address(*barrier, instruction, at, op.src[3]));
  if (op.src[3] == kNoSlot) op.src[3] = Constant(at.imm, false), at.narrow_address = true;
  if (at.narrow_address) op.variant |= 4;
  return {};
}

/// cp.async.bulk.tensor [box], [map, {c…}], [mbarrier], {offset…}, mask and [map, {c…}], [box]; the
/// list holds the coordinates, the offsets of im2col mode and the multicast mask.
Status Decoder::DecodeTensorCopy(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TensorCopyHandler(form, op);
  if (op.run == nullptr || form.Has("prefetch")) return {};
  const bool load = form.Has("mbarrier::complete_tx::bytes");
  if (operands.size() < (load ? 3u : 2u)) return Unsupported(instruction);
  const Operand& map = operands[load ? 1 : 0];
  if (map.elements.size() != 1 || map.elements[0].elements.size() != op.width)
    return Unsupported(instruction, ": coordinates");
  ATUNNER_RETURN_IF_ERROR(
      BulkAddresses(operands[load ? 0 : 1], map, load ? &operands[2] : nullptr, instruction, op));
  if (load && op.src[3] == kNoSlot) return Unsupported(instruction, ": mbarrier");
  std::vector<Operand> list = map.elements[0].elements;
  size_t next = 3;
  if (form.Has("im2col")) {
    if (operands.size() <= next || operands[next].elements.size() + 2 != op.width)
      return Unsupported(instruction, ": offsets");
    list.insert(list.end(), operands[next].elements.begin(), operands[next].elements.end());
    ++next;
  }
  if (form.Has("multicast::cluster") && operands.size() > next) list.push_back(operands[next]);
  return List(list, op, instruction, false, Type::kB32);
}

/// tensormap.replace [map], ordinal, value and tensormap.cp_fenceproxy [to], [from], 128.
Status Decoder::DecodeTensorMap(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.run = TensorMapHandler(form, op);
  if (op.run == nullptr) return {};
  const bool publishes = form.Has("cp_fenceproxy");
  const size_t ordinals = publishes ? 0 : TensorMapOrdinals(op);
  if (operands.size() != (publishes || ordinals > 0 ? 3u : 2u))
    return Unsupported(instruction, ": operands");
  const uint8_t field = op.variant;
  if (publishes) {
    Op from;
    ATUNNER_RETURN_IF_ERROR(Address(operands[1], instruction, from, op.src[1]));
    if (op.src[1] == kNoSlot) op.src[1] = Constant(std::exchange(from.imm, 0), true);
    op.target = static_cast<uint32_t>(from.imm);
    op.width = from.narrow_address ? 4 : 8;
    op.space = Space::kGlobal;
    if (operands[2].bits != sizeof(TensorMap::bytes)) return Unsupported(instruction, ": size");
  } else {
    const bool numbered = ordinals > 0;
    if (numbered && (operands[1].kind != Operand::Kind::kImmediate || operands[1].bits >= ordinals))
      return Unsupported(instruction, ": ordinal");
    op.target = numbered ? static_cast<uint32_t>(operands[1].bits) : 0;
    op.width = form.type == Type::kB64 ? 8 : 4;
    op.src[1] = Source(operands.back(), form.type);
    const bool fits = operands.back().kind != Operand::Kind::kRegister ||
                      RegisterBits(operands.back().reg) == 8 * op.width;
    if (op.src[1] == kNoSlot || !fits) return Unsupported(instruction, ": value");
    op.space = SpaceOf(form);
  }
  ATUNNER_RETURN_IF_ERROR(Address(operands[0], instruction, op, op.src[0]));
  op.variant = field;
  return {};
}

/// mbarrier: src[0] the object, src[1] count or phase, src[2] a second operand; dst a state or a
/// predicate.
Status Decoder::DecodeMbarrier(const Form& form, Op& op) {
  const Instruction& instruction = *form.instruction;
  const auto& operands = instruction.operands;
  op.space = Space::kShared;
  op.run = MbarrierHandler(form, op);
  if (op.run == nullptr) return {};
  const uint8_t kind = op.variant;
  size_t at = 0;
  op.dst = op.dst2 = kNoSlot;
  if (form.Has("pending_count")) {
    if (operands.size() != 2) return Unsupported(instruction);
    op.dst = Destination(operands[0]);
    op.src[0] = Source(operands[1], Type::kB64);
    return op.dst == kNoSlot || op.src[0] == kNoSlot ? Status(Unsupported(instruction)) : Status{};
  }
  while (at < operands.size() && operands[at].kind != Operand::Kind::kAddress) ++at;
  if (at == operands.size()) return Unsupported(instruction);
  if (at > 0) op.dst = Destination(operands[0]);
  ATUNNER_RETURN_IF_ERROR(Address(operands[at], instruction, op, op.src[0]));
  op.variant = kind;
  op.src[1] = op.src[2] = kNoSlot;
  for (size_t i = at + 1; i < operands.size() && i < at + 3; ++i) {
    const bool state = (form.Has("test_wait") || form.Has("try_wait")) && !form.Has("parity") &&
                       i == at + 1;
    op.src[i - at] = Source(operands[i], state ? Type::kB64 : Type::kU32);
    if (op.src[i - at] == kNoSlot) return Unsupported(instruction);
  }
  return {};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
