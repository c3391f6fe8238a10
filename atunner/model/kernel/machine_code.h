// The machine code of a kernel: its instructions (SASS) in the order in which a warp issues them.
#pragma once

#include <cstdint>
#include <vector>

namespace atunner {

struct MachineInstruction {
  static constexpr uint8_t kNoBarrier = 7;
  static constexpr uint32_t kNowhere = ~0u;

  /// The lowest nine bits of the encoding, without the kinds of the operands.
  uint16_t opcode = 0;
  uint8_t stall = 0;                    ///< cycles until the warp's next one may issue
  uint8_t result_barrier = kNoBarrier;  ///< scoreboard that is held until the result is ready
  uint8_t read_barrier = kNoBarrier;    ///< scoreboard that is held until the operands are read
  uint8_t waits = 0;                    ///< mask of scoreboards that must be free before the issue
  bool conditional = false;             ///< the instruction has a predicate
  uint8_t words = 1;                    ///< 4-byte words that a load or store moves for a lane
  uint32_t line = 0;                    ///< line of the PTX text, from 1; 0 = unknown
  uint32_t target = kNowhere;           ///< index of the instruction that a branch or call leads to
};

using MachineCode = std::vector<MachineInstruction>;

}  // namespace atunner
