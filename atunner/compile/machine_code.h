// Decodes the timing fields of a cubin's machine instructions: opcode, stall cycles, scoreboard
// barriers, and the PTX line that each instruction comes from.
#pragma once

#include <string_view>

#include "atunner/base/result.h"
#include "atunner/model/kernel/machine_code.h"

namespace atunner {

/// Instructions of the kernel with this symbol, for `arch` ("sm_90a"). Empty if the cubin has no
/// line information or the architecture's instructions are not 128 bits long (before sm_70).
/// kInvalidInput if the bytes are not a cubin.
Result<MachineCode> ReadMachineCode(std::string_view cubin, std::string_view symbol,
                                    std::string_view arch);

}  // namespace atunner
