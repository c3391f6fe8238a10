// Calls of device functions: one stack of return points per lane, frames in local memory.
#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/decode/register_slots.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

std::byte* LocalByte(BlockState& x, int lane, uint32_t offset) {
  return x.local.bytes.data() + size_t{x.ThreadOf(lane)} * x.kernel->local_bytes + offset;
}

/// Copies bytes of local memory together with their definedness.
void CopyLocal(BlockState& x, std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  if (x.checks.memory)
    std::memcpy(x.local.defined.data() + (to - x.local.bytes.data()),
                x.local.defined.data() + (from - x.local.bytes.data()), bytes);
}

uint32_t FrameOf(BlockState& x, int32_t frame_slot, int lane) {
  return frame_slot == INT32_MIN ? 0 : x.Slot(frame_slot)[lane];
}

/// Index in Kernel::code of the function that a lane calls, or -1 after reporting.
int Target(BlockState& x, const Op& op, const CallSite& site, int lane) {
  if (site.target >= 0) return site.target;
  const uint64_t pointer = Lane<uint64_t>::Get(x.Source(op.src[0]), lane);
  const auto at = x.kernel->code_of_function.find(static_cast<uint32_t>(pointer & ~kWindowMask));
  if ((pointer & kWindowMask) == kFunctionWindow && at != x.kernel->code_of_function.end()) {
    const Code& code = x.kernel->code[static_cast<size_t>(at->second)];
    if (code.parameters.size() == site.arguments.size()) return at->second;
    Report(x, op, Hazard::Kind::kTrap, lane,
           "calls " + code.function->name + " with " + std::to_string(site.arguments.size()) +
               " arguments, it takes " + std::to_string(code.parameters.size()));
    return -1;
  }
  Report(x, op, Hazard::Kind::kTrap, lane,
         "calls through a pointer that is no function of this kernel");
  return -1;
}

/// Calls `f(word, is_predicate)` for each word of a lane's registers. 64-bit registers are stored
/// lane by lane over two slots; predicates are bits of one word.
template <class F>
void ForRegisterWords(BlockState& x, const Code& code, int lane, F&& f) {
  for (size_t reg = 0; reg < code.slot_of_register.size(); ++reg) {
    const ptx::Type type = code.function->registers[reg].type;
    const auto words = static_cast<int>(SlotsOfType(type));
    const bool predicate = ptx::BitsOf(type) == 1;
    uint32_t* first = x.Slot(code.slot_of_register[reg]);
    if (predicate) f(*first, true);
    for (int w = 0; !predicate && w < words; ++w) f(first[lane * words + w], false);
  }
  f(x.Slot(code.frame_slot)[lane], false);
}
std::vector<uint32_t> SaveRegisters(BlockState& x, const Code& code, int lane) {
  std::vector<uint32_t> saved;
  saved.reserve(code.slots);
  ForRegisterWords(x, code, lane, [&](uint32_t& word, bool predicate) {
    saved.push_back(predicate ? (word >> lane) & 1u : word);
  });
  return saved;
}
void RestoreRegisters(BlockState& x, const Code& code, int lane,
                      const std::vector<uint32_t>& saved) {
  size_t i = 0;
  ForRegisterWords(x, code, lane, [&](uint32_t& word, bool predicate) {
    word = predicate ? (word & ~(1u << lane)) | saved[i] << lane : saved[i];
    ++i;
  });
}

/// Reports a stack overflow. Returns false.
bool ReportOverflow(BlockState& x, const Op& op, int lane) {
  Report(x, op, Hazard::Kind::kOutOfBounds, lane,
         "stack overflow: the thread has " + std::to_string(x.kernel->local_bytes) + " bytes");
  return false;
}

/// Pushes the return point of one lane and opens the callee's frame.
bool Enter(BlockState& x, const Op& op, const CallSite& site, int target, int lane, uint32_t pc) {
  const Kernel& kernel = *x.kernel;
  const Code& caller = kernel.code[op.target];
  const Code& callee = kernel.code[static_cast<size_t>(target)];
  const uint32_t caller_frame = FrameOf(x, caller.frame_slot, lane);
  const uint32_t frame = caller_frame + caller.frame_bytes;
  if (uint64_t{frame} + callee.frame_bytes > kernel.local_bytes - kernel.alloca_bytes)
    return ReportOverflow(x, op, lane);
  MarkLocal(x.local, LocalByte(x, lane, frame), callee.frame_bytes, false);
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    const FramePart& from = site.arguments[i];
    const FramePart& to = callee.parameters[i];
    CopyLocal(x, LocalByte(x, lane, frame + to.offset),
              LocalByte(x, lane, caller_frame + from.offset), std::min(from.bytes, to.bytes));
  }
  ReturnPoint point;
  point.call_op = pc;
  point.frame = caller_frame;
  point.claimed = x.warp->claimed[static_cast<size_t>(lane)];
  if (callee.recursive) point.saved = SaveRegisters(x, callee, lane);
  x.warp->stack[static_cast<size_t>(lane)].push_back(std::move(point));
  x.Slot(callee.frame_slot)[lane] = frame;
  return true;
}

uint64_t ReadWord(const BlockState& x, int32_t slot, bool wide, int lane) {
  const uint32_t* from = x.Source(slot);
  return wide ? Lane<uint64_t>::Get(from, lane) : from[lane];
}
void WriteWord(BlockState& x, int32_t slot, bool wide, int lane, uint64_t value) {
  if (wide)
    Lane<uint64_t>::Set(x.Slot(slot), lane, value);
  else
    x.Slot(slot)[lane] = static_cast<uint32_t>(value);
}

void Alloca(BlockState& x, const Op& op, uint32_t mask) {
  const bool wide = op.width == 8;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint32_t& claimed = x.warp->claimed[static_cast<size_t>(l)];
    const uint64_t bytes = ReadWord(x, op.src[0], wide, l);
    const uint64_t all = (claimed + std::min<uint64_t>(bytes, UINT32_MAX) + op.imm - 1) / op.imm *
                         op.imm;
    if (all > x.kernel->alloca_bytes) return void(ReportOverflow(x, op, l));
    claimed = static_cast<uint32_t>(all);
    const uint32_t at = x.kernel->local_bytes - claimed;
    MarkLocal(x.local, LocalByte(x, l, at), bytes, false);
    WriteWord(x, op.dst, wide, l, at);
  }
}
void StackSave(BlockState& x, const Op& op, uint32_t mask) {
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    WriteWord(x, op.dst, op.width == 8, l, x.warp->claimed[static_cast<size_t>(l)]);
  }
}
void StackRestore(BlockState& x, const Op& op, uint32_t mask) {
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint32_t& claimed = x.warp->claimed[static_cast<size_t>(l)];
    claimed = static_cast<uint32_t>(
        std::min<uint64_t>(ReadWord(x, op.src[0], op.width == 8, l), claimed));
  }
}

}  // namespace

Handler StackHandler(const Form& form) {
  const std::string& opcode = form.instruction->opcode;
  if (form.type != ptx::Type::kU32 && form.type != ptx::Type::kU64) return nullptr;
  return opcode == "alloca" ? Alloca : opcode == "stacksave" ? StackSave : StackRestore;
}

std::byte* FrameByte(BlockState& x, int32_t frame_slot, int lane, uint32_t offset) {
  return LocalByte(x, lane, FrameOf(x, frame_slot, lane) + offset);
}

void Call(BlockState& x, const Op& op, uint32_t mask, uint32_t pc) {
  const CallSite& site = x.kernel->calls[op.imm];
  const uint32_t depth = static_cast<uint32_t>(
                             x.warp->stack[static_cast<size_t>(std::countr_zero(mask))].size()) +
                         1;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const int target = Target(x, op, site, l);
    if (target < 0 || !Enter(x, op, site, target, l, pc)) return;
    const uint32_t first = x.kernel->code[static_cast<size_t>(target)].first_op;
    std::vector<Group>& groups = x.warp->groups;
    if (!groups.empty() && groups.back().pc == first && groups.back().depth == depth &&
        groups.back().barrier < 0)
      groups.back().mask |= 1u << l;
    else
      groups.push_back({first, 1u << l, -1, nullptr, depth});
  }
}

void Return(BlockState& x, const Op& op, uint32_t mask, uint32_t depth) {
  const Kernel& kernel = *x.kernel;
  const Code& callee = kernel.code[op.target];
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    auto& stack = x.warp->stack[static_cast<size_t>(l)];
    const ReturnPoint point = std::move(stack.back());
    stack.pop_back();
    x.warp->claimed[static_cast<size_t>(l)] = point.claimed;
    const CallSite& site = kernel.calls[kernel.ops[point.call_op].imm];
    const uint32_t frame = x.Slot(callee.frame_slot)[l];
    for (size_t i = 0; i < std::min(site.results.size(), callee.results.size()); ++i) {
      CopyLocal(x, LocalByte(x, l, point.frame + site.results[i].offset),
                LocalByte(x, l, frame + callee.results[i].offset),
                std::min(site.results[i].bytes, callee.results[i].bytes));
    }
    if (!point.saved.empty()) RestoreRegisters(x, callee, l, point.saved);
    std::vector<Group>& groups = x.warp->groups;
    if (!groups.empty() && groups.back().pc == point.call_op + 1 &&
        groups.back().depth == depth - 1 && groups.back().barrier < 0)
      groups.back().mask |= 1u << l;
    else
      groups.push_back({point.call_op + 1, 1u << l, -1, nullptr, depth - 1});
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
