// wgmma: products of a warp group, four warps, with operands that matrix descriptors find in shared
// memory.
#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/product.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr int kRows = 64;

/// The form of a wgmma; fits into Op::imm.
struct WgmmaForm {
  uint8_t blocks = 1;  ///< of eight columns
  TensorElement a = TensorElement::kF16;
  TensorElement b = TensorElement::kF16;
  Accumulator kind = Accumulator::kF32;
  bool a_in_registers : 1 = false;
  bool transposed_a : 1 = false;
  bool transposed_b : 1 = false;
  bool negated : 1 = false;  ///< the scales of A and B have different signs
  bool sparse : 1 = false;   ///< half of A's elements are there, and a register that says which
  uint8_t selector : 3 = 0;  ///< of the lanes that have that register
  std::array<uint8_t, 3> unused{};

  int n() const { return 8 * blocks; }
  int k() const { return StoredK() * (sparse ? 2 : 1); }
  int StoredK() const { return 2 * PerChunk(a); }
  int RowChunksOfB() const { return k() / PerChunk(b); }
  int Accumulators() const { return kind == Accumulator::kF16 ? n() / 4 : n() / 2; }
};
static_assert(sizeof(WgmmaForm) == sizeof(uint64_t));

/// Matrix descriptor of the PTX ISA.
struct Descriptor {
  uint32_t start = 0;
  uint32_t leading = 0;      ///< bytes
  uint32_t stride = 0;       ///< bytes
  uint32_t base_offset = 0;  ///< of the swizzling pattern, in rows of 128 bytes
  uint32_t width = 1;        ///< of a swizzled row, in chunks; 1 = no swizzling

  explicit Descriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4),
        base_offset(static_cast<uint32_t>(bits >> 49 & 7)) {
    static constexpr uint32_t kWidths[] = {1, 8, 4, 2};
    width = kWidths[bits >> 62];
  }

  /// Swizzling exchanges chunks by address bits 7 and up, whatever the matrix.
  uint32_t Address(uint32_t offset) const {
    const uint32_t address = start + offset;
    return address ^ (((address >> 7) - base_offset) & (width - 1)) << 4;
  }
  /// Rows of the matrix run along k: chunk of a row.
  uint32_t AlongK(int row, int chunk) const {
    const auto r = static_cast<uint32_t>(row);
    const auto c = static_cast<uint32_t>(chunk);
    return Address(r / 8 * stride + r % 8 * width * kChunkBytes + c % width * kChunkBytes +
                   c / width * leading);
  }
  /// Rows of the matrix are neighbours: chunk of eight of them, at k.
  uint32_t AcrossK(int chunk, int k) const {
    const auto c = static_cast<uint32_t>(chunk);
    const auto at = static_cast<uint32_t>(k);
    if (width == 1) return Address(c * stride + at % 8 * kChunkBytes + at / 8 * leading);
    return Address(c % width * kChunkBytes + c / width * leading + at % 8 * width * kChunkBytes +
                   at / 8 * stride);
  }
};

/// Words that a product reads; empty where nothing is checked.
using Reads = std::vector<WordRange>;

/// Chunks of one operand in shared memory, in the order of WidenRows or WidenTransposed…; false
/// after reporting.
bool FindChunks(BlockState& x, const Op& op, const Descriptor& d, bool transposed, int rows, int k,
                int row_chunks, std::vector<const std::byte*>& chunks, Reads& reads) {
  const AsyncIssuer by = IssuingGroup(x);
  chunks.clear();
  const int count = transposed ? rows / 8 * k : rows * row_chunks;
  for (int i = 0; i < count; ++i) {
    const uint32_t at = transposed ? d.AcrossK(i % (rows / 8), i / (rows / 8))
                                   : d.AlongK(i / row_chunks, i % row_chunks);
    if (uint64_t{at} + kChunkBytes > x.shared.bytes.size()) {
      Report(x, op, Hazard::Kind::kOutOfBounds, 0,
             "matrix descriptor reaches shared address " + Hex(at) + ", the block has " +
                 std::to_string(x.shared.bytes.size()));
      return false;
    }
    if (x.checks.any && !AsyncRead(x, op, 0, by, at, kChunkBytes)) return false;
    if (x.checks.any) reads.push_back({at / 4, kChunkBytes / 4});
    chunks.push_back(x.shared.bytes.data() + at);
  }
  return true;
}

/// Fragments of A in the warps' registers: as those of mma, 16 rows a warp.
void FindFragments(const BlockState& x, const int32_t* registers,
                   std::vector<const std::byte*>& chunks) {
  chunks.clear();
  const uint32_t first = x.warp->index & ~3u;
  for (uint32_t row = 0; row < kRows; ++row) {
    const Warp& warp = x.warps[first + row / 16];
    for (uint32_t c = 0; c < 2; ++c) {
      const int32_t slot = registers[2 * c + row % 16 / 8];
      chunks.push_back(reinterpret_cast<const std::byte*>(warp.Slot(slot) + row % 8 * 4));
    }
  }
}

/// Buffers that one thread uses again and again.
struct Buffers {
  std::vector<const std::byte*> chunks;
  std::vector<float> a, stored, rows, b;
  std::vector<uint32_t*> accumulators;
  Reads reads;
};

/// Fills t.a; false after reporting.
bool LoadA(BlockState& x, const Op& op, const WgmmaForm& f, Buffers& t) {
  const Descriptor descriptor(Lane<uint64_t>::Get(x.Source(op.src[0]), 0));
  t.a.resize(static_cast<size_t>(kRows * f.k()));
  t.stored.resize(f.sparse ? static_cast<size_t>(kRows * f.StoredK()) : 0);
  if (f.a_in_registers)
    FindFragments(x, x.kernel->lists.data() + op.list + f.Accumulators(), t.chunks);
  else if (!FindChunks(x, op, descriptor, f.transposed_a, kRows, f.StoredK(), 2, t.chunks, t.reads))
    return false;
  float* to = f.sparse ? t.stored.data() : t.a.data();
  if (f.transposed_a)
    WidenTransposedA(f.a, t.chunks.data(), kRows, f.StoredK(), to);
  else
    WidenRows(f.a, t.chunks.data(), kRows, 2, to);
  const uint32_t first = x.warp->index & ~3u;
  for (uint32_t w = 0; f.sparse && w < 4; ++w) {
    const SparseIndices indices(f.a, f.k(), f.selector, x.warps[first + w].Slot(op.src[3]));
    Spread(indices, to + 16 * w * static_cast<uint32_t>(f.StoredK()), f.k(),
           t.a.data() + 16 * w * static_cast<uint32_t>(f.k()));
  }
  return true;
}

/// Fills t.b, likewise.
bool LoadB(BlockState& x, const Op& op, const WgmmaForm& f, Buffers& t) {
  const Descriptor descriptor(Lane<uint64_t>::Get(x.Source(op.src[1]), 0));
  const int row_chunks = f.RowChunksOfB();
  t.rows.resize(static_cast<size_t>(f.n() * f.k()));
  t.b.resize(t.rows.size());
  if (!FindChunks(x, op, descriptor, f.transposed_b, f.n(), f.k(), row_chunks, t.chunks, t.reads))
    return false;
  if (f.transposed_b) {
    WidenTransposedB(f.b, t.chunks.data(), f.n(), f.k(), t.b.data());
  } else {
    WidenRows(f.b, t.chunks.data(), f.n(), row_chunks, t.rows.data());
    ArrangeB(t.rows.data(), f.n(), f.k(), t.b.data());
  }
  return true;
}

/// Until it is waited for, the product holds its registers and the words that it reads.
void NotePending(BlockState& x, const Op& op, Reads& reads) {
  const AsyncIssuer by = IssuingGroup(x);
  for (Warp& warp : std::span(x.warps).subspan(by.first_warp, by.warps))
    HoldRegisters(warp, *x.kernel, op);
  x.watch = true;
  x.async.reads.push_back({by.accessor, x.warp->product_groups, LineOf(x, op), std::move(reads)});
}

bool FragmentsInUse(BlockState& x, const Op& op, const WgmmaForm& f) {
  const Held* held = x.warp->held.data();
  const int32_t* slots = x.kernel->lists.data() + op.list + f.Accumulators();
  if (x.warp->products.empty() ||
      std::none_of(slots, slots + 4, [&](int32_t s) { return s > 0 && held[s] == kWritten; }))
    return false;
  Report(x, op, Hazard::Kind::kRace, 0,
         "multiplies a register that a wgmma still writes, before wgmma.wait_group");
  return true;
}

/// Runs once for the four warps. The result is written at once; the checks report accesses before
/// the wait.
void Product(BlockState& x, const Op& op, uint32_t) {
  static thread_local Buffers t;
  const auto f = std::bit_cast<WgmmaForm>(op.imm);
  const uint32_t predicate = *x.Source(op.src[2]);
  if (predicate != 0 && predicate != ~0u)
    return Report(x, op, Hazard::Kind::kTrap, 0, "passes a scale of D that differs between lanes");
  t.reads.clear();
  if (x.checks.any && f.a_in_registers && FragmentsInUse(x, op, f)) return;
  if (!LoadA(x, op, f, t) || !LoadB(x, op, f, t)) return;
  t.accumulators.clear();
  const uint32_t first = x.warp->index & ~3u;
  for (uint32_t w = first; w < first + 4; ++w) {
    for (int i = 0; i < f.Accumulators(); ++i) {
      const int32_t slot = x.kernel->lists[op.list + static_cast<size_t>(i)];
      t.accumulators.push_back(x.warps[w].Slot(slot));
    }
  }
  TileProduct p{kRows, f.n(), f.k(), t.a.data(), t.b.data(), LeastPower(f.a), LeastPower(f.b)};
  p.sparse = f.sparse;
  p.subtract = f.negated;
  p.add = (predicate != 0) != op.sign_extend;
  p.kind = f.kind;
  p.d = t.accumulators.data();
  p.c = p.d;
  p.least_a != 0 && p.kind == Accumulator::kF32 ? MultiplyTileOfFp8(p) : MultiplyTile(p);
  const double flops = 2.0 * kRows * f.n() * f.StoredK();
  x.counting.total.tensor.flops += flops;
  x.counting.total.tensor.wgmma_work += flops * BitsOf(f.a) / 16;
  if (x.counting.enabled) {
    const auto wavefronts = static_cast<uint64_t>((f.a_in_registers ? 0 : kRows) + f.n()) / 4;
    x.counting.total.shared.wavefronts += wavefronts;
    x.counting.total.shared.async_wavefronts += wavefronts;
  }
  if (x.checks.any) NotePending(x, op, t.reads);
}

void NoEffect(BlockState&, const Op&, uint32_t) {}

void Commit(BlockState& x, const Op&, uint32_t) { ++x.warp->product_groups; }

/// All but the newest `imm` groups are over. One warp of a group waits for the products of all
/// four.
void Wait(BlockState& x, const Op& op, uint32_t) {
  if (!x.checks.any) return;
  const uint32_t groups = x.warp->product_groups;
  const uint32_t over = groups > op.imm ? groups - static_cast<uint32_t>(op.imm) : 0;
  ReleaseRegisters(*x.warp, *x.kernel, over);
  x.watch = x.counting.by_line || !x.warp->products.empty() || x.shuffled.tracked;
  FinishReads(x, IssuingGroup(x).accessor, over);
}

/// Types D, A, B and the shape; false when they do not go together.
bool ReadTypes(const Form& form, WgmmaForm& f) {
  int m = 0, n = 0, k = 0;
  std::vector<std::string> types;
  for (const std::string& modifier : form.instruction->modifiers) {
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &m, &n, &k) == 3) continue;
    if (FindTensorElement(modifier) || modifier == "f32" || modifier == "s32")
      types.push_back(modifier);
  }
  if (types.size() != 3) return false;
  const auto a = FindTensorElement(types[1]);
  const auto b = FindTensorElement(types[2]);
  const auto kind = a && b ? AccumulatorOf(types[0], *a, *b, form.Has("satfinite")) : std::nullopt;
  if (!kind) return false;
  f.a = *a;
  f.b = *b;
  f.kind = *kind;
  f.blocks = static_cast<uint8_t>(n / 8);
  const bool integer = types[0] == "s32";
  const bool columns = n >= 8 && n <= 256 && n % 8 == 0 && (!integer || n < 32 || n % 16 == 0);
  if (*a == TensorElement::kB1 && !(form.Has("and") && form.Has("popc"))) return false;
  return m == kRows && columns && k == f.k() && BitsOf(*a) != 4;
}

/// Two bits per stored element: of wide ones a row's fit into two of four lanes, of 8-bit ones they
/// take all.
bool ReadSelector(const ptx::Operand& operand, WgmmaForm& f) {
  const uint64_t choices = BitsOf(f.a) >= 16 ? 2 : 1;
  if (operand.kind != ptx::Operand::Kind::kImmediate || operand.bits >= choices ||
      f.a == TensorElement::kB1)
    return false;
  f.selector = static_cast<uint8_t>(operand.bits) & 7u;
  return true;
}

}  // namespace

/// Fills Op::imm of mma_async from the form; the decoder reads the operands that follow.
Handler WgmmaHandler(const Form& form, Op& op) {
  if (!form.Has("sync") || !form.Has("aligned")) return nullptr;
  op.flow = Flow::kAligned;
  if (form.Has("fence")) return NoEffect;
  if (form.Has("commit_group")) return Commit;
  if (form.Has("wait_group")) return Wait;
  if (!form.Has("mma_async")) return nullptr;
  op.target = kWholeGroup;
  const auto& operands = form.instruction->operands;
  WgmmaForm f;
  f.sparse = form.Has("sp");
  const size_t fixed = f.sparse ? 6 : 4;  // operands before the scales
  if (operands.size() < fixed || !ReadTypes(form, f)) return nullptr;
  if (f.sparse && !ReadSelector(operands[4], f)) return nullptr;
  f.a_in_registers = operands[1].kind == ptx::Operand::Kind::kVector;
  std::array<int64_t, 4> options{1, 1, 0, 0};  // scale-a, scale-b, trans-a, trans-b
  const bool integer = f.kind == Accumulator::kS32 || f.kind == Accumulator::kS32Saturating;
  const bool transposes = BitsOf(f.a) == 16;
  const size_t given = integer ? 0 : transposes ? (f.a_in_registers ? 3 : 4) : 2;
  if (operands.size() != fixed + given) return nullptr;
  for (size_t i = 0; i < given; ++i) {
    const ptx::Operand& operand = operands[fixed + i];
    if (operand.kind != ptx::Operand::Kind::kImmediate) return nullptr;
    options[given == 3 && i == 2 ? 3 : i] = static_cast<int64_t>(operand.bits);
  }
  const auto sign = [](int64_t v) { return v == 1 || v == -1; };
  const auto flag = [](int64_t v) { return v == 0 || v == 1; };
  if (!sign(options[0]) || !sign(options[1]) || !flag(options[2]) || !flag(options[3]))
    return nullptr;
  f.negated = options[0] != options[1];
  f.transposed_a = options[2] != 0;
  f.transposed_b = options[3] != 0;
  op.imm = std::bit_cast<uint64_t>(f);
  op.list_size = static_cast<uint8_t>(f.Accumulators());  // as many as the decoder must find
  return Product;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
