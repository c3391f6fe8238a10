// Sizes of blocks and grids with which a captured kernel may be launched, as its indexing allows.
// Whether it is right with them is for the judge to say.
#pragma once

#include "atunner/intake/captured/access_types.h"
#include "atunner/intake/user_kernel.h"

namespace atunner {

/// A launch as the program makes it.
struct GivenLaunch {
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
};

/// Why the block cannot be free, "" if it can: every axis along which it has several threads must
/// be read by the kernel.
std::string BlockObstacle(const KernelAccesses& accesses, const GivenLaunch& given);

/// Makes the block of the kernel's only step free, block_x, block_y, block_z, with as many blocks
/// as cover the same threads along axes where the kernel numbers threads over the whole grid.
/// Dynamic shared memory of so many bytes a thread follows. Also makes the grid of a grid-stride
/// loop free: grid_quarters.
void FreeLaunch(UserKernel& kernel, const KernelAccesses& accesses, const GivenLaunch& given);

/// Removes what FreeLaunch added. True if there was anything.
bool FixLaunch(UserKernel& kernel, const GivenLaunch& given);

/// Appends a parameter with its injection and the value that the program has.
void AddParameter(UserKernel& kernel, Parameter parameter, Value initial, Injection injection);

}  // namespace atunner
