// Inputs whose contents come from the host: a file of raw elements, or an expression of the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

bool FillsFromHost(const Fill& fill);

/// A fill whose values depend on the problem's sizes as one of what the judge's kernels or HostFill
/// know; any other as it is. kInvalidInput where its expression has no value.
Result<Fill> BindFill(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims,
                      int64_t elements);

/// The first `elements` elements of a kFile or kGenerator argument. As ReadFile; kInvalidInput for
/// a file that is too short and for an expression without a value at some index.
Result<std::vector<std::byte>> HostFill(const ArgSpec& arg, uint64_t elements);

}  // namespace atunner
