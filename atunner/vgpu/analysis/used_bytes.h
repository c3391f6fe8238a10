// Static analysis of loads: which of the loaded bytes the code uses, and whether it only copies
// them.
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

/// Where a loaded value goes that is only moved, selected and stored.
enum class Copied : uint8_t { kNo, kAnywhere, kWithinBlock };  // in this order

/// The same for every register of a function. `uses`: those of its instructions.
std::vector<Copied> CopiesOf(const ptx::Function& function, const std::vector<Use>& uses);
/// The same for element `element` of the load `op`. Structs are copied with their padding.
Copied OnlyCopied(const Kernel& kernel, const Op& op, uint32_t element);

/// True if a load of one register from what may be the stack may read unwritten bytes. Unoptimised
/// code copies structs piece by piece, and inserts bit fields into words that are not yet written.
bool MayReadUnwritten(const ptx::Function& function, const std::vector<Use>& uses,
                      const std::vector<Copied>& copies, size_t load);
bool MayReadUnwritten(const Kernel& kernel, const Op& op);

/// True if the load `op` reads several single bytes and only copies them: they may be a struct's
/// padding if the byte before was written.
bool CopiesPieces(BlockState& x, const Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
