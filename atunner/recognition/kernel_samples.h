// Runs of a kernel at one problem size, with different random inputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::recognition {

/// Contents of the tensors of a task, as float64, by name.
using Contents = std::map<std::string, std::vector<double>>;

struct Sample {
  Contents before;  ///< pure outputs are NaN or, of integers, -1
  Contents after;
};

struct Samples {
  std::vector<Sample> runs;
  Sample infinities;  ///< some inputs are infinite, so that results are infinite or NaN
  bool whole = true;  ///< all blocks ran; else some of them did
};

/// One run each with ordinary, small, and positive inputs, and one with infinities. Of a kernel
/// that takes more than about a second on the virtual GPU a few blocks run. kInvalidInput where the
/// kernel does not compile or complete, and where even these take too long.
Result<Samples> RunSamples(const RenderedKernel& kernel, const KernelSpec& spec, const Dims& dims,
                           Device& device, Compiler& compiler);

}  // namespace atunner::recognition
