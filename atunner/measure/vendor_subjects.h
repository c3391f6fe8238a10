// The vendor libraries' subjects, one file each; vendor.cpp says who does what.
#pragma once

#include <memory>

#include "atunner/measure/harness.h"

namespace atunner {

/// The libraries' sizes are ints.
Status CheckExtents(const char* library, const KernelSpec& spec);
void* PointerTo(const TaskBuffers& buffers, const char* name);

Result<std::unique_ptr<Subject>> MakeCublasMatmul(TimedDevice& device, const KernelSpec& spec);
/// Channels last; the fastest of the library's algorithms, by its own measurement. float32 is
/// computed in float32, without TF32.
Result<std::unique_ptr<Subject>> MakeCudnnConvolution(TimedDevice& device, const KernelSpec& spec);
/// `softmax` and `softmax_backward`.
Result<std::unique_ptr<Subject>> MakeCudnnSoftmax(TimedDevice& device, const KernelSpec& spec);

}  // namespace atunner
