// Which machine instructions a warp issues when it runs a part of the PTX. The cubin's line table
// says from which line of PTX each of them comes; a part of the PTX (its operations between changes
// of the flow) is matched with the runs of machine code that mostly come from it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "atunner/model/kernel/machine_code.h"
#include "atunner/vgpu/timing/op_cost.h"

namespace atunner::vgpu {

/// An operation of the PTX as the matching sees it.
struct ScheduledOp {
  static constexpr uint32_t kNowhere = ~0u;
  uint32_t line = 0;
  uint32_t target = kNowhere;  ///< target of a branch
  bool first = false;          ///< a part begins with it
  bool last = false;           ///< a part ends with it
  bool control = false;        ///< a branch or exit of its own accord
  bool always = false;         ///< without a predicate
  bool ends = false;           ///< ends the thread or returns
  bool calls = false;
  bool product = false;  ///< wgmma
  bool local = false;    ///< reads or writes local memory of its own accord
  bool single = false;   ///< one machine instruction: says how often a loop was unrolled
};

/// A machine instruction, and the operation on which its time depends.
struct MachineStep {
  MachineInstruction instruction;
  uint32_t op = ScheduledOp::kNowhere;  ///< the operation that it comes from
  /// Latency until its scoreboard is free; kMemory: that of the access
  Wait wait = Wait::kNone;
  uint32_t shares = 1;  ///< instructions that make one access of the operation
  bool taken = false;   ///< a branch that is practically always taken
  bool spill = false;   ///< stores a register to local memory for want of registers, or loads it
};

/// Machine instructions that a warp issues in a row.
struct MachineRun {
  std::vector<MachineStep> steps;
  std::array<uint32_t, kPipes> uses{};
  uint32_t spilled_words = 0;  ///< words of four bytes per lane
  /// Executions of its part that one issue of the run covers: the assembler unrolls loops
  uint32_t copies = 1;
  uint32_t depth = 0;  ///< loop depth
};

/// The machine code of a kernel, matched with the operations of its PTX.
struct SassSchedule {
  /// A part of the PTX. Most parts consist of one run; if a run ends inside a part, of several in a
  /// row. For each run there may be alternatives that cover different numbers of executions, sorted
  /// by copies and then by loop depth.
  struct Part {
    std::vector<std::vector<uint32_t>> runs;
    uint32_t copies = 1;  ///< the largest MachineRun::copies
  };
  std::vector<MachineRun> runs;
  std::vector<Part> parts;
  std::vector<uint32_t> part_of;  ///< per operation
  /// Per operation: 1 = a branch that was replaced by predicates of the instructions it jumps over
  std::vector<uint8_t> converted;
  bool empty() const { return runs.empty(); }
};

/// Empty when too few instructions say which line they come from.
SassSchedule MakeSchedule(const MachineCode& code, const std::vector<ScheduledOp>& ops);

}  // namespace atunner::vgpu
