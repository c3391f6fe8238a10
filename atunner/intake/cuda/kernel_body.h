// What a kernel's body tells about its arguments and about how free its launch is.
#pragma once

#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// kInput, kOutput or kInOut, from the uses of a pointer parameter. A pointer that escapes (passed
/// on, aliased) counts as read and written unless it points to const.
Role RoleOf(const CudaSyntax& syntax, const KernelDefinition& kernel,
            const KernelParameter& parameter);

/// Does the body read `name.axis` ("blockDim", "x")?
bool Reads(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name,
           std::string_view axis);
/// Is the name used in the head or the body?
bool Uses(const CudaSyntax& syntax, const KernelDefinition& kernel, std::string_view name);
/// Text of a static shared array's extent that none of `free_names` decides: it hard-wires a block
/// size. Not an array of 32, which has an element per warp, nor one that the threads stride over.
std::optional<std::string> FixedSharedArray(const CudaSyntax& syntax,
                                            const KernelDefinition& kernel,
                                            const std::vector<std::string>& free_names);
/// Has the body "+= blockDim.x", by which the threads of a block stride over what is theirs,
/// however many they are?
bool StridesByBlock(const CudaSyntax& syntax, const KernelDefinition& kernel,
                    std::string_view axis);
/// Has the body "blockDim.x * gridDim.x", by which a loop strides over a problem of any size?
bool StridesByGrid(const CudaSyntax& syntax, const KernelDefinition& kernel);
/// N of __launch_bounds__(N, …) as written; empty without one.
std::string LaunchBound(const CudaSyntax& syntax, const KernelDefinition& kernel);

/// The first launch of a kernel; null when the source launches it nowhere.
const KernelLaunch* FindLaunch(const CudaSyntax& syntax, const KernelDefinition& kernel);
/// Whether a type is a structure, of the source or of the runtime's.
bool IsStructure(const CudaSyntax& syntax, const std::string& type);

}  // namespace atunner
