// Vendor libraries as baselines, opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/measure/harness.h"

namespace atunner {

/// Libraries that could do the task ("cuBLAS" for matmul).
std::vector<std::string> VendorNames(const KernelSpec& spec);

/// kUnavailable when the library is missing, kUnsupported when it does not do this task.
Result<std::unique_ptr<Subject>> MakeVendorSubject(const std::string& name, TimedDevice& device,
                                                   const KernelSpec& spec);

}  // namespace atunner
