// What a load looks at of what it reads.
#pragma once

#include <cstdint>

#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

constexpr uint64_t kAllBytes = ~uint64_t{0};

/// Bits of the bytes of each lane that the load `op` reads and the program looks at; kAllBytes, unless the compiler
/// says that it widened the load (.pragma "used_bytes_mask").
uint64_t UsedBytes(const Kernel& kernel, const Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
