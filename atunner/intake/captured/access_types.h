// What a kernel does with the memory behind its parameters, found in its PTX: element types, reads
// and writes.
//
//     ld.param.u64 %rd1, [k_param_0];  cvta.to.global.u64 %rd2, %rd1;
//     add.s64 %rd3, %rd2, %rd9;        ld.global.f32 %f1, [%rd3];
//
// makes the pointer at byte 0 of parameter 0 one to f32 that is read.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "atunner/model/kernel/launch_plan.h"
#include "atunner/model/value/dtype.h"
#include "atunner/ptx/module.h"

namespace atunner {

/// Accesses through one pointer.
struct PointerUse {
  std::set<ptx::Type> types;  ///< of its loads, stores and atomics
  bool read = false;
  bool written = false;
};

/// By number of the parameter, and position of the pointer in it, bytes.
using PointerUses = std::map<std::pair<size_t, uint64_t>, PointerUse>;

struct KernelAccesses {
  PointerUses pointers;
  /// False: the kernel calls functions, or reaches memory through pointers that were not followed.
  bool complete = true;
  bool reads_block_size = false;                ///< %ntid
  bool reads_grid_size = false;                 ///< %nctaid
  std::array<bool, 3> reads_block_extent = {};  ///< %ntid, by axis
  /// The number of blocks is multiplied by their size, both along x: a grid-stride loop.
  bool strides_by_grid = false;
  /// By axis: the number of the block is multiplied by its size, as in blockIdx.x * blockDim.x +
  /// threadIdx.x. So blocks of another size need another grid. Otherwise the grid has a block for
  /// each item of work, e.g. for each row, and stays.
  std::array<bool, 3> block_scales_index = {};
};

/// The analysis follows registers without regard to order, so that it may name too many pointers,
/// and, where it is complete, never too few. `block`: threads of a block along each axis, which the
/// kernel may have as constants.
KernelAccesses FindAccesses(const ptx::Function& kernel, const Dim3& block);

/// The element type that all of these accesses agree on; nullopt if they do not. Of 16-bit types
/// PTX tells only the size.
std::optional<DType> ElementTypeOf(const PointerUse& use);

}  // namespace atunner
