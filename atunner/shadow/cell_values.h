// What the cells of a value in memory mean; on the host. The same rules as PTX: cell_text.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "atunner/model/value/dtype.h"
#include "atunner/ptx/module.h"
#include "atunner/shadow/shadow_space.h"

namespace atunner::shadow {

/// The constant of a shadow module that holds the arena's address, its bytes, the address of its
/// cells, the address of the cells of shared memory and their bytes per block.
constexpr std::string_view kSymbol = "atunner_shadow_space";
constexpr size_t kSymbolWords = 5;

/// `Cell::rounded` of memory that float atomics add to; `Cell::bits` is then the type.
constexpr uint32_t kAtomicMark = 0x5eedf10a;
constexpr uint32_t kAtomicFloat32 = 1, kAtomicFloat16 = 2, kAtomicBFloat16 = 3, kAtomicFloat64 = 4;

/// The mark of an element's type; 0 for types that atomics do not add.
constexpr uint32_t AtomicKindOf(ptx::Type type) {
  return type == ptx::Type::kF32    ? kAtomicFloat32
         : type == ptx::Type::kF16  ? kAtomicFloat16
         : type == ptx::Type::kBF16 ? kAtomicBFloat16
         : type == ptx::Type::kF64  ? kAtomicFloat64
                                    : 0;
}

/// The twin of a float in memory at `bits`, whose first cell is `cells`; the value in memory where
/// the cells do not count.
double TwinOf(DType type, const std::byte* bits, const Cell* cells);

}  // namespace atunner::shadow
