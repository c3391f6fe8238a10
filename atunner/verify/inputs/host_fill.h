// Inputs whose contents the host provides: a file of raw elements, or an expression of the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// True for kFile, kGenerator and kBlob.
bool FillsFromHost(const Fill& fill);

/// Resolves a fill that depends on the problem's sizes (random indices, offsets) into one that the
/// judge's kernels or HostFill can make; returns other fills unchanged. kInvalidInput if its
/// expression has no value. Example: indices below `rows` become uniform integers in [0, 4096).
Result<Fill> BindFill(const ArgSpec& arg, const KernelSpec& spec, const Dims& dims,
                      int64_t elements);

/// The first `elements` elements of such an argument, in the argument's dtype.
/// kInvalidInput for a file that is too short and for an expression without a value at some index;
/// else the errors of ReadFile.
Result<std::vector<std::byte>> HostFill(const ArgSpec& arg, uint64_t elements);

/// Changes each float by up to a quarter of itself: zeros, signs and magnitudes stay.
void Vary(DType dtype, uint64_t seed, std::span<std::byte> data);

}  // namespace atunner
