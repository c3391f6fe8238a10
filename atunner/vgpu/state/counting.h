// Counters of a block that runs, and the state of its timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/vgpu/memory/sectors.h"
#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/counts.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// How often an operation ran, and for how many lanes. The members of a difference of two tallies
/// wrap around.
struct Tally {
  uint64_t times = 0;
  uint64_t lanes = 0;
};

struct Counting {
  bool enabled = false;  ///< ExecOptions::count
  bool by_line = false;  ///< ExecOptions::count_lines
  Counts total;
  std::vector<OpCounts> by_op;  ///< per operation, while `by_line`
  std::vector<Tally> executed;  ///< per operation
  /// Per operation, and one past the last: difference array of the executions of whole basic
  /// blocks. An execution of the operations [a, b) adds to element a and subtracts from element b.
  std::vector<Tally> basic_blocks;
  SectorTable load_sectors;
  SectorTable store_sectors;
  CommonSectors common_sectors;  ///< sectors that all blocks so far have read
  PatternTable conflicts;        ///< bank conflicts of the access patterns seen so far
};

struct TimingState {
  bool enabled = false;  ///< ExecOptions::timeline
  std::vector<WarpTime> warps;
  std::vector<uint64_t> issued_runs;  ///< per run of the SASS schedule: how often it was issued
  /// Machine instructions that were issued under predicates that held for no lane.
  uint64_t predicated_off = 0;
  Ports ports;
  Touch touch;  ///< how the current operation's access met memory
  /// All bytes of the current bulk copy were read by this block before.
  bool read_before = true;
  std::vector<Noted> noted;  ///< operations from `next` on that must be treated one by one
  uint32_t next = 0;         ///< first operation of the basic block not yet in the timeline
  uint32_t op = 0;           ///< the operation that runs
};

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
