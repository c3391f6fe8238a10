// A decoded kernel: its operations with their source locations, and static facts about them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/ptx/module.h"
#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/counts.h"

#ifndef ATUNNER_VGPU_ISA
#error "define ATUNNER_VGPU_ISA"
#endif

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

constexpr int kLanes = 32;
// Slots behind the last register, so that an operand of a wrong width stays in bounds.
constexpr uint32_t kPaddingSlots = 4;
/// 32 bits of each lane. A 64-bit register takes two of them, with both words of lane 0 first.
struct alignas(64) SlotLanes {
  std::array<uint32_t, kLanes> lanes{};
};
// Windows of the generic address space, where the host maps nothing.
constexpr uint64_t kSharedWindow = uint64_t{0x01} << 56;
constexpr uint64_t kLocalWindow = uint64_t{0x02} << 56;
constexpr uint64_t kParamWindow = uint64_t{0x03} << 56;
/// Pointers to functions: index in the module
constexpr uint64_t kFunctionWindow = uint64_t{0x04} << 56;
constexpr uint64_t kWindowMask = uint64_t{0xff} << 56;

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };

struct BlockState;
struct Op;
using Handler = void (*)(BlockState&, const Op&, uint32_t mask);

/// Shared addresses of other blocks of the cluster carry the block's rank + 1 from this bit
/// upwards.
constexpr int kRankShift = 24;

/// How an operation changes the control flow. All but kNone are treated by the main loop.
enum class Flow : uint8_t {
  kNone,
  kBranch,
  kBranchIndexed,
  kExit,
  kBarrier,
  kClusterBarrier,
  kWarpSync,
  kCollective,
  kTrap,
  kCall,
  kReturn,
  kAligned,    ///< executed by all lanes of the warp, or of the warp group if Op::target is
               ///< kWholeGroup
  kMayYield,   ///< runs like kNone; other warps get a turn when it sets Progress::yield
  kReadsTime,  ///< runs like kNone, alone, so that Warp::clocks is up to date
  /// Uses registers that may be uninitialised; Kernel::maybe_undefined holds the flow besides that.
  kMaybeUndefined
};
/// Op::variant of a kMayYield operation that suspends the thread until its condition holds, or its
/// time limit is over.
constexpr uint8_t kSuspends = 1;

/// What an access to memory means for the order of accesses, see checks/synchronisation.h.
struct AccessOrder {
  /// A strong load whose value decides a branch, as flags do; the value of another is data. An
  /// atomic whose result is used. An ordinary load that peeks.
  bool polls : 1 = false;
  bool read_only : 1 = false;  ///< ld.global.nc: of memory that the kernel does not write
  bool of_block : 1 = false;   ///< of block scope (.cta)
};

/// One decoded instruction. Operands are slots of 32 lanes × 4 bytes: ≥ 0 in the warp's registers,
/// < 0 in the constants.
struct Op {
  Handler run = nullptr;
  int32_t dst = 0;
  int32_t dst2 = 0;
  std::array<int32_t, 4> src{};
  int32_t guard = -1;   ///< register slot of the predicate
  uint32_t target = 0;  ///< branch: op index; barrier: fixed id
  uint64_t imm = 0;     ///< address offset, packed options
  uint32_t list = 0;    ///< first of `list_size` further slots in Kernel::lists
  uint8_t list_size = 0;
  Flow flow = Flow::kNone;
  OpClass op_class = OpClass::kMove;
  Space space = Space::kGeneric;
  uint8_t width = 4;  ///< bytes of one memory element
  uint8_t variant = 0;
  AccessOrder order;
  bool guard_negated : 1 = false;
  bool sign_extend : 1 = false;
  bool narrow_address : 1 = false;  ///< address register has 32 bits
  bool relaxed : 1 = false;         ///< a strong access: volatile, relaxed, acquire, release
  bool is_volatile : 1 = false;
  bool fence : 1 = false;         ///< acquire or release: orders accesses of other threads
  bool list_written : 1 = false;  ///< the list holds destinations
  /// An earlier access of the basic block has the same address register, see SpanCache
  bool address_known : 1 = false;
  bool address_shared : 1 = false;   ///< a later access has the same address register
  bool copies_register : 1 = false;  ///< a move of 32 bits from register to register
};
static_assert(sizeof(Op) == 64);  // one cache line: unrolled loops have thousands of operations

/// Bytes of a block's shared memory that hardware reserves for the system. Cooperative groups use
/// the second half, from %reserved_smem_offset_1 on.
constexpr uint32_t kReservedShared = 1024;

/// Where an operation comes from in PTX and in the source.
struct OpLocation {
  uint32_t line = 0;  ///< of the PTX
  uint32_t source_file = 0;
  uint32_t source_line = 0;  ///< 0 = unknown
  /// The line that reports name.
  uint32_t Shown() const { return source_line ? source_line : line; }
};

/// A range of bytes in a stack frame.
struct FramePart {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

/// One call instruction: its arguments and results as parts of the caller's frame.
struct CallSite {
  int target = -1;  ///< index into Kernel::code, -1 = by pointer
  std::vector<FramePart> arguments;
  std::vector<FramePart> results;
};

/// The kernel itself (index 0) or a function it calls, within Kernel::ops.
struct Code {
  const ptx::Function* function = nullptr;
  uint32_t first_op = 0;
  uint32_t frame_bytes = 0;  ///< parameters, results and local variables
  std::vector<FramePart> parameters;
  std::vector<FramePart> results;
  int32_t first_slot = 0;
  uint32_t slots = 0;
  std::vector<int32_t> slot_of_register;
  int32_t frame_slot = 0;  ///< slot that holds the frame's offset in local memory
  bool recursive = false;  ///< registers are saved at each call
};

/// An operation on maybe-uninitialised registers: those that may be read before anything is written
/// to them.
struct MaybeUndefined {
  Flow flow = Flow::kNone;  ///< the flow of the operation without the check
  int32_t guard = -1;       ///< slot of the guard predicate, if it is such a register
  /// Slots whose value must be defined: of addresses and branch conditions
  std::vector<int32_t> needs;
  /// Slots of a stored value, if all its registers are maybe uninitialised
  std::vector<int32_t> stored;
  std::vector<int32_t> passes;                ///< sources; the results are undefined if one is
  std::array<int32_t, 3> select{-1, -1, -1};  ///< selp: both choices and the predicate
  std::vector<int32_t> writes;
  static constexpr int32_t kNotTracked = INT32_MIN;
  /// Slots of the elements of a load or store of the block's memory; kNotTracked = always defined
  std::vector<int32_t> moved;
  bool generic = false;   ///< a store that may go to other memory than global
  bool cancels = false;   ///< subtracts the last of `passes` from a sum that contains it
  bool compares = false;  ///< undefined values from shared memory do not make its result undefined
  /// A load whose value is only copied: it may read unwritten memory
  bool copies = false;
  bool keeps = false;        ///< a store that may put undefined values in shared memory
  bool keeps_local = false;  ///< a store that may put undefined values on the stack
};

struct Kernel {
  const ptx::Function* function = nullptr;
  /// By index in `ops`. This and the next two members are set only in copies by FindMaybeUndefined.
  std::unordered_map<uint32_t, MaybeUndefined> maybe_undefined;
  std::vector<int32_t> maybe_undefined_slots;
  bool carries_undefined = false;  ///< undefined values may be stored in shared memory
  std::vector<Code> code;
  std::vector<CallSite> calls;
  std::unordered_map<uint32_t, int> code_of_function;  ///< index in the module → index into `code`
  uint32_t local_bytes = 0;                            ///< stack of one thread
  uint32_t alloca_bytes = 0;                           ///< part of local_bytes, at its end
  bool cooperative = false;                            ///< synchronises the whole grid
  std::vector<Op> ops;
  std::vector<OpLocation> locations;  ///< per op
  /// Per op: index of the next op, itself included, whose flow is not kNone
  std::vector<uint32_t> flow_ops;
  /// Per op, and one past the last: typical clocks of a warp for all ops before it. Empty unless
  /// the kernel reads clocks or timers.
  std::vector<uint32_t> clocks;
  std::vector<int32_t> lists;
  std::vector<Track> tracks;        ///< per op, for the timeline
  std::vector<int32_t> track_list;  ///< registers of the tracks
  /// Number of registers of all functions. Unlike slots, each has a number of its own.
  uint32_t track_registers = 0;
  std::vector<SlotLanes> constants;  ///< element i is slot ~i
  uint32_t register_slots = 1;       ///< slot 0 is unused: the default of operands that are absent
  uint64_t static_shared = 0;
  uint32_t dynamic_shared_offset = 0;
  /// Bytes of shared memory behind the kernel's own, for kernels that use the system's part
  uint32_t reserved_shared = 0;
};

inline const OpLocation& LocationOf(const Kernel& kernel, const Op& op) {
  return kernel.locations[static_cast<size_t>(&op - kernel.ops.data())];
}

/// Fills Kernel::flow_ops.
inline void FindFlow(Kernel& kernel) {
  kernel.flow_ops.resize(kernel.ops.size());
  auto next = static_cast<uint32_t>(kernel.ops.size());
  for (uint32_t i = next; i-- > 0;)
    kernel.flow_ops[i] = next = kernel.ops[i].flow == Flow::kNone ? next : i;
}

/// The flow of an operation without the check of maybe-uninitialised registers.
inline Flow FlowOf(const Kernel& kernel, const Op& op) {
  if (op.flow != Flow::kMaybeUndefined) return op.flow;
  return kernel.maybe_undefined.at(static_cast<uint32_t>(&op - kernel.ops.data())).flow;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
