// Machine instructions out of a cubin, as far as their timing goes: what they are, how long they
// hold up their warp, what they wait for, and which line of the PTX they come from.
#pragma once

#include <string_view>

#include "atunner/base/result.h"
#include "atunner/model/kernel/machine_code.h"

namespace atunner {

/// Instructions of the kernel with this symbol, for `arch` ("sm_90a"). Empty when the cubin has no
/// line information, or is of an architecture whose instructions are not of 128 bits. kInvalidInput
/// for what is no cubin.
Result<MachineCode> ReadMachineCode(std::string_view cubin, std::string_view symbol,
                                    std::string_view arch);

}  // namespace atunner
