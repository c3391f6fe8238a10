// What a load looks at of what it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "atunner/vgpu/analysis/body_flow.h"
#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

constexpr uint64_t kAllBytes = ~uint64_t{0};

/// The function that an operation is of, if its instruction is known.
const Code* CodeOf(const Kernel& kernel, const Op& op);

/// Bits of the bytes of each lane that the load `op` reads and the program looks at; kAllBytes,
/// unless the compiler says that it widened the load (.pragma "used_bytes_mask").
uint64_t UsedBytes(const Kernel& kernel, const Op& op);

/// What becomes of a loaded value that is moved, chosen and stored, and nothing else.
enum class Copied : uint8_t { kNo, kAnywhere, kWithinBlock };  // in this order

/// Of every register of a function; `uses` are its instructions'.
std::vector<Copied> CopiesOf(const ptx::Function& function, const std::vector<Use>& uses);
/// Element `element` of what the load `op` reads. Structs are copied with their padding.
Copied OnlyCopied(const Kernel& kernel, const Op& op, uint32_t element);

/// Of a load of one register from where the stack may be: whether it may read what nothing was
/// written to. Code that was not optimised copies structs piece by piece, and inserts bit fields
/// into words of which it has written none yet.
bool MayReadUnwritten(const ptx::Function& function, const std::vector<Use>& uses,
                      const std::vector<Copied>& copies, size_t load);
bool MayReadUnwritten(const Kernel& kernel, const Op& op);

/// Whether the load `op` reads a few bytes one by one and only copies them: a struct's padding,
/// where the byte before was written.
bool CopiesPieces(BlockState& x, const Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
