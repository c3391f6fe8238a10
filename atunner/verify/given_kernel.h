// What the judge reads in the code of a user's kernel as given, before it chooses inputs.
#pragma once

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/code/input_uses.h"
#include "atunner/verify/inputs/input_family.h"

namespace atunner {

struct GivenKernel {
  MinedValues constants;
  InputUses uses;
};

/// Compiles the kernel as given and reads its PTX; nothing is known of a task whose oracle is no
/// kernel, or of a kernel that does not compile, of which the oracle tells.
Result<GivenKernel> ReadGivenKernel(const Device& device, Compiler& compiler,
                                    const KernelSpec& spec);

/// The task with fills that an honest kernel bears:
///  - Integers without a stated range that reach an address get the range of ordinary drawings, -8
///    to 8, in all families. So do, where the device cannot report an access out of bounds or an
///    endless loop and go on, integers that decide about loops, and all of a task that is no user's
///    kernel.
///  - Constant, zero and ascending fills whose values decide about branches are exact: they are
///    states such as flags, counters and roots, and not data. So are constants that reach an
///    address; ascending indices may be permuted.
KernelSpec WithBearableFills(KernelSpec spec, const InputUses& uses, bool checks_bounds);

}  // namespace atunner
