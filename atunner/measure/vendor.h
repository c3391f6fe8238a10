// Vendor libraries as baselines, opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/measure/harness.h"

namespace atunner {

/// Names of the libraries that compute such tasks, e.g. "cuBLAS" for matmul.
std::vector<std::string> VendorNames(const KernelSpec& spec);

/// The library's call for the task. kUnavailable if the library is missing, kUnsupported if it does
/// not compute this task.
Result<std::unique_ptr<TimedKernel>> MakeVendorKernel(const std::string& name, TimedDevice& device,
                                                      const KernelSpec& spec);

}  // namespace atunner
