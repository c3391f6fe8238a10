// What a kernel does with the values of its tensors, found in its PTX: whether they reach an
// address, so that they are indices, or the condition of a loop, so that they are counts. Such
// tensors must not be filled with just any number.
//
//     ld.global.u32 %r2, [x + 4·i];  mad.wide.s32 %rd5, %r2, 4, %rd1;  ld.global.f32 %f1, [%rd5];
//
// makes x an index array. A value that an `and`, `rem`, `min` and `max`, or a bit-field extraction
// with constants bounds before it reaches the address is none: x & 15 may index a table.
#pragma once

#include <set>
#include <string>

#include "atunner/model/kernel/compiled_module.h"
#include "atunner/model/kernel/launch_plan.h"

namespace atunner {

struct InputUses {
  std::set<std::string> addresses;  ///< tensors whose values reach an address
  std::set<std::string> loops;      ///< tensors whose values decide how often a loop runs
  std::set<std::string> decisions;  ///< tensors whose values decide whether any instruction runs
  bool known = false;               ///< false: the PTX could not be read, or calls functions
};

/// The uses in all launches of the plan. The analysis follows registers and memory without regard
/// to order, so that it may name too many tensors and, within one module's kernels, never too few.
InputUses FindInputUses(const CompiledModule& module, const LaunchPlan& plan);

}  // namespace atunner
