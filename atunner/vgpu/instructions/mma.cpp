// Tensor-core products of one warp, mma.sync. Layouts are those of the PTX ISA's fragment tables.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/product.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

int32_t ListSlot(const BlockState& x, const Op& op, int i) {
  return x.kernel->lists[op.list + static_cast<size_t>(i)];
}

/// Shape and types of a product of widened elements, packed into Op::target and Op::variant.
struct TileForm {
  int m = 16, k = 16;
  TensorElement a = TensorElement::kF16, b = TensorElement::kF16;
  Accumulator kind = Accumulator::kF32;
  bool sparse = false;  ///< half of A's elements are there, and a register that says which
  int selector = 0;     ///< of the lanes that have that register

  int StoredK() const { return sparse ? k / 2 : k; }
  int RegistersOfA() const { return m * StoredK() * BitsOf(a) / (kLanes * 32); }
  int RegistersOfB() const { return 8 * k * BitsOf(b) / (kLanes * 32); }
  int RegistersOfC() const { return m * 8 / kLanes / (kind == Accumulator::kF16 ? 2 : 1); }

  void Pack(Op& op) const {
    op.target = static_cast<uint32_t>(m | k << 8 | static_cast<int>(kind) << 16 | sparse << 20 |
                                      selector << 21);
    op.variant = static_cast<uint8_t>(static_cast<int>(a) | static_cast<int>(b) << 4);
    op.imm = static_cast<uint64_t>(RegistersOfA() + RegistersOfB() + 2 * RegistersOfC() + sparse);
  }
  static TileForm Unpack(const Op& op) {
    return {static_cast<int>(op.target & 255),
            static_cast<int>(op.target >> 8 & 255),
            static_cast<TensorElement>(op.variant & 15),
            static_cast<TensorElement>(op.variant >> 4),
            static_cast<Accumulator>(op.target >> 16 & 15),
            (op.target >> 20 & 1) != 0,
            static_cast<int>(op.target >> 21)};
  }
};
constexpr int kMaxTileInner = 128;

/// A register of a fragment holds, of eight rows or columns, 16 bytes each: a chunk in four
/// neighbouring lanes.
void MmaTile(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  static constexpr std::byte kZeros[kChunkBytes] = {};
  const TileForm f = TileForm::Unpack(op);
  const int held = f.k / PerChunk(f.a);
  const int held_of_a = f.StoredK() / PerChunk(f.a);
  const int inner = std::max(f.k, 8);  // the shortest is filled up with zeros
  const int row_chunks = inner / PerChunk(f.a);
  const int row_chunks_of_a = f.sparse ? held_of_a : row_chunks;
  const auto chunk = [&](int reg, int line) {
    return reinterpret_cast<const std::byte*>(x.Source(ListSlot(x, op, f.RegistersOfC() + reg)) +
                                              4 * line);
  };
  const std::byte* of_a[2 * 16];
  const std::byte* of_b[4 * 8];
  for (int c = 0; c < row_chunks_of_a; ++c) {
    for (int row = 0; row < f.m; ++row)
      of_a[row * row_chunks_of_a + c] = c < held_of_a
                                            ? chunk(f.m == 16 ? 2 * c + row / 8 : c, row % 8)
                                            : kZeros;
  }
  for (int c = 0; c < row_chunks; ++c) {
    for (int n = 0; n < 8; ++n)
      of_b[n * row_chunks + c] = c < held ? chunk(f.RegistersOfA() + c, n) : kZeros;
  }
  float a[16 * kMaxTileInner];
  float rows[8 * kMaxTileInner];
  float b[8 * kMaxTileInner];
  const int behind_c = 2 * f.RegistersOfC() + f.RegistersOfA() + f.RegistersOfB();
  if (f.sparse) {
    WidenRows(f.a, of_a, f.m, row_chunks_of_a, rows);
    Spread({f.a, f.k, f.selector, x.Source(ListSlot(x, op, behind_c))}, rows, f.k, a);
  } else {
    WidenRows(f.a, of_a, f.m, row_chunks, a);
  }
  WidenRows(f.b, of_b, 8, row_chunks, rows);
  ArrangeB(rows, 8, inner, b);
  uint32_t* d[4];
  uint32_t held_c[4][kLanes];  // D may name the same registers in another order
  const uint32_t* c[4];
  for (int r = 0; r < f.RegistersOfC(); ++r) {
    d[r] = x.Slot(ListSlot(x, op, r));
    std::memcpy(
        held_c[r],
        x.Source(ListSlot(x, op, f.RegistersOfC() + f.RegistersOfA() + f.RegistersOfB() + r)),
        sizeof held_c[r]);
    c[r] = held_c[r];
  }
  MultiplyTile({.m = f.m,
                .n = 8,
                .k = inner,
                .a = a,
                .b = b,
                .sparse = f.sparse,
                .kind = f.kind,
                .d = d,
                .c = c});
  x.counting.total.tensor.AddProducts(2.0 * f.m * 8 * f.StoredK(), BitsOf(f.a));
}

// ---- the rest, by one description of its fragments
// ----------------------------------------------------------------- A fragment register holds 32 /
// bits elements of one row of A or column of B; registers step through 8 rows first, then through
// the 4 lanes' worth of columns.
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
  int Inner(int lane, int reg, int i) const {
    return lane % 4 * PerRegister() + i + 4 * PerRegister() * reg;
  }
  int CRow(int lane, int reg) const { return lane / 4 + (m == 16 ? 8 * (reg >> 1) : 0); }
  static int CColumn(int lane, int reg) { return lane % 4 * 2 + (reg & 1); }
};
constexpr int kMaxInner = 256;

uint32_t RoundedHalf(double value) {
  uint16_t bits = 0;
  StoreElement(DType::kFloat16, &bits, 0, value);
  return bits;
}

/// Reads A and B through `element(word, i, is_b)`.
template <class T, class F>
void LoadFragments(const BlockState& x, const Op& op, const Shape& s, int first,
                   T (&a)[16][kMaxInner], T (&b)[8][kMaxInner], F&& element) {
  for (int r = 0; r < s.ARegisters(); ++r) {
    const uint32_t* slot = x.Source(ListSlot(x, op, first + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < s.PerRegister(); ++i)
        a[s.Row(l, r)][s.Column(l, r, i)] = element(slot, l, i, false);
    }
  }
  for (int r = 0; r < s.BRegisters(); ++r) {
    const uint32_t* slot = x.Source(ListSlot(x, op, first + s.ARegisters() + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < s.PerRegister(); ++i)
        b[l / 4][s.Inner(l, r, i)] = element(slot, l, i, true);
    }
  }
}

Shape ShapeOf(const Op& op) {
  return {static_cast<int>(op.target & 255), static_cast<int>(op.target >> 8 & 1023),
          static_cast<int>(op.target >> 18)};
}

/// Single bits. variant bit 4: and-popc, otherwise xor-popc.
void MmaBits(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Shape s = ShapeOf(op);
  static thread_local int a[16][kMaxInner];
  static thread_local int b[8][kMaxInner];
  const int d_registers = s.CRegisters();
  LoadFragments(x, op, s, d_registers, a, b, [](const uint32_t* slot, int l, int i, bool) {
    return static_cast<int>(slot[l] >> i & 1u);
  });
  const int c_first = d_registers + s.ARegisters() + s.BRegisters();
  for (int r = 0; r < d_registers; ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    const uint32_t* c = x.Source(ListSlot(x, op, c_first + r));
    for (int l = 0; l < kLanes; ++l) {
      const int* row = a[s.CRow(l, r)];
      const int* column = b[Shape::CColumn(l, r)];
      uint32_t sum = c[l];
      for (int k = 0; k < s.k; ++k)
        sum += static_cast<uint32_t>((op.variant & 16) ? row[k] & column[k] : row[k] ^ column[k]);
      d[l] = sum;
    }
  }
  x.counting.total.tensor.AddProducts(2.0 * s.m * 8 * s.k, s.bits);
}

void MmaDouble(BlockState& x, const Op& op, uint32_t mask) {
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
      for (int k = 0; k < s.k; ++k)
        sum = std::fma(a[s.CRow(l, r)][k], b[Shape::CColumn(l, r)][k], sum);
      Lane<double>::Set(d, l, sum);
    }
  }
  x.counting.total.tensor.AddProducts(2.0 * s.m * 8 * s.k, s.bits);
}

/// Products of 8×8×4: one for each quad pair of the warp, lanes 4i … 4i+3 and those 16 further on.
/// From sm_80 on the assembler makes fused multiply-adds in float32 of them, whose order
/// `SumInQuad` keeps.
struct QuadForm {
  bool a_by_columns = false, b_by_rows = false, wide_d = false, wide_c = false;

  void Pack(Op& op) const {
    op.variant = static_cast<uint8_t>(a_by_columns | b_by_rows << 1 | wide_d << 2 | wide_c << 3);
    op.imm = static_cast<uint64_t>(RegistersOf(wide_d) + 4 + RegistersOf(wide_c));
  }
  static QuadForm Unpack(const Op& op) {
    return {(op.variant & 1) != 0, (op.variant & 2) != 0, (op.variant & 4) != 0,
            (op.variant & 8) != 0};
  }
  static int RegistersOf(bool wide) { return wide ? 8 : 4; }
};

/// Row and column of a lane's i-th element of C or D. Pairs of float16 are neighbours in a row,
/// single float32 elements are two columns apart.
std::pair<int, int> PositionInQuad(int lane, int i, bool wide) {
  const int lower = lane < 16 ? 0 : 4;
  if (!wide) return {lane % 4 + lower, i};
  return {(lane & 1) + (i & 2) + lower, (i & 4) + (lane & 2) + (i & 1)};
}

/// The sum in the order of the hardware: for float32 results C is added last; for float16 results
/// first, with products in pairs.
template <class A, class B>
float SumInQuad(bool wide, float c, const A& a, const B& b) {
  const auto pair = [&](int k) { return std::fma(a(k + 1), b(k + 1), a(k) * b(k)); };
  if (!wide) return c + pair(0) + pair(2);
  return c + std::fma(a(3), b(3), std::fma(a(2), b(2), pair(0)));
}

void MmaQuads(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const QuadForm f = QuadForm::Unpack(op);
  const auto half = [&](int reg, int lane) {
    return [&x, &op, reg, lane](int i) {
      return HalfToFloat(
          static_cast<uint16_t>(x.Source(ListSlot(x, op, reg + i / 2))[lane] >> (16 * (i % 2))));
    };
  };
  const int first_a = QuadForm::RegistersOf(f.wide_d);
  float a[4][8][4], b[4][4][8], sum[4][8][8];
  for (int l = 0; l < kLanes; ++l) {
    const int quad = l / 4 % 4;
    const int lower = l < 16 ? 0 : 4;
    const auto of_a = half(first_a, l), of_b = half(first_a + 2, l), of_c = half(first_a + 4, l);
    for (int i = 0; i < 4; ++i) {
      (f.a_by_columns ? a[quad][i + lower][l % 4] : a[quad][l % 4 + lower][i]) = of_a(i);
      (f.b_by_rows ? b[quad][l % 4][i + lower] : b[quad][i][l % 4 + lower]) = of_b(i);
    }
    for (int i = 0; i < 8; ++i) {
      const auto [row, column] = PositionInQuad(l, i, f.wide_c);
      sum[quad][row][column] = f.wide_c ? std::bit_cast<float>(
                                              x.Source(ListSlot(x, op, first_a + 4 + i))[l])
                                        : of_c(i);
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    const int quad = l / 4 % 4;
    for (int i = 0; i < 8; ++i) {
      const auto [row, column] = PositionInQuad(l, i, f.wide_d);
      const auto of_a = [&, row](int k) { return a[quad][row][k]; };
      const auto of_b = [&, column](int k) { return b[quad][k][column]; };
      const float d = SumInQuad(f.wide_d, sum[quad][row][column], of_a, of_b);
      uint32_t& to = x.Slot(ListSlot(x, op, f.wide_d ? i : i / 2))[l];
      const uint32_t bits = f.wide_d ? std::bit_cast<uint32_t>(d)
                                     : RoundedHalf(static_cast<double>(d));
      to = f.wide_d ? bits : i % 2 == 0 ? bits : (to & 0xffffu) | bits << 16;
    }
  }
  x.counting.total.tensor.AddProducts(2.0 * 4 * 8 * 8 * 4, 16);
}

/// The shape, and the types of D, A, B and C, which follow the layouts in an instruction's name.
struct MmaForm {
  int m = 0, n = 0, k = 0;
  std::vector<std::string> types;
};
MmaForm ReadForm(const Form& form) {
  MmaForm r;
  for (const std::string& modifier : form.instruction->modifiers) {
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &r.m, &r.n, &r.k) == 3) continue;
    if (ptx::ParseType(modifier) != Type::kNone || FindTensorElement(modifier))
      r.types.push_back(modifier);
  }
  return r;
}

Handler TileMma(const MmaForm& m, const Form& form, Op& op) {
  const auto a = FindTensorElement(m.types[1]);
  const auto b = FindTensorElement(m.types[2]);
  if (!a || !b) return nullptr;
  const auto kind = AccumulatorOf(m.types[0], *a, *b, form.Has("satfinite"));
  if (!kind || *a == TensorElement::kB1) return nullptr;
  const bool integer = *kind == Accumulator::kS32 || *kind == Accumulator::kS32Saturating;
  const int chunks = m.k / std::max(1, PerChunk(*a));
  const bool fits = m.k == chunks * PerChunk(*a) && (chunks == 1 || (chunks == 2 && m.m == 16));
  if (!fits || (m.m != 16 && !(m.m == 8 && integer))) return nullptr;
  TileForm{m.m, m.k, *a, *b, *kind}.Pack(op);
  return MmaTile;
}

/// mma.sp d, a, b, c, metadata, selector. The fewer lanes a row's metadata needs, the more of them
/// can be selected.
Handler SparseMma(const MmaForm& m, const Form& form, Op& op) {
  const auto a = FindTensorElement(m.types[1]);
  const auto b = FindTensorElement(m.types[2]);
  if (!a || !b || m.m != 16 || BitsOf(*a) != BitsOf(*b) || *a == TensorElement::kB1) return nullptr;
  const auto kind = AccumulatorOf(m.types[0], *a, *b, form.Has("satfinite"));
  const int least = *a == TensorElement::kTF32 ? 8
                    : BitsOf(*a) == 16         ? 16
                    : BitsOf(*a) == 8          ? 32
                                               : 64;
  const bool is_float8 = *a == TensorElement::kE4M3 || *a == TensorElement::kE5M2;
  if (!kind || (m.k != 2 * least && (m.k != least || is_float8))) return nullptr;
  const int lanes = (BitsOf(*a) >= 16 ? 1 : 2) * (m.k / least);
  const ptx::Operand& selector = form.instruction->operands.back();
  if (selector.kind != ptx::Operand::Kind::kImmediate ||
      selector.bits >= static_cast<uint64_t>(4 / lanes))
    return nullptr;
  TileForm{m.m, m.k, *a, *b, *kind, true, static_cast<int>(selector.bits)}.Pack(op);
  return MmaTile;
}

/// mma.m8n8k4.alayout.blayout.dtype.f16.f16.ctype
Handler QuadMma(const MmaForm& m, const Form& form, Op& op) {
  const auto& modifiers = form.instruction->modifiers;
  const auto shape = std::ranges::find(modifiers, "m8n8k4");
  const auto is_float = [](const std::string& type) { return type == "f16" || type == "f32"; };
  if (modifiers.end() - shape < 3 || !is_float(m.types[0]) || !is_float(m.types[3])) return nullptr;
  if (m.types[0] == "f16" && m.types[3] != "f16") return nullptr;
  QuadForm{shape[1] == "col", shape[2] == "row", m.types[0] == "f32", m.types[3] == "f32"}.Pack(op);
  return MmaQuads;
}

Handler WideMma(const MmaForm& m, const Form& form, Op& op) {
  const Shape s{m.m, m.k, m.types[1] == "f64" ? 64 : 1};
  if (m.types[1] != m.types[2] || s.k > kMaxInner || s.k <= 0 || (s.m != 8 && s.m != 16))
    return nullptr;
  if (s.m * s.k % (kLanes * s.PerRegister()) != 0 || 8 * s.k % (kLanes * s.PerRegister()) != 0)
    return nullptr;
  op.target = static_cast<uint32_t>(s.m | s.k << 8 | s.bits << 18);
  op.imm = static_cast<uint64_t>(s.ARegisters() + s.BRegisters() + 2 * s.CRegisters());
  if (s.bits == 64) return m.types[0] == "f64" ? MmaDouble : nullptr;
  op.variant = form.Has("and") ? 16 : 0;
  return m.types[0] == "s32" && form.Has("popc") && (form.Has("and") || form.Has("xor")) ? MmaBits
                                                                                         : nullptr;
}

}  // namespace

Handler TensorHandler(const Form& form, Op& op) {
  if (!form.Has("sync") || form.instruction->opcode != "mma") return nullptr;
  if (form.Has("block_scale") || form.Has("kind::f8f6f4")) return nullptr;
  const MmaForm m = ReadForm(form);
  if (m.types.size() == 4 && m.m == 8 && m.k == 4 && m.types[1] == "f16" && m.types[2] == "f16")
    return QuadMma(m, form, op);
  if (m.types.size() != 4 || m.n != 8 || m.types[0] != m.types[3] || !form.Has("row") ||
      !form.Has("col"))
    return nullptr;
  if (form.Has("sp") || form.Has("sp::ordered_metadata")) return SparseMma(m, form, op);
  return m.types[1] == "f64" || m.types[1] == "b1" ? WideMma(m, form, op) : TileMma(m, form, op);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
