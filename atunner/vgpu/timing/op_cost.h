// The cost of one PTX instruction: the machine instructions that the assembler makes of it, by
// pipe, and the latency of its result. Sources: docs/timing-model.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "atunner/ptx/module.h"

namespace atunner::vgpu {

enum class Pipe : uint8_t {
#define ATUNNER_PIPE(id, name) id,
#include "atunner/vgpu/timing/pipe.def"
#undef ATUNNER_PIPE
  kCount
};
inline constexpr size_t kPipes = static_cast<size_t>(Pipe::kCount);
std::string_view Name(Pipe pipe);

/// The latency of a result beyond a chain of simple instructions. kRounded: exact divisions and
/// roots, which branch to a slow path, so that no instruction is moved across them.
enum class Wait : uint8_t {
  kNone,
  kRounded,
  kSpecial,
  kFp64,
  kShuffle,
  kTensor,
  kMemory,
  kConstant,
  kRegisterRead,
  kFence,
  kCount
};

struct OpCost {
  std::array<uint8_t, kPipes> uses{};  ///< warp instructions per pipe
  uint8_t issue = 0;                   ///< warp instructions in all; control flow uses no pipe
  uint8_t steps = 0;                   ///< dependent simple instructions on the way to the result
  Wait wait = Wait::kNone;             ///< latency in addition to the steps
};

/// An opcode that the table lacks costs one simple integer instruction.
OpCost CostOf(const ptx::Instruction& instruction);

/// Latencies in cycles: of results, barriers and memory levels.
struct Latencies {
  float step = 4.5f;
  std::array<float, static_cast<size_t>(Wait::kCount)> wait{};
  /// Cycles that one warp instruction keeps its quarter of a pipe busy.
  float alu_busy = 2, special_busy = 8, tensor_busy = 7;
  float predicate = 13;           ///< from a predicate to the branch that uses it
  float branch = 8;               ///< from a taken branch to the next instruction
  uint32_t memory_turns = 1;      ///< cycles in which the load/store unit takes a warp's lanes
  float products_per_clk = 2048;  ///< multiply-adds of 16 bits that wgmma makes in an SM
  float products = 66;            ///< from the end of a wgmma to the warps that wait for it
  float bulk = 50;                ///< latency of a bulk copy beyond that of a load
  float port_bytes_per_clk = 64;  ///< bandwidth from L2 into an SM
  float barrier = 12;
  float barrier_per_warp = 2;
  float cluster_barrier = 300;
  float cluster_barrier_per_warp = 10;
  float shared = 24;
  float remote = 200;          ///< a load from another block's shared memory
  float remote_busy = 2;       ///< cycles per packet of such a load
  float arrival = 20;          ///< from an arrival at an mbarrier to the warps that wait for it
  float remote_arrival = 300;  ///< the same for an mbarrier of another block
  float l1 = 40;
  float spill = 40;  ///< load of a spilled register
  /// A load that misses L1, in the two runs of a Timeline: L2 hit, DRAM
  std::array<float, 2> miss{290, 680};
};

}  // namespace atunner::vgpu
