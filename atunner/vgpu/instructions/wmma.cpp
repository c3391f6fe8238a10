// wmma: matrix fragments of a whole warp. The ISA does not say which lane holds which element. Here
// element e of a matrix of E elements is stored in slots e, e + E, … of the fragment; 16×16
// accumulators are stored as two mma tiles side by side, as on hardware.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

enum class Element : uint8_t { kF16, kBF16, kTF32, kF32, kF64, kS8, kU8, kS4, kU4, kB1, kS32 };
constexpr std::pair<std::string_view, Element> kElements[] = {
    {"f16", Element::kF16}, {"bf16", Element::kBF16}, {"tf32", Element::kTF32},
    {"f32", Element::kF32}, {"f64", Element::kF64},   {"s8", Element::kS8},
    {"u8", Element::kU8},   {"s4", Element::kS4},     {"u4", Element::kU4},
    {"b1", Element::kB1},   {"s32", Element::kS32}};
int Bits(Element e) {
  switch (e) {
    case Element::kF16:
    case Element::kBF16:
      return 16;
    case Element::kF64:
      return 64;
    case Element::kS8:
    case Element::kU8:
      return 8;
    case Element::kS4:
    case Element::kU4:
      return 4;
    case Element::kB1:
      return 1;
    default:
      return 32;
  }
}

/// Packed into Op::target.
struct Options {
  uint8_t rows = 0;   ///< of the matrix that is loaded or stored; of the product's A
  uint8_t cols = 0;   ///< likewise; of the product's B
  uint8_t inner = 0;  ///< of a product
  Element element = Element::kF16;
  bool by_column = false;
  bool is_a = false, is_b = false;
};
uint32_t Pack(const Options& o) {
  return o.rows | o.cols << 8 | static_cast<uint32_t>(o.element) << 16 |
         uint32_t{o.by_column} << 20 | uint32_t{o.is_a} << 21 | uint32_t{o.is_b} << 22 |
         uint32_t{o.inner} << 23;
}
Options Unpack(uint32_t v) {
  return {static_cast<uint8_t>(v),
          static_cast<uint8_t>(v >> 8),
          static_cast<uint8_t>(v >> 23),
          static_cast<Element>(v >> 16 & 15),
          (v >> 20 & 1) != 0,
          (v >> 21 & 1) != 0,
          (v >> 22 & 1) != 0};
}

constexpr int kMaxElements = 1024;  // the 8×128 bits

/// Element index (row · cols + col) of slot `i` of register `reg` of a lane.
int ElementOf(int rows, int cols, bool accumulator, int per_register, int lane, int reg, int i) {
  if (accumulator && rows == 16 && cols == 16) {
    const int at = reg * per_register + i;  // 0…7: two tiles of 16×8, four elements each
    return (lane / 4 + 8 * (at >> 1 & 1)) * 16 + lane % 4 * 2 + (at & 1) + 8 * (at >> 2);
  }
  return ((reg * kLanes + lane) * per_register + i) % (rows * cols);
}

uint64_t ReadSlot(const uint32_t* slot, int lane, int i, int bits) {
  if (bits == 64) return Lane<uint64_t>::Get(slot, lane);
  if (bits == 32) return slot[lane];
  return slot[lane] >> (i * bits) & ((1u << bits) - 1);
}
void WriteSlot(uint32_t* slot, int lane, int i, int bits, uint64_t value) {
  if (bits == 64) return Lane<uint64_t>::Set(slot, lane, value);
  if (bits == 32) {
    slot[lane] = static_cast<uint32_t>(value);
    return;
  }
  const uint32_t field = ((1u << bits) - 1) << (i * bits);
  slot[lane] = (slot[lane] & ~field) | (static_cast<uint32_t>(value) << (i * bits) & field);
}

template <class F>
void ForFragment(int first, int registers, int rows, int cols, int bits, bool accumulator, F&& f) {
  const int per_register = bits >= 32 ? 1 : 32 / bits;
  for (int r = 0; r < registers; ++r) {
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < per_register; ++i)
        f(first + r, l, i, ElementOf(rows, cols, accumulator, per_register, l, r, i));
    }
  }
}

int32_t ListSlot(const BlockState& x, const Op& op, int i) {
  return x.kernel->lists[op.list + static_cast<size_t>(i)];
}

/// Host pointer to one contiguous row or column of the matrix, checked as one access of lane 0.
std::byte* Line(BlockState& x, const Op& op, uint64_t address, uint32_t bytes, bool store) {
  const Space space = Resolve(op.space, address);
  const char* verb = store ? "matrix store" : "matrix load";
  if (space == Space::kGlobal || space == Space::kConst) {
    std::byte* at = GlobalPointer(x, op, 0, address, bytes, verb);
    if (at != nullptr)
      store ? NoteGlobalWrite(x, op, 0, address, bytes) : NoteGlobalRead(x, op, 0, address, bytes);
    return at;
  }
  std::byte* at = WindowPointer(x, op, 0, space, address, bytes, verb);
  if (at != nullptr && x.checks.any && space == Space::kShared) {
    if (store)
      ShadowWrite(x, op, 0, address, bytes, false, false);
    else
      ShadowRead(x, op, 0, address, bytes);
  }
  return at;
}

struct Lines {
  uint64_t base = 0;
  uint64_t stride_bits = 0;
  int count = 0, length = 0, bits = 0;
};
bool FindLines(BlockState& x, const Op& op, const Options& o, Lines& lines) {
  lines.bits = Bits(o.element);
  lines.count = o.by_column ? o.cols : o.rows;
  lines.length = o.by_column ? o.rows : o.cols;
  const uint32_t stride = op.src[1] == INT32_MIN ? static_cast<uint32_t>(lines.length)
                                                 : x.Source(op.src[1])[0];
  lines.base = AddressOf(x, op, 0);
  lines.stride_bits = uint64_t{stride} * static_cast<uint64_t>(lines.bits);
  const auto line_bytes = static_cast<uint32_t>(
      std::max(1, std::min(32, lines.length * lines.bits / 8)));
  return CheckAligned(x, op, 0, lines.base, std::bit_floor(std::min(line_bytes, 32u)));
}

void CountLines(BlockState& x, const Op& op, const Lines& lines, bool store) {
  if (!x.counting.enabled) return;
  uint64_t addresses[kLanes] = {};
  const int n = std::min(lines.count, kLanes);
  for (int i = 0; i < n; ++i)
    addresses[i] = lines.base + lines.stride_bits / 8 * static_cast<uint64_t>(i);
  const uint32_t mask = n == kLanes ? ~0u : (1u << n) - 1;
  uint64_t address = lines.base;
  const auto bytes = static_cast<uint32_t>(std::clamp(lines.length * lines.bits / 8, 4, 32));
  if (const Space space = Resolve(op.space, address); space == Space::kGlobal)
    CountGlobal(x, addresses, mask, bytes, store);
  else
    ++x.counting.total.shared.requests, x.counting.total.shared.wavefronts += static_cast<uint64_t>(
                                            n * lines.length * lines.bits / 1024 + 1);
}

void LoadFragment(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Options o = Unpack(op.target);
  Lines lines;
  if (!FindLines(x, op, o, lines)) return;
  uint64_t values[kMaxElements];
  for (int line = 0; line < lines.count; ++line) {
    const uint64_t at = lines.base + lines.stride_bits * static_cast<uint64_t>(line) / 8;
    const std::byte* from = Line(
        x, op, at, static_cast<uint32_t>(std::max(1, lines.length * lines.bits / 8)), false);
    if (from == nullptr || x.stop) return;
    for (int i = 0; i < lines.length; ++i) {
      uint64_t raw = 0;
      std::memcpy(&raw, from + i * lines.bits / 8,
                  static_cast<size_t>(std::max(1, lines.bits / 8)));
      if (lines.bits < 8) raw = raw >> (i * lines.bits % 8) & ((1u << lines.bits) - 1);
      values[o.by_column ? i * o.cols + line : line * o.cols + i] = raw;
    }
  }
  ForFragment(0, op.list_size, o.rows, o.cols, lines.bits, !o.is_a && !o.is_b,
              [&](int reg, int l, int i, int e) {
                WriteSlot(x.Slot(ListSlot(x, op, reg)), l, i, lines.bits, values[e]);
              });
  CountLines(x, op, lines, false);
}

void StoreFragment(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Options o = Unpack(op.target);
  Lines lines;
  if (!FindLines(x, op, o, lines)) return;
  uint64_t values[kMaxElements] = {};
  ForFragment(0, op.list_size, o.rows, o.cols, lines.bits, true, [&](int reg, int l, int i, int e) {
    values[e] = ReadSlot(x.Source(ListSlot(x, op, reg)), l, i, lines.bits);
  });
  for (int line = 0; line < lines.count; ++line) {
    const uint64_t at = lines.base + lines.stride_bits * static_cast<uint64_t>(line) / 8;
    std::byte* to = Line(x, op, at, static_cast<uint32_t>(lines.length * lines.bits / 8), true);
    if (to == nullptr || x.stop) return;
    for (int i = 0; i < lines.length; ++i)
      std::memcpy(to + i * lines.bits / 8,
                  &values[o.by_column ? i * o.cols + line : line * o.cols + i],
                  static_cast<size_t>(lines.bits / 8));
  }
  CountLines(x, op, lines, true);
}

// ---- products
double Value(Element e, uint64_t raw) {
  switch (e) {
    case Element::kF16:
      return HalfToFloat(static_cast<uint16_t>(raw));
    case Element::kBF16:
      return BFloat16ToFloat(static_cast<uint16_t>(raw));
    case Element::kTF32:
      return std::bit_cast<float>(static_cast<uint32_t>(raw) & 0xffffe000u);
    case Element::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(raw));
    case Element::kF64:
      return std::bit_cast<double>(raw);
    case Element::kS8:
      return static_cast<int8_t>(raw);
    case Element::kS4:
      return static_cast<int8_t>(raw << 4) >> 4;
    case Element::kS32:
      return static_cast<int32_t>(raw);
    default:
      return static_cast<double>(raw);
  }
}
uint64_t Rounded(Element e, double v, bool saturate) {
  switch (e) {
    case Element::kF16:
      return FloatToHalf(static_cast<float>(v));
    case Element::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(v));
    case Element::kF64:
      return std::bit_cast<uint64_t>(v);
    default:
      if (saturate) v = std::clamp(v, -0x1p31, 0x1p31 - 1);
      // sums of these sizes are exact in float64
      return static_cast<uint32_t>(static_cast<int64_t>(v));
  }
}

/// Fragments of a wmma.mma, packed into Op::imm. Registers are listed in the order D, A, B, C.
struct Product {
  Element d, a, b, c;
  uint8_t d_registers, a_registers, b_registers;
  bool saturate, xor_bits, and_bits;
};
uint64_t Pack(const Product& p) {
  return static_cast<uint64_t>(p.d) | static_cast<uint64_t>(p.a) << 4 |
         static_cast<uint64_t>(p.b) << 8 | static_cast<uint64_t>(p.c) << 12 |
         uint64_t{p.d_registers} << 16 | uint64_t{p.a_registers} << 24 |
         uint64_t{p.b_registers} << 32 | uint64_t{p.saturate} << 40 | uint64_t{p.xor_bits} << 41 |
         uint64_t{p.and_bits} << 42;
}
Product UnpackProduct(uint64_t v) {
  return {static_cast<Element>(v & 15),
          static_cast<Element>(v >> 4 & 15),
          static_cast<Element>(v >> 8 & 15),
          static_cast<Element>(v >> 12 & 15),
          static_cast<uint8_t>(v >> 16),
          static_cast<uint8_t>(v >> 24),
          static_cast<uint8_t>(v >> 32),
          (v >> 40 & 1) != 0,
          (v >> 41 & 1) != 0,
          (v >> 42 & 1) != 0};
}

void MultiplyFragments(BlockState& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  const Options o = Unpack(op.target);
  const Product p = UnpackProduct(op.imm);
  static thread_local double a[kMaxElements];
  static thread_local double b[kMaxElements];
  double c[256];
  const auto read = [&](int first, int registers, int rows, int cols, Element e, bool accumulator,
                        double* to) {
    ForFragment(first, registers, rows, cols, Bits(e), accumulator,
                [&](int reg, int l, int i, int element) {
                  to[element] = Value(e, ReadSlot(x.Source(ListSlot(x, op, reg)), l, i, Bits(e)));
                });
  };
  read(p.d_registers, p.a_registers, o.rows, o.inner, p.a, false, a);
  read(p.d_registers + p.a_registers, p.b_registers, o.inner, o.cols, p.b, false, b);
  const int c_registers = op.list_size - p.d_registers - p.a_registers - p.b_registers;
  read(p.d_registers + p.a_registers + p.b_registers, c_registers, o.rows, o.cols, p.c, true, c);
  for (int i = 0; i < o.rows; ++i) {
    for (int j = 0; j < o.cols; ++j) {
      double sum = c[i * o.cols + j];
      for (int k = 0; k < o.inner; ++k) {
        const double u = a[i * o.inner + k];
        const double v = b[k * o.cols + j];
        sum += p.xor_bits ? (u != v ? 1.0 : 0.0) : u * v;
      }
      c[i * o.cols + j] = sum;
    }
  }
  ForFragment(0, p.d_registers, o.rows, o.cols, Bits(p.d), true, [&](int reg, int l, int i, int e) {
    WriteSlot(x.Slot(ListSlot(x, op, reg)), l, i, Bits(p.d), Rounded(p.d, c[e], p.saturate));
  });
  x.counting.total.tensor.AddProducts(2.0 * o.rows * o.cols * o.inner, Bits(p.a));
}

/// Registers of a fragment, by the ISA: float16 A and B always take 8, its accumulators 4, the rest
/// as many as needed.
uint8_t RegistersOf(Element e, int elements, bool accumulator) {
  if (e == Element::kF16) return accumulator ? 4 : 8;
  return static_cast<uint8_t>(std::max(1, elements * Bits(e) / (kLanes * std::max(32, Bits(e)))));
}

std::vector<Element> ElementsOf(const Form& form) {
  std::vector<Element> found;
  for (const std::string& modifier : form.instruction->modifiers) {
    for (const auto& [name, element] : kElements) {
      if (name == modifier) found.push_back(element);
    }
  }
  return found;
}

Handler ProductHandler(const Form& form, Op& op, Options o) {
  std::vector<Element> types = ElementsOf(form);
  if (types.size() == 2) types = {types[0], Element::kF16, Element::kF16, types[1]};
  if (types.size() != 4 || types[1] != types[2]) return nullptr;
  Product p{};
  p.d = types[0];
  p.a = types[1];
  p.b = types[2];
  p.c = types[3];
  p.d_registers = RegistersOf(p.d, o.rows * o.cols, true);
  p.a_registers = RegistersOf(p.a, o.rows * o.inner, false);
  p.b_registers = RegistersOf(p.b, o.inner * o.cols, false);
  p.saturate = form.Has("satfinite");
  p.xor_bits = form.Has("xor");
  p.and_bits = form.Has("and");
  if (p.a == Element::kB1 && (!form.Has("popc") || p.xor_bits == p.and_bits)) return nullptr;
  if (form.Has("rz") || form.Has("rm") || form.Has("rp")) return nullptr;
  size_t registers = 0;
  for (const ptx::Operand& operand : form.instruction->operands)
    registers += operand.elements.size();
  const size_t needed = size_t{p.d_registers} + p.a_registers + p.b_registers +
                        RegistersOf(p.c, o.rows * o.cols, true);
  if (registers != needed) return nullptr;
  op.target = Pack(o);
  op.imm = Pack(p);
  return MultiplyFragments;
}

}  // namespace

Handler WmmaHandler(const Form& form, Op& op) {
  int m = 0;
  int n = 0;
  int k = 0;
  for (const std::string& modifier : form.instruction->modifiers) {
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &m, &n, &k) == 3) break;
  }
  if (m <= 0 || n <= 0 || k <= 0 || m * k > kMaxElements || k * n > kMaxElements || m * n > 256 ||
      k > 128)
    return nullptr;
  Options o;
  o.rows = static_cast<uint8_t>(m);
  o.cols = static_cast<uint8_t>(n);
  o.inner = static_cast<uint8_t>(k);
  if (form.Has("mma")) return ProductHandler(form, op, o);
  const bool load = form.Has("load");
  const std::vector<Element> types = ElementsOf(form);
  if (types.size() != 1 || (!load && !form.Has("store"))) return nullptr;
  o.element = types[0];
  o.is_a = load && form.Has("a");
  o.is_b = load && form.Has("b");
  if (o.is_a) o.cols = o.inner;
  if (o.is_b) o.rows = o.inner;
  o.by_column = form.Has("col");
  if (!o.by_column && !form.Has("row")) return nullptr;
  const size_t registers = form.instruction->operands.size() < 2
                               ? 0
                               : form.instruction->operands[load ? 0 : 1].elements.size();
  if (registers != RegistersOf(o.element, o.rows * o.cols, !o.is_a && !o.is_b)) return nullptr;
  op.target = Pack(o);
  return load ? LoadFragment : StoreFragment;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
