// A shadow kernel: a user's kernel that carries its floating-point values in float64 beside the
// original computation.
//
// MakeShadow takes a PTX module and inserts instructions. Nothing of the original is removed or
// changed: the shadow kernel takes the same branches, touches the same addresses and writes the
// same bits as the original. Beside each f16, bf16 or f32 value it computes a *twin*, a double that
// follows from the twins of the operands without ever being rounded to the narrow type:
//
//     original          the shadow adds
//     ld.global.f32 a   twin(a) = the twin stored beside a's address, or a itself
//     fma.rn.f32 d,a,b,c   twin(d) = fma.rn.f64 of the twins
//     st.global.f32 d   stores twin(d) beside the address
//
// So one launch gives both the user's result and what it would be without rounding errors; their
// difference is the honest error of the user's kernel.
//
// Decisions stay the original's: comparisons, branches, conversions to integers, rounding to whole
// numbers and memory addresses follow the original values. So an argmax or a quantised value is the
// same in both, and the shadow ends whenever the original does. A twin whose bits are needed
// (code such as logf takes numbers apart with integer instructions) is rounded to its type once,
// and the integer instructions are executed a second time for it.
//
// Twins of memory lie in *cells*. shadow_space.h owns that memory and says how the judge uses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::shadow {

/// An instruction whose result has no twin: the shadow continues with the original's value, so the
/// original's errors up to there count as exact.
struct LossyPlace {
  uint32_t line = 0;  ///< in the PTX text, from 1
  std::string what;   ///< "tex.2d.v4.f32.f32"
};

struct ShadowKernel {
  std::string ptx;                ///< same entries and parameters; see ShadowSpace for symbols
  std::vector<LossyPlace> lossy;  ///< empty = every float value has a twin throughout
  bool uses_shared = false;       ///< cells of shared memory are needed
  bool carries_floats = false;    ///< false: integers only, nothing was inserted
};

/// `entries`: the kernels that will be launched, as PTX names them (KernelResources::mangled); none
/// named = all. Others are left as they are. kInvalidInput for a text that is not PTX; kUnsupported
/// names the instruction and its line where most of a kernel's work would have no twin (wgmma, bulk
/// tensor copies, other blocks' shared memory).
Result<ShadowKernel> MakeShadow(std::string_view ptx, std::span<const std::string> entries = {});

}  // namespace atunner::shadow
