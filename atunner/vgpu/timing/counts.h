// Counters of a launch, from which the estimator predicts its time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "atunner/vgpu/timing/atomic_units.h"
#include "atunner/vgpu/timing/op_cost.h"

namespace atunner::vgpu {

/// Classes of instructions by the pipe that executes them.
enum class OpClass : uint8_t {
#define ATUNNER_OP_CLASS(id, name) id,
#include "atunner/vgpu/timing/op_class.def"
#undef ATUNNER_OP_CLASS
  kCount
};
std::string_view Name(OpClass op_class);

/// Accesses to global memory. A sector has 32 bytes; a request is one instruction of a warp.
struct GlobalCounts {
  uint64_t loads = 0;  ///< requests
  uint64_t stores = 0;
  uint64_t load_sectors = 0;  ///< distinct within each request, summed over requests
  uint64_t store_sectors = 0;
  uint64_t load_bytes = 0;  ///< that the lanes asked for
  uint64_t store_bytes = 0;
  uint64_t unique_load_sectors = 0;  ///< distinct within each block, summed over blocks
  uint64_t unique_store_sectors = 0;
  uint64_t updated_sectors = 0;      ///< part of unique_store_sectors that the block loaded as well
  uint64_t common_load_sectors = 0;  ///< that every block of the launch loads
  uint64_t l1_hit_sectors = 0;       ///< loaded sectors that the block has accessed before
  /// Per sector of l1_hit_sectors, the distinct sectors that the block has read since; summed.
  uint64_t reuse_distance = 0;
  uint64_t reread_sectors = 0;   ///< read again by copies that bypass L1 and by evict-first loads
  uint64_t bulk_sectors = 0;     ///< read or written by bulk copies
  uint64_t wavefronts = 0;       ///< cycles of the load/store unit
  uint64_t late_wavefronts = 0;  ///< further cycles for requests whose data is not yet in L1
  uint64_t atomics = 0;          ///< lanes
  AtomicUnits atomic_units;      ///< where they meet

  GlobalCounts& operator+=(const GlobalCounts& other);
};

/// Accesses to shared memory. A wavefront is a cycle of the load/store unit.
struct SharedCounts {
  uint64_t requests = 0;
  uint64_t wavefronts = 0;      ///< bank conflicts make more of them than the data needs
  uint64_t remote_packets = 0;  ///< that carry data of other blocks' shared memory
  /// Wavefronts of shared and global accesses by the machine code; 0 = unknown
  uint64_t issued_wavefronts = 0;
  uint64_t async_wavefronts = 0;  ///< shared and global wavefronts of wgmma and bulk copies

  SharedCounts& operator+=(const SharedCounts& other);
};

/// Multiply-adds of tensor cores, 2 FLOP each.
struct TensorCounts {
  double flops = 0;
  /// FLOP of mma and wmma, scaled to elements of 16 bits: wider elements take longer.
  double mma_work = 0;
  double wgmma_work = 0;  ///< the same for wgmma

  /// Adds products of elements of `bits` bits by mma.
  void AddProducts(double more_flops, int bits) {
    flops += more_flops;
    mma_work += more_flops * bits / 16;
  }
  TensorCounts& operator+=(const TensorCounts& other);
};

/// Everything that a launch counts.
struct Counts {
  /// Executed by warps, per class
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> warp_instructions{};
  /// Executed by threads, per class
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> thread_instructions{};
  uint64_t branches = 0;            ///< executed by warps
  uint64_t divergent_branches = 0;  ///< of these, with lanes on both sides
  TensorCounts tensor;
  GlobalCounts global;
  SharedCounts shared;
  /// Distinct elements of local memory that the lanes of a request access, summed over requests
  uint64_t local_requests = 0;
  /// Words of four bytes per lane that warps store for want of registers and load again
  uint64_t spilled_words = 0;
  uint64_t barriers = 0;  ///< executed by warps
  uint64_t async_copy_bytes = 0;
  /// Machine instructions of warps, as the assembler makes them, per pipe
  std::array<uint64_t, kPipes> pipe_uses{};
  uint64_t issued = 0;             ///< all machine instructions of warps, control flow included
  uint64_t code_instructions = 0;  ///< distinct machine instructions that ran
  /// Cycles from a block's start to its end if it had the SM to itself, summed over blocks: with
  /// L1 misses served by L2, and by DRAM.
  std::array<double, 2> path{};
  std::array<double, 2> longest_path{};  ///< the largest of one block
  uint64_t blocks = 0;
  uint64_t warps = 0;

  uint64_t TotalWarpInstructions() const;
  uint64_t TotalThreadInstructions() const;
  Counts& operator+=(const Counts& other);
  /// All figures by name.
  std::vector<std::pair<std::string, double>> Figures() const;
};

/// Memory accesses and branches of one operation.
struct OpCounts {
  uint64_t global_requests = 0;  ///< loads and stores of warps
  uint64_t global_sectors = 0;
  uint64_t global_bytes = 0;  ///< that the lanes asked for
  uint64_t shared_requests = 0;
  uint64_t shared_wavefronts = 0;
  uint64_t local_requests = 0;
  uint64_t atomics = 0;  ///< lanes, in global memory
  uint64_t branches = 0;
  uint64_t divergent_branches = 0;

  /// The part of a launch's counts so far. The difference of two is one operation's share.
  static OpCounts Of(const Counts& counts);
  OpCounts& operator+=(const OpCounts& other);
  OpCounts operator-(const OpCounts& other) const;
};

/// Counts of one line of the source.
struct LineCount {
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> warp_instructions{};
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> thread_instructions{};
  OpCounts memory;

  uint64_t WarpInstructions() const;
  uint64_t ThreadInstructions() const;
  LineCount& operator+=(const LineCount& other);
};
/// Counts by file and line of the source as the compiler names them. Without line information the
/// file is "" and the line one of the PTX.
using LineCounts = std::map<std::pair<std::string, uint32_t>, LineCount>;

}  // namespace atunner::vgpu
