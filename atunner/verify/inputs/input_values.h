// Which values a tensor gets in an instance of the inputs, as the judge's fill kernel takes it.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/verify/inputs/input_family.h"
#include "kernels/judge/judge_arguments.h"

namespace atunner {

/// The fill of one tensor, except addresses. `position` is the argument's index in the spec. Fills
/// from files and expressions are not made here (HostFill).
///
/// A stated fill is a promise to the kernel: uniform values keep within their range in every
/// family, and constants and 0, 1, 2, … are themselves but in InputFamily::kVariedFill.
judge::Fill FillOf(const ArgSpec& arg, uint64_t elements, size_t position,
                   const InputInstance& instance);

/// Bits of the mined values that the tensor may get beside what `fill` draws: those of the type
/// that keep to a stated range. None where the fill is another promise.
std::vector<uint64_t> MinedBitsFor(const MinedValues& values, DType dtype, const judge::Fill& fill);

/// True if some input of the task gets a mined value.
bool AnyMined(const MinedValues& values, const KernelSpec& spec, const Dims& dims);

/// What stands in for a constant, zero or ascending fill in the instance that varies it: other
/// numbers of the type and of similar size. kIota stays kIota; the kernel permutes it.
Fill VariedFill(const ArgSpec& arg);

/// True for a fill that InputFamily::kVariedFill changes.
bool CanVary(const ArgSpec& arg);

/// Integers of an unstated range as ordinary drawings have them, as a stated range: small and,
/// where possible, of both signs.
Fill OrdinaryIntegers(const ArgSpec& arg);

}  // namespace atunner
