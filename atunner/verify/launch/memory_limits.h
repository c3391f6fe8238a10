// How much device memory the judge takes beside a task's own tensors.
//
// Most tasks are small, and memory buys time: references of all inputs stay, and two sets of
// buffers differ in every pointer. A task of 1 GB and more leaves no room for that on a GPU of 80
// GB: its second set of buffers lies in the memory of the first, and its reference is computed in
// parts wherever it is compared. docs/verification.md ("Large tasks") has all rules.
#pragma once

#include <cstdint>

#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

struct MemoryLimits {
  /// Tasks of so many bytes and more are large. The virtual GPU executes none whole.
  double large_bytes = 1e9;
  /// Beside a large task's tensors the judge takes as much as these, and so many bytes.
  uint64_t more_bytes = uint64_t{2} << 30;

  bool IsLarge(const Device& device, const KernelSpec& spec, const Dims& dims) const;
  /// Bytes that the judge may take beside the tensors of a task of this size, if it is large.
  uint64_t Extra(const KernelSpec& spec, const Dims& dims) const;
};

}  // namespace atunner
