// Dense products of small tiles, for mma and wgmma. Elements are widened to float32 and multiplied
// there.
//
// Rounding: a product of two elements has at most 22 significant bits, so it is exact in float32.
// The products of one instruction are summed in float32 in the order of k, each sum rounded to
// nearest; the total is added to C in float32 and cut off towards zero: long sums drift towards
// zero as they do on tensor cores. An H200's wgmma aligns C and all products of an instruction to
// the largest exponent, cuts each off two bits below C's last one, and the sum at 24 bits. Sums of
// integers stay below 2²⁴, so they are exact.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

enum class TensorElement : uint8_t { kF16, kBF16, kTF32, kE4M3, kE5M2, kS8, kU8, kS4, kU4, kB1 };
std::optional<TensorElement> FindTensorElement(std::string_view name);
int BitsOf(TensorElement element);

/// Fragments and rows of matrices come in chunks of 16 bytes: neighbours along k, or along m or n
/// where transposed.
constexpr int kChunkBytes = 16;
inline int PerChunk(TensorElement element) { return kChunkBytes * 8 / BitsOf(element); }

/// Chunk `c` of row `r` is chunks[r * row_chunks + c]; writes to[r][k] with row_chunks · PerChunk
/// elements per row.
void WidenRows(TensorElement element, const std::byte* const* chunks, int rows, int row_chunks,
               float* to);
/// A of 16-bit elements that are neighbours along m: chunk `c` at `k` is chunks[k * (m / 8) + c];
/// writes to[m][k].
void WidenTransposedA(TensorElement element, const std::byte* const* chunks, int m, int k,
                      float* to);
/// The same for B along n, in the order that MultiplyTile reads.
void WidenTransposedB(TensorElement element, const std::byte* const* chunks, int n, int k,
                      float* to);
/// From rows[n][k] to the order that MultiplyTile reads; k is a multiple of 8.
void ArrangeB(const float* rows, int n, int k, float* to);

/// Expands a sparse A of sixteen rows. For each four elements (two of TF32, eight of 4 bits in
/// pairs) two indices of two bits say which are stored. Some lanes of the warp, chosen by
/// `selector`, hold the indices in a register.
class SparseIndices {
 public:
  SparseIndices(TensorElement a, int k, int selector, const uint32_t* words)
      : bits_(BitsOf(a)), k_(k), selector_(selector), words_(words) {}
  int Column(int row, int stored) const;

 private:
  uint32_t Index(int row, int i) const;

  int bits_, k_, selector_;
  const uint32_t* words_;
};

/// Marks a missing element of a sparse A: the element of B there has no effect, even if it is
/// infinite or NaN (as on an H200 with 8-bit floats). No element is widened to this NaN.
constexpr uint32_t kAbsent = 0x7fa5a5a5u;
inline bool IsAbsent(float a) { return std::bit_cast<uint32_t>(a) == kAbsent; }
/// From stored[row][k / 2] to dense[row][k] of sixteen rows, with absent ones between.
void Spread(const SparseIndices& indices, const float* stored, int k, float* dense);

enum class Accumulator : uint8_t { kF32, kF16, kS32, kS32Saturating };
/// The accumulator of type "f32", "f16" or "s32"; nullopt if it does not fit the elements of A and
/// B.
std::optional<Accumulator> AccumulatorOf(std::string_view type, TensorElement a, TensorElement b,
                                         bool saturate);

struct TileProduct {
  int m = 16;  ///< 8, or a multiple of 16
  int n = 8;
  int k = 16;
  const float* a = nullptr;  ///< [m][k]
  const float* b = nullptr;  ///< from ArrangeB or WidenTransposedB
  int least_a = 0;           ///< MultiplyTileOfFp8: LeastPower of the elements
  int least_b = 0;
  bool sparse = false;  ///< elements of A may be absent
  bool subtract = false;
  bool add = true;  ///< false: C counts as zero
  Accumulator kind = Accumulator::kF32;
  /// Registers of the fragment, those of 16 rows (a warp's) after the other
  uint32_t* const* d = nullptr;
  const uint32_t* const* c = nullptr;  ///< likewise

  size_t RegistersPerWarp() const {
    return static_cast<size_t>(n / 2 / (m == 8 ? 2 : 1) / (kind == Accumulator::kF16 ? 2 : 1));
  }
};
/// D = C ± A·B.
void MultiplyTile(const TileProduct& p);
/// The same for 8-bit floats with sums in float32, for a multiple of 16 rows, with the reduced
/// precision that Hopper's wgmma keeps.
void MultiplyTileOfFp8(const TileProduct& p);
/// The biased exponent of the smallest normal number of an 8-bit float; 0 of other elements.
inline int LeastPower(TensorElement element) {
  return element == TensorElement::kE4M3 ? 121 : element == TensorElement::kE5M2 ? 113 : 0;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
