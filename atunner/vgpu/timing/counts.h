// What a launch did, counted. The estimator turns this into time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

struct Counts {
  /// Issued, per warp
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> warp_instructions{};
  /// Times active lanes
  std::array<uint64_t, static_cast<size_t>(OpClass::kCount)> thread_instructions{};
  /// Executed by a warp
  uint64_t branches = 0;
  /// Of those, both sides taken
  uint64_t divergent_branches = 0;
  double tensor_flops = 0;  ///< of tensor instructions, 2 per multiply-add
  /// Of those mma and wmma, as elements of 16 bits: wider ones take longer
  double mma_work = 0;
  double wgmma_work = 0;      ///< likewise wgmma
  uint64_t global_loads = 0;  ///< warp requests
  uint64_t global_stores = 0;
  uint64_t global_load_sectors = 0;  ///< 32-byte sectors, per request
  uint64_t global_store_sectors = 0;
  uint64_t global_load_bytes = 0;  ///< asked for by the lanes
  uint64_t global_store_bytes = 0;
  uint64_t unique_load_sectors = 0;  ///< distinct within each block, summed over blocks
  uint64_t unique_store_sectors = 0;
  uint64_t updated_sectors = 0;      ///< of these, loaded by the same block as well
  uint64_t common_load_sectors = 0;  ///< that every block loads; of the launch
  uint64_t shared_requests = 0;
  uint64_t shared_wavefronts = 0;  ///< bank conflicts make more than the data needs
  uint64_t remote_packets = 0;     ///< in which other blocks' shared memory comes
  /// Of the load/store unit, as the machine code asks; 0 = that is not known
  uint64_t issued_wavefronts = 0;
  uint64_t async_wavefronts = 0;  ///< of shared and global ones those of wgmma and of bulk copies
  /// Times the places that a warp's lanes access in their memories
  uint64_t local_requests = 0;
  /// Of four bytes a lane, that warps store for want of registers and load again
  uint64_t spilled_words = 0;
  uint64_t atomics = 0;   ///< global atomic lanes
  uint64_t barriers = 0;  ///< per warp
  uint64_t async_copy_bytes = 0;
  uint64_t bulk_sectors = 0;  ///< global ones that bulk copies read or write
  /// That copies past L1 and evict-first loads read again
  uint64_t reread_sectors = 0;
  /// Warp instructions as the assembler makes them, per pipe
  std::array<uint64_t, kPipes> pipe_uses{};
  uint64_t issued = 0;             ///< of them in all, control flow included
  uint64_t code_instructions = 0;  ///< distinct ones that ran
  uint64_t global_wavefronts = 0;  ///< cycles of the load/store unit for global requests
  /// And as many more while what they want is on its way to L1
  uint64_t late_turns = 0;
  uint64_t l1_hit_sectors = 0;  ///< of loads: seen before by the block
  /// Of those, in distinct sectors that the block read since, summed
  uint64_t reuse_distance = 0;
  std::array<double, 2>
      /// Cycles from a block's start to its end without company: misses served by L2, by DRAM
      path{};
  std::array<double, 2> longest_path{};  ///< of a block
  uint64_t blocks = 0;
  uint64_t warps = 0;

  /// Products of tensor elements of `bits` bits by mma.
  void AddProducts(double flops, int bits) {
    tensor_flops += flops;
    mma_work += flops * bits / 16;
  }
  uint64_t TotalWarpInstructions() const;
  uint64_t TotalThreadInstructions() const;
  Counts& operator+=(const Counts& other);
  /// All figures by name.
  std::vector<std::pair<std::string, double>> Figures() const;
};

/// What one operation asked of memory, beyond how often it ran.
struct OpCounts {
  uint64_t global_requests = 0;  ///< of a warp, loads and stores
  uint64_t global_sectors = 0;
  uint64_t global_bytes = 0;  ///< asked for by the lanes
  uint64_t shared_requests = 0;
  uint64_t shared_wavefronts = 0;
  uint64_t local_requests = 0;
  uint64_t atomics = 0;  ///< global, lanes
  uint64_t branches = 0;
  uint64_t divergent_branches = 0;

  /// Of what a launch counted so far; the difference of two is one operation's share.
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
/// By file and line as the compiler names them; without line information "" and the line of the
/// PTX.
using LineCounts = std::map<std::pair<std::string, uint32_t>, LineCount>;

}  // namespace atunner::vgpu
