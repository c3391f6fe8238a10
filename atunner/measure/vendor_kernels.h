// The calls of each vendor library, one file per library; vendor.cpp has the table of tasks.
#pragma once

#include <memory>

#include "atunner/measure/harness.h"

namespace atunner {

/// kUnsupported if a size does not fit into the int that the libraries take.
Status CheckExtents(const char* library, const KernelSpec& spec);
/// Device address of a tensor as the libraries take it.
void* PointerTo(const TaskBuffers& buffers, const char* name);

Result<std::unique_ptr<TimedKernel>> MakeCublasMatmul(TimedDevice& device, const KernelSpec& spec);
/// NHWC convolution by the library's fastest algorithm, as cudnnFindConvolutionForwardAlgorithm
/// times them. float32 is computed without TF32.
Result<std::unique_ptr<TimedKernel>> MakeCudnnConvolution(TimedDevice& device,
                                                          const KernelSpec& spec);
/// Serves the operators `softmax` and `softmax_backward`.
Result<std::unique_ptr<TimedKernel>> MakeCudnnSoftmax(TimedDevice& device, const KernelSpec& spec);

}  // namespace atunner
