// Tensor-core products of one warp, mma.sync. Layouts are those of the PTX ISA's fragment tables.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "atunner/model/dtype.h"
#include "atunner/vgpu/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

int32_t ListSlot(const Exec& x, const Op& op, int i) { return x.kernel->lists[op.list + static_cast<size_t>(i)]; }

template <bool kBrain>
float WidenHalf(uint32_t word, int half) {
  const auto bits = static_cast<uint16_t>(word >> (16 * half));
  if constexpr (kBrain) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  return HalfToFloat(bits);
#endif
}

/// Products of one warp. `kA`-registers hold A (row), then B (col), then C; D goes to the first four or two slots.
template <int kK>
struct Tile {  // float64, where the products are exact and the sums nearly so
  double a[16][kK];
  double b[kK][8];
};

template <int kK>
void MultiplyTile(const Tile<kK>& t, float (&c)[16][8]) {
  // Four rows at a time hide the latency of the additions. Rounded once: more exact than the hardware, whose order and
  // truncation are not documented.
  for (int i = 0; i < 16; i += 4) {
    double sum[4][8] = {};
    for (int k = 0; k < kK; ++k) {
      for (int r = 0; r < 4; ++r) {
        for (int j = 0; j < 8; ++j) sum[r][j] += t.a[i + r][k] * t.b[k][j];
      }
    }
    for (int r = 0; r < 4; ++r) {
      for (int j = 0; j < 8; ++j) c[i + r][j] = static_cast<float>(sum[r][j] + static_cast<double>(c[i + r][j]));
    }
  }
}

template <bool kBrain, int kK>
void LoadHalfTile(const Exec& x, const Op& op, int first, Tile<kK>& t) {
  constexpr int kARegs = kK / 4;
  constexpr int kBRegs = kK / 8;
  for (int r = 0; r < kARegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, first + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int h = 0; h < 2; ++h) t.a[l / 4 + 8 * (r & 1)][(l % 4) * 2 + h + 8 * (r >> 1)] = WidenHalf<kBrain>(s[l], h);
    }
  }
  for (int r = 0; r < kBRegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, first + kARegs + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int h = 0; h < 2; ++h) t.b[(l % 4) * 2 + h + 8 * r][l / 4] = WidenHalf<kBrain>(s[l], h);
    }
  }
}

void LoadAccumulator(const Exec& x, const Op& op, int first, bool half, float (&c)[16][8]) {
  for (int r = 0; r < (half ? 2 : 4); ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, first + r));
    for (int l = 0; l < kLanes; ++l) {
      if (half) {
        for (int h = 0; h < 2; ++h) c[l / 4 + 8 * r][(l % 4) * 2 + h] = WidenHalf<false>(s[l], h);
      } else {
        c[l / 4 + 8 * (r >> 1)][(l % 4) * 2 + (r & 1)] = Lane<float>::Get(s, l);
      }
    }
  }
}

void StoreAccumulator(Exec& x, const Op& op, bool half, const float (&c)[16][8]) {
  for (int r = 0; r < (half ? 2 : 4); ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    for (int l = 0; l < kLanes; ++l) {
      if (half) {
        d[l] = FloatToHalf(c[l / 4 + 8 * r][(l % 4) * 2]) |
               static_cast<uint32_t>(FloatToHalf(c[l / 4 + 8 * r][(l % 4) * 2 + 1])) << 16;
      } else {
        Lane<float>::Set(d, l, c[l / 4 + 8 * (r >> 1)][(l % 4) * 2 + (r & 1)]);
      }
    }
  }
}

/// variant bit 0: float16 accumulators.
template <bool kBrain, int kK>
void MmaHalf(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const bool half = op.variant & 1;
  const int d_regs = half ? 2 : 4;
  Tile<kK> t;
  float c[16][8];
  LoadHalfTile<kBrain, kK>(x, op, d_regs, t);
  LoadAccumulator(x, op, d_regs + kK / 4 + kK / 8, half, c);
  MultiplyTile<kK>(t, c);
  StoreAccumulator(x, op, half, c);
  x.counts.tensor_flops += 2.0 * 16 * 8 * kK;
}

template <int kK>
void MmaTf32(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  constexpr int kARegs = kK / 2;
  constexpr int kBRegs = kK / 4;
  Tile<kK> t;
  float c[16][8];
  const auto tf32 = [](uint32_t bits) {
    return std::bit_cast<float>(bits & 0xffffe000u);
  };  // the hardware ignores the low bits
  for (int r = 0; r < kARegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + r));
    for (int l = 0; l < kLanes; ++l) t.a[l / 4 + 8 * (r & 1)][l % 4 + 4 * (r >> 1)] = tf32(s[l]);
  }
  for (int r = 0; r < kBRegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + kARegs + r));
    for (int l = 0; l < kLanes; ++l) t.b[l % 4 + 4 * r][l / 4] = tf32(s[l]);
  }
  LoadAccumulator(x, op, 4 + kARegs + kBRegs, false, c);
  MultiplyTile<kK>(t, c);
  StoreAccumulator(x, op, false, c);
  x.counts.tensor_flops += 2.0 * 16 * 8 * kK;
}

// ---- the rest, by one description of its fragments
// ------------------------------------------------------------------- A fragment register holds 32 / bits elements of
// one row of A or column of B; registers step through 8 rows first, then through the 4 lanes' worth of columns.
struct Shape {
  int m = 16, k = 32, bits = 8;
  int PerRegister() const { return bits >= 32 ? 1 : 32 / bits; }
  int ARegisters() const { return m * k / (kLanes * PerRegister()); }
  int BRegisters() const { return 8 * k / (kLanes * PerRegister()); }
  int CRegisters() const { return m * 8 / kLanes; }
  int Row(int lane, int reg) const { return lane / 4 + (m == 16 ? 8 * (reg & 1) : 0); }
  int Column(int lane, int reg, int i) const {
    return lane % 4 * PerRegister() + i + 4 * PerRegister() * (m == 16 ? reg >> 1 : reg);
  }
  int Inner(int lane, int reg, int i) const { return lane % 4 * PerRegister() + i + 4 * PerRegister() * reg; }
  int CRow(int lane, int reg) const { return lane / 4 + (m == 16 ? 8 * (reg >> 1) : 0); }
  static int CColumn(int lane, int reg) { return lane % 4 * 2 + (reg & 1); }
};
constexpr int kMaxInner = 256;

/// Reads A and B through `element(word, i, is_b)`.
template <class T, class F>
void LoadFragments(const Exec& x, const Op& op, const Shape& s, int first, T (&a)[16][kMaxInner], T (&b)[8][kMaxInner],
                   F&& element) {
  for (int r = 0; r < s.ARegisters(); ++r) {
    const uint32_t* slot = x.Source(ListSlot(x, op, first + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < s.PerRegister(); ++i) a[s.Row(l, r)][s.Column(l, r, i)] = element(slot, l, i, false);
    }
  }
  for (int r = 0; r < s.BRegisters(); ++r) {
    const uint32_t* slot = x.Source(ListSlot(x, op, first + s.ARegisters() + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < s.PerRegister(); ++i) b[l / 4][s.Inner(l, r, i)] = element(slot, l, i, true);
    }
  }
}

Shape ShapeOf(const Op& op) {
  return {static_cast<int>(op.target & 255), static_cast<int>(op.target >> 8 & 1023),
          static_cast<int>(op.target >> 18)};
}

/// variant bit 1: A unsigned, bit 2: B unsigned, bit 3: saturate, bit 4: and-popc, bit 5: xor-popc.
void MmaInteger(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Shape s = ShapeOf(op);
  static thread_local int a[16][kMaxInner];
  static thread_local int b[8][kMaxInner];
  const int d_registers = s.CRegisters();
  LoadFragments(x, op, s, d_registers, a, b, [&](const uint32_t* slot, int l, int i, bool is_b) {
    const uint32_t raw = slot[l] >> (i * s.bits);
    const bool is_unsigned = s.bits == 1 || (op.variant & (is_b ? 4 : 2)) != 0;
    const int up = 32 - s.bits;
    return is_unsigned ? static_cast<int>(raw << up >> up) : static_cast<int>(raw << up) >> up;
  });
  const int c_first = d_registers + s.ARegisters() + s.BRegisters();
  for (int r = 0; r < d_registers; ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    const uint32_t* c = x.Source(ListSlot(x, op, c_first + r));
    for (int l = 0; l < kLanes; ++l) {
      const int* row = a[s.CRow(l, r)];
      const int* column = b[Shape::CColumn(l, r)];
      int64_t sum = static_cast<int32_t>(c[l]);
      for (int k = 0; k < s.k; ++k)
        sum += (op.variant & 16) ? row[k] & column[k] : (op.variant & 32) ? row[k] ^ column[k] : row[k] * column[k];
      if (op.variant & 8) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      d[l] = static_cast<uint32_t>(sum);
    }
  }
  x.counts.tensor_flops += 2.0 * s.m * 8 * s.k;
}

void MmaDouble(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Shape s = ShapeOf(op);
  static thread_local double a[16][kMaxInner];
  static thread_local double b[8][kMaxInner];
  const int d_registers = s.CRegisters();
  LoadFragments(x, op, s, d_registers, a, b,
                [](const uint32_t* slot, int l, int, bool) { return Lane<double>::Get(slot, l); });
  const int c_first = d_registers + s.ARegisters() + s.BRegisters();
  for (int r = 0; r < d_registers; ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    const uint32_t* c = x.Source(ListSlot(x, op, c_first + r));
    for (int l = 0; l < kLanes; ++l) {
      double sum = Lane<double>::Get(c, l);
      for (int k = 0; k < s.k; ++k) sum = std::fma(a[s.CRow(l, r)][k], b[Shape::CColumn(l, r)][k], sum);
      Lane<double>::Set(d, l, sum);
    }
  }
  x.counts.tensor_flops += 2.0 * s.m * 8 * s.k;
}

/// 8-bit floats. variant bit 0: float16 accumulators, bit 1: A is e5m2, bit 2: B is e5m2.
void MmaFp8(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Shape s = ShapeOf(op);
  static thread_local float a[16][kMaxInner];
  static thread_local float b[8][kMaxInner];
  const bool half = op.variant & 1;
  const int d_registers = half ? 2 : 4;
  LoadFragments(x, op, s, d_registers, a, b, [&](const uint32_t* slot, int l, int i, bool is_b) {
    const bool e5m2 = (op.variant & (is_b ? 4 : 2)) != 0;
    return WidenFp8(e5m2 ? Type::kE5M2x2 : Type::kE4M3x2, slot[l] >> (8 * i) & 255u);
  });
  float c[16][8];
  LoadAccumulator(x, op, d_registers + s.ARegisters() + s.BRegisters(), half, c);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      double sum = static_cast<double>(c[i][j]);
      for (int k = 0; k < s.k; ++k) sum += static_cast<double>(a[i][k]) * static_cast<double>(b[j][k]);
      c[i][j] = static_cast<float>(sum);
    }
  }
  StoreAccumulator(x, op, half, c);
  x.counts.tensor_flops += 2.0 * 16 * 8 * s.k;
}

int BitsOfElement(const std::string& name) {
  static constexpr std::pair<std::string_view, int> kBits[] = {{"s8", 8}, {"u8", 8},   {"s4", 4},   {"u4", 4},
                                                               {"b1", 1}, {"e4m3", 8}, {"e5m2", 8}, {"f64", 64}};
  for (const auto& [text, bits] : kBits) {
    if (text == name) return bits;
  }
  return 0;
}

/// What follows the layouts: D, A, B and C types; and the shape.
struct MmaForm {
  int m = 0, n = 0, k = 0;
  std::vector<std::string> types;
};
MmaForm ReadForm(const Form& form) {
  MmaForm r;
  for (const std::string& modifier : form.instruction->modifiers) {
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &r.m, &r.n, &r.k) == 3) continue;
    if (ptx::ParseType(modifier) != Type::kNone || BitsOfElement(modifier) != 0) r.types.push_back(modifier);
  }
  return r;
}

Handler GenericMma(const MmaForm& m, const Form& form, Op& op) {
  Shape s{m.m, m.k, BitsOfElement(m.types[1])};
  if (s.bits == 0 || m.n != 8 || s.k > kMaxInner || s.k <= 0 || (s.m != 8 && s.m != 16)) return nullptr;
  if (s.m * s.k % (kLanes * s.PerRegister()) != 0 || 8 * s.k % (kLanes * s.PerRegister()) != 0) return nullptr;
  op.target = static_cast<uint32_t>(s.m | s.k << 8 | s.bits << 18);
  const bool fp8 = m.types[1].starts_with('e');
  const bool half = m.types[0] == "f16";
  if (fp8) {
    if (s.m != 16 || (m.types[0] != "f32" && !half)) return nullptr;
    op.variant = static_cast<uint8_t>((half ? 1 : 0) | (m.types[1] == "e5m2" ? 2 : 0) | (m.types[2] == "e5m2" ? 4 : 0));
    op.imm = static_cast<uint64_t>(s.ARegisters() + s.BRegisters() + 2 * (half ? 2 : 4));
    return MmaFp8;
  }
  op.imm = static_cast<uint64_t>(s.ARegisters() + s.BRegisters() + 2 * s.CRegisters());
  if (s.bits == 64) return m.types[0] == "f64" ? MmaDouble : nullptr;
  if (m.types[0] != "s32") return nullptr;
  op.variant = static_cast<uint8_t>((m.types[1].starts_with('u') ? 2 : 0) | (m.types[2].starts_with('u') ? 4 : 0) |
                                    (form.Has("satfinite") ? 8 : 0));
  if (s.bits == 1) {
    if (!form.Has("popc")) return nullptr;
    op.variant = static_cast<uint8_t>(op.variant | (form.Has("and") ? 16 : form.Has("xor") ? 32 : 0));
    if ((op.variant & 48) == 0) return nullptr;
  }
  return MmaInteger;
}

template <bool kBrain>
Handler HalfMma(int k) {
  return k == 16 ? MmaHalf<kBrain, 16> : k == 8 ? MmaHalf<kBrain, 8> : nullptr;
}

}  // namespace

Handler TensorHandler(const Form& form, Op& op) {
  if (!form.Has("sync") || form.instruction->opcode != "mma") return nullptr;
  for (const char* missing : {"sp", "sp::ordered_metadata", "block_scale", "kind::f8f6f4"}) {
    if (form.Has(missing)) return nullptr;
  }
  const MmaForm m = ReadForm(form);
  if (m.types.size() != 4 || m.types[0] != m.types[3] || !form.Has("row") || !form.Has("col")) return nullptr;
  const bool half = m.types[0] == "f16";
  if (m.m == 16 && m.n == 8 && m.types[1] == m.types[2]) {
    op.variant = half ? 1 : 0;
    op.imm = static_cast<uint64_t>(m.k / 4 + m.k / 8 + 2 * (half ? 2 : 4));
    if (m.types[1] == "f16" && (half || m.types[0] == "f32")) return HalfMma<false>(m.k);
    if (m.types[1] == "bf16" && m.types[0] == "f32") return HalfMma<true>(m.k);
    op.imm = static_cast<uint64_t>(m.k / 2 + m.k / 4 + 8);
    if (m.types[1] == "tf32" && m.types[0] == "f32") return m.k == 8 ? MmaTf32<8> : m.k == 4 ? MmaTf32<4> : nullptr;
  }
  return GenericMma(m, form, op);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
