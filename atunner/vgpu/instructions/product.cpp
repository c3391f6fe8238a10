#include "atunner/vgpu/instructions/product.h"

#include <algorithm>
#include <array>

#include "atunner/vgpu/instructions/handlers.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "atunner/model/value/dtype.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Floats at any address.
using Eight = float __attribute__((vector_size(32), aligned(4), may_alias));
using Four = float __attribute__((vector_size(16), aligned(4), may_alias));

constexpr int kWidest = kChunkBytes * 8;  // elements of a chunk of single bits

// ---- widening
template <TensorElement kElement>
void Widen(const std::byte* chunk, float* to) {
  if constexpr (kElement == TensorElement::kF16) {
#ifdef __F16C__
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(chunk))));
#else
    uint16_t bits[8];
    std::memcpy(bits, chunk, sizeof bits);
    for (int i = 0; i < 8; ++i) to[i] = HalfToFloat(bits[i]);
#endif
  } else if constexpr (kElement == TensorElement::kBF16) {
    uint16_t bits[8];
    std::memcpy(bits, chunk, sizeof bits);
    for (int i = 0; i < 8; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]) << 16);
  } else if constexpr (kElement == TensorElement::kTF32) {
    uint32_t bits[4];
    std::memcpy(bits, chunk, sizeof bits);
    // hardware ignores the low bits
    for (int i = 0; i < 4; ++i) to[i] = std::bit_cast<float>(bits[i] & 0xffffe000u);
  } else if constexpr (kElement == TensorElement::kS8 || kElement == TensorElement::kU8) {
    using T = std::conditional_t<kElement == TensorElement::kS8, int8_t, uint8_t>;
    T values[16];
    std::memcpy(values, chunk, sizeof values);
    for (int i = 0; i < 16; ++i) to[i] = static_cast<float>(values[i]);
  } else if constexpr (kElement == TensorElement::kS4 || kElement == TensorElement::kU4) {
    for (int i = 0; i < 32; ++i) {
      const auto nibble = static_cast<int>(static_cast<uint8_t>(chunk[i / 2]) >> (4 * (i % 2)) &
                                           15u);
      to[i] = static_cast<float>(kElement == TensorElement::kS4 && nibble > 7 ? nibble - 16
                                                                              : nibble);
    }
  } else if constexpr (kElement == TensorElement::kB1) {
    for (int i = 0; i < kWidest; ++i)
      to[i] = static_cast<float>(static_cast<uint8_t>(chunk[i / 8]) >> (i % 8) & 1u);
  } else {
    static const std::array<float, 256> values = [] {
      std::array<float, 256> table{};
      const auto type = kElement == TensorElement::kE4M3 ? ptx::Type::kE4M3x2 : ptx::Type::kE5M2x2;
      for (uint32_t bits = 0; bits < table.size(); ++bits) table[bits] = WidenFp8(type, bits);
      return table;
    }();
    for (int i = 0; i < 16; ++i) to[i] = values[static_cast<uint8_t>(chunk[i])];
  }
}

template <TensorElement kElement>
void WidenAll(const std::byte* const* chunks, int count, float* to) {
  constexpr int kPer = kElement == TensorElement::kTF32                                      ? 4
                       : kElement == TensorElement::kF16 || kElement == TensorElement::kBF16 ? 8
                       : kElement == TensorElement::kS4 || kElement == TensorElement::kU4    ? 32
                       : kElement == TensorElement::kB1 ? kWidest
                                                        : 16;
  for (int i = 0; i < count; ++i) Widen<kElement>(chunks[i], to + i * kPer);
}

using WidenChunks = void (*)(const std::byte* const* chunks, int count, float* to);
struct ElementRow {
  std::string_view name;
  int bits;
  WidenChunks widen;
};
/// In the order of TensorElement.
constexpr ElementRow kElements[] = {
    {"f16", 16, WidenAll<TensorElement::kF16>},   {"bf16", 16, WidenAll<TensorElement::kBF16>},
    {"tf32", 32, WidenAll<TensorElement::kTF32>}, {"e4m3", 8, WidenAll<TensorElement::kE4M3>},
    {"e5m2", 8, WidenAll<TensorElement::kE5M2>},  {"s8", 8, WidenAll<TensorElement::kS8>},
    {"u8", 8, WidenAll<TensorElement::kU8>},      {"s4", 4, WidenAll<TensorElement::kS4>},
    {"u4", 4, WidenAll<TensorElement::kU4>},      {"b1", 1, WidenAll<TensorElement::kB1>},
};
const ElementRow& RowOf(TensorElement element) { return kElements[static_cast<size_t>(element)]; }

// ---- multiplying
/// Moves the even ones of eight columns to the front: an accumulator register holds every other
/// column.
void EvenFirst(Eight& v) { v = __builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7); }

/// Eight rows of eight become eight columns.
void Transpose(const Eight (&r)[8], Eight (&t)[8]) {
  Eight low[4];
  Eight high[4];
  for (int i = 0; i < 4; ++i) {
    low[i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    high[i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  Eight q[8];
  for (int i = 0; i < 2; ++i) {
    q[4 * i] = __builtin_shufflevector(low[2 * i], low[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
    q[4 * i + 1] = __builtin_shufflevector(low[2 * i], low[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    q[4 * i + 2] = __builtin_shufflevector(high[2 * i], high[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
    q[4 * i + 3] = __builtin_shufflevector(high[2 * i], high[2 * i + 1], 2, 3, 10, 11, 6, 7, 14,
                                           15);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = __builtin_shufflevector(q[i], q[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    t[i + 4] = __builtin_shufflevector(q[i], q[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// c + v, rounded towards zero as tensor cores do. The sign of sum - c - v, which is exact in
/// float32 (Knuth), says in which direction the sum was rounded.
Four CutSum(const Four& c, const Four& v) {
  using Words = int32_t __attribute__((vector_size(16)));
  const Four sum = c + v;
  const Four taken = sum - c;
  const Four rest = (c - (sum - taken)) + (v - taken);
  const Words away = ((rest < 0) & (sum > 0)) | ((rest > 0) & (sum < 0));
  const Words cut = std::bit_cast<Words>(sum) + away;  // -1 where it was rounded away from zero
  return std::bit_cast<Four>(cut);
}

/// Adds eight sums of one row, even columns first, to the lanes of the accumulators that hold them.
template <Accumulator kKind>
[[gnu::always_inline]] inline void AddRow(const TileProduct& p, int row, int block,
                                          const Eight& sums) {
  const size_t half = p.m == 8 ? 0 : static_cast<size_t>(row % 16 / 8);
  const size_t halves = p.m == 8 ? 1 : 2;
  const size_t first = static_cast<size_t>(row / 16) * p.RegistersPerWarp();
  const int lane = 4 * (row % 8);
  if constexpr (kKind == Accumulator::kF16) {
    const size_t at = first + static_cast<size_t>(block) * halves + half;
    for (int t = 0; t < 4; ++t) {
      const uint32_t c = p.add ? p.c[at][lane + t] : 0;
      const float low = sums[t] + HalfToFloat(static_cast<uint16_t>(c));
      const float high = sums[t + 4] + HalfToFloat(static_cast<uint16_t>(c >> 16));
      p.d[at][lane + t] = FloatToHalf(low) | static_cast<uint32_t>(FloatToHalf(high)) << 16;
    }
    return;
  }
  const size_t at = first + 2 * (static_cast<size_t>(block) * halves + half);
  const Four parts[2] = {__builtin_shufflevector(sums, sums, 0, 1, 2, 3),
                         __builtin_shufflevector(sums, sums, 4, 5, 6, 7)};
  for (size_t e = 0; e < 2; ++e) {
    const uint32_t* c = p.c[at + e] + lane;
    uint32_t* d = p.d[at + e] + lane;
    if constexpr (kKind == Accumulator::kF32) {
      *reinterpret_cast<Four*>(d) = p.add ? CutSum(*reinterpret_cast<const Four*>(c), parts[e])
                                          : parts[e];
      continue;
    }
    for (int t = 0; t < 4; ++t) {
      const int64_t wide = (p.add ? static_cast<int32_t>(c[t]) : 0) +
                           static_cast<int64_t>(parts[e][t]);
      d[t] = static_cast<uint32_t>(
          kKind == Accumulator::kS32 ? wide : std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
    }
  }
}

/// kRows rows and kBlocks times eight columns at once, so that the sums stay in the processor's
/// registers.
template <Accumulator kKind, bool kSparse, int kRows, int kBlocks>
void MultiplyPanel(const TileProduct& p, int block) {
  for (int row = 0; row < p.m; row += kRows) {
    const float* a = p.a + row * p.k;
    const float* b = p.b + 8 * block;
    Eight sums[kRows][kBlocks];
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kBlocks; ++j) sums[r][j] = Eight{};
    }
    for (int k = 0; k < p.k; ++k, ++a, b += p.n) {
      Eight columns[kBlocks];
      for (int j = 0; j < kBlocks; ++j) columns[j] = *reinterpret_cast<const Eight*>(b + 8 * j);
      for (int r = 0; r < kRows; ++r) {
        if (kSparse && IsAbsent(a[r * p.k])) continue;
        for (int j = 0; j < kBlocks; ++j) sums[r][j] += a[r * p.k] * columns[j];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kBlocks; ++j)
        AddRow<kKind>(p, row + r, block + j, p.subtract ? Eight{} - sums[r][j] : sums[r][j]);
    }
  }
}

template <Accumulator kKind, bool kSparse>
void MultiplyBlocks(const TileProduct& p) {
  int block = 0;
  for (; block + 2 <= p.n / 8; block += 2) MultiplyPanel<kKind, kSparse, 4, 2>(p, block);
  if (block < p.n / 8) MultiplyPanel<kKind, kSparse, 8, 1>(p, block);
}
template <Accumulator kKind>
void MultiplyAs(const TileProduct& p) {
  p.sparse ? MultiplyBlocks<kKind, true>(p) : MultiplyBlocks<kKind, false>(p);
}

}  // namespace

std::optional<TensorElement> FindTensorElement(std::string_view name) {
  const auto at = std::ranges::find(kElements, name, &ElementRow::name);
  if (at == std::end(kElements)) return std::nullopt;
  return static_cast<TensorElement>(at - std::begin(kElements));
}

int BitsOf(TensorElement element) { return RowOf(element).bits; }

std::optional<Accumulator> AccumulatorOf(std::string_view type, TensorElement a, TensorElement b,
                                         bool saturate) {
  const int bits = BitsOf(a);
  const bool integer = a >= TensorElement::kS8;
  if (bits != BitsOf(b) || integer != (b >= TensorElement::kS8) || (bits >= 16 && a != b))
    return std::nullopt;
  if (integer != (type == "s32")) return std::nullopt;
  if (integer) return saturate ? Accumulator::kS32Saturating : Accumulator::kS32;
  if (type == "f32") return Accumulator::kF32;
  const bool narrow = a == TensorElement::kF16 || bits == 8;
  return type == "f16" && narrow ? std::optional(Accumulator::kF16) : std::nullopt;
}

void WidenRows(TensorElement element, const std::byte* const* chunks, int rows, int row_chunks,
               float* to) {
  RowOf(element).widen(chunks, rows * row_chunks, to);
}

void WidenTransposedA(TensorElement element, const std::byte* const* chunks, int m, int k,
                      float* to) {
  float column[kWidest];
  for (int i = 0; i < k * (m / 8); ++i) {
    RowOf(element).widen(chunks + i, 1, column);
    float* first = to + i % (m / 8) * 8 * k + i / (m / 8);
    for (int r = 0; r < 8; ++r) first[r * k] = column[r];
  }
}

void WidenTransposedB(TensorElement element, const std::byte* const* chunks, int n, int k,
                      float* to) {
  RowOf(element).widen(chunks, k * (n / 8), to);
  for (int i = 0; i < k * n; i += 8) EvenFirst(*reinterpret_cast<Eight*>(to + i));
}

void ArrangeB(const float* rows, int n, int k, float* to) {
  for (int block = 0; block < n; block += 8) {
    for (int k0 = 0; k0 < k; k0 += 8) {
      Eight r[8];
      Eight t[8];
      for (int i = 0; i < 8; ++i)
        r[i] = *reinterpret_cast<const Eight*>(rows + (block + i % 4 * 2 + i / 4) * k + k0);
      Transpose(r, t);
      for (int i = 0; i < 8; ++i) *reinterpret_cast<Eight*>(to + (k0 + i) * n + block) = t[i];
    }
  }
}

int SparseIndices::Column(int row, int stored) const {
  if (bits_ == 32) return 2 * stored + static_cast<int>(Index(row, 2 * stored) >> 1);
  if (bits_ == 4) return stored / 4 * 8 + static_cast<int>(2 * Index(row, stored / 2)) + stored % 2;
  return stored / 2 * 4 + static_cast<int>(Index(row, stored));
}

/// The `i`-th index of a row. Rows of wide elements have them 16 bits at a time, those of rows 0 to
/// 7 in the lower half of a lane's word; rows of 8 and 4 bits a word at a time.
uint32_t SparseIndices::Index(int row, int i) const {
  const int lane = row % 8 * 4;
  const int all = k_ * 2 / (bits_ == 32 ? 1 : bits_ == 4 ? 4 : 2);  // bits of one row
  if (bits_ >= 16) {
    const uint32_t word = words_[lane + selector_ * (all / 16) + i / 8];
    return word >> (row / 8 * 16 + i % 8 * 2) & 3u;
  }
  return words_[lane + (all == 32 ? 2 * selector_ : i / 16 * 2) + row / 8] >> (i % 16 * 2) & 3u;
}

void Spread(const SparseIndices& indices, const float* stored, int k, float* dense) {
  std::fill(dense, dense + 16 * k, std::bit_cast<float>(kAbsent));
  for (int row = 0; row < 16; ++row) {
    for (int i = 0; i < k / 2; ++i)
      dense[row * k + indices.Column(row, i)] = stored[row * (k / 2) + i];
  }
}

void MultiplyTile(const TileProduct& p) {
  switch (p.kind) {
    case Accumulator::kF32:
      return MultiplyAs<Accumulator::kF32>(p);
    case Accumulator::kF16:
      return MultiplyAs<Accumulator::kF16>(p);
    case Accumulator::kS32:
      return MultiplyAs<Accumulator::kS32>(p);
    case Accumulator::kS32Saturating:
      return MultiplyAs<Accumulator::kS32Saturating>(p);
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
