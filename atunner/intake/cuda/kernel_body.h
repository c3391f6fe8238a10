// Facts that a kernel's body reveals: the roles of its arguments and whether its launch may vary.
#pragma once

#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// The role of a pointer parameter by its uses. A pointer that escapes (is passed on or aliased)
/// counts as read and written unless it points to const.
Role RoleOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
            const KernelParameter& parameter);

/// True if the body reads `name.axis`, e.g. blockDim.x.
bool Reads(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name,
           std::string_view axis);
/// True if the name is used in the kernel's head or body.
bool Uses(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name);
/// The extent of a static shared array that depends on none of `free_names` and therefore fixes the
/// block size; nullopt if there is none. Arrays of 32 (an element per warp) and arrays over which
/// the threads stride do not count.
std::optional<std::string> FixedSharedArray(const CudaSyntax& syntax,
                                            const KernelDefinition& kernel,
                                            const std::vector<std::string>& free_names);
/// True if a loop of the body advances by blockDim.axis: the threads of a block stride over their
/// data, and any block size is right.
bool StridesByBlock(const CudaSyntax& syntax, const KernelDefinition& kernel,
                    std::string_view axis);
/// True if the body has a grid-stride loop (blockDim.x * gridDim.x): any number of blocks is right.
bool StridesByGrid(const CudaSyntax& syntax, const KernelDefinition& kernel);
/// The text of N in __launch_bounds__(N, …); "" if there is none.
std::string LaunchBound(const CudaSyntax& syntax, const KernelDefinition& kernel);

/// The first launch of a kernel; nullptr if the source does not launch it.
const KernelLaunch* FindLaunch(const CudaSyntax& syntax, const KernelDefinition& kernel);

}  // namespace atunner
