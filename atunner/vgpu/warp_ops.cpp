// What lanes of a warp do together: shuffles, votes, matches, matrix loads and tensor-core products.
#include <algorithm>
#include <cmath>
#include <vector>

#include "atunner/model/dtype.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

/// Every executing lane must be named in the mask of a .sync instruction.
bool CheckMember(Exec& x, const Op& op, uint32_t mask, uint32_t members) {
  if ((mask & ~members) == 0) return true;
  Report(x, op, Hazard::Kind::kInvalidShuffle, std::countr_zero(mask & ~members),
         "executes a .sync instruction whose mask does not name it");
  return false;
}

enum ShuffleMode : uint8_t { kUp, kDown, kButterfly, kIndex };

void Shuffle(Exec& x, const Op& op, uint32_t mask) {
  uint32_t source[kLanes];
  std::memcpy(source, x.Source(op.src[0]), sizeof source);
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  const uint32_t members = x.Source(op.src[3])[std::countr_zero(mask)];
  if (x.check && !CheckMember(x, op, mask, members)) return;
  uint32_t* d = x.Slot(op.dst);
  uint32_t inside = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const int clamp = static_cast<int>(c[l] & 31u);
    const int segment = static_cast<int>((c[l] >> 8) & 31u);
    const int high = (l & segment) | (clamp & ~segment);
    const int low = l & segment;
    const int delta = static_cast<int>(b[l] & 31u);
    int from = l;
    bool valid = false;
    switch (op.variant) {
      case kUp:
        from = l - delta;
        valid = from >= high;
        break;
      case kDown:
        from = l + delta;
        valid = from <= high;
        break;
      case kButterfly:
        from = l ^ delta;
        valid = from <= high;
        break;
      default:
        from = low | (delta & ~segment);
        valid = from <= high;
        break;
    }
    if (!valid) from = l;
    if (valid) inside |= 1u << l;
    if (x.check && valid && !((mask >> from) & 1u)) {
      return Report(x, op, Hazard::Kind::kInvalidShuffle, l,
                    "shuffles from lane " + std::to_string(from) + ", which does not take part");
    }
    d[l] = source[from];
  }
  if (op.dst2 >= 0) {
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (inside & mask);
  }
  ++x.warp->sync_epoch;
}

enum VoteMode : uint8_t { kAll, kAny, kUni, kBallot };

void Vote(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t members = x.Source(op.src[1])[std::countr_zero(mask)];
  if (x.check && !CheckMember(x, op, mask, members)) return;
  const uint32_t p = (*x.Source(op.src[0]) ^ (op.imm ? ~0u : 0u)) & mask;
  uint32_t* d = x.Slot(op.dst);
  if (op.variant == kBallot) {
    ForLanes(mask, [&](int l) { d[l] = p; });
  } else {
    const bool holds = op.variant == kAll ? p == mask : op.variant == kAny ? p != 0 : (p == 0 || p == mask);
    *d = (*d & ~mask) | (holds ? mask : 0);
  }
  ++x.warp->sync_epoch;
}

template <class T, bool kAllEqual>
void Match(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  T values[kLanes];
  ForLanes(mask, [&](int l) { values[l] = Lane<T>::Get(a, l); });
  uint32_t* d = x.Slot(op.dst);
  const int first = std::countr_zero(mask);
  bool all = true;
  ForLanes(mask, [&](int l) { all = all && values[l] == values[first]; });
  ForLanes(mask, [&](int l) {
    uint32_t same = 0;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int k = std::countr_zero(m);
      if (values[k] == values[l]) same |= 1u << k;
    }
    d[l] = kAllEqual ? (all ? mask : 0u) : same;
  });
  if (op.dst2 >= 0) {
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (all ? mask : 0u);
  }
  ++x.warp->sync_epoch;
}

enum ReduceMode : uint8_t { kReduceAdd, kReduceMin, kReduceMax, kReduceAnd, kReduceOr, kReduceXor };

template <class T>
void Redux(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  T r = Lane<T>::Get(a, std::countr_zero(mask));
  for (uint32_t m = mask & (mask - 1); m != 0; m &= m - 1) {
    const T v = Lane<T>::Get(a, std::countr_zero(m));
    switch (op.variant) {
      case kReduceAdd:
        r = static_cast<T>(static_cast<uint32_t>(r) + static_cast<uint32_t>(v));
        break;
      case kReduceMin:
        r = std::min(r, v);
        break;
      case kReduceMax:
        r = std::max(r, v);
        break;
      case kReduceAnd:
        r = static_cast<T>(r & v);
        break;
      case kReduceOr:
        r = static_cast<T>(r | v);
        break;
      default:
        r = static_cast<T>(r ^ v);
    }
  }
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, r); });
  ++x.warp->sync_epoch;
}

void ActiveMask(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) { d[l] = mask; });
}

void Elect(Exec& x, const Op& op, uint32_t mask) {
  const auto leader = static_cast<uint32_t>(std::countr_zero(mask));
  if (op.dst != INT32_MIN) {
    uint32_t* d = x.Slot(op.dst);
    ForLanes(mask, [&](int l) { d[l] = leader; });
  }
  if (op.dst2 >= 0) {
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (1u << leader);
  }
}

void NoEffect(Exec&, const Op&, uint32_t) {}

// ---- matrix loads --------------------------------------------------------------------------------------------------
/// Reads one 8-byte-aligned row of 16 bytes through the ordinary checks: an 8×8 matrix row belongs to one lane's
/// address.
bool MatrixRow(Exec& x, const Op& op, int lane, const uint32_t*& row) {
  const uint32_t* a = x.Source(op.src[0]);
  uint64_t address = (op.narrow_address ? a[lane] : Lane<uint64_t>::Get(a, lane)) + op.imm;
  if ((address & kWindowMask) == kSharedWindow) address &= ~kWindowMask;
  if (address % 16 != 0) {
    Report(x, op, Hazard::Kind::kMisaligned, lane,
           "matrix row address " + std::to_string(address) + " is not a multiple of 16");
    return false;
  }
  if (address + 16 > x.shared.size()) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "matrix row at shared address " + std::to_string(address) + ", the block has " +
               std::to_string(x.shared.size()));
    return false;
  }
  row = reinterpret_cast<const uint32_t*>(x.shared.data() + address);
  if (!x.check) return true;
  for (uint64_t w = address / 4; w < address / 4 + 4; ++w) {
    SharedShadow& s = x.shadow[w];
    if (s.in_flight) {
      Report(x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
             "matrix load reads bytes of an asynchronous copy that was not waited for");
      return false;
    }
    if (s.initialised != 0xf) {
      Report(x, op, Hazard::Kind::kUninitialisedShared, lane,
             "matrix load reads shared memory before anything was written there");
      return false;
    }
    const bool own_warp = s.writer < 0xfffe && s.writer / kLanes == x.warp->index;
    if (s.write_epoch == x.epoch && !own_warp) {
      Report(x, op, Hazard::Kind::kRace, lane,
             "matrix load reads what thread " + std::to_string(s.writer) + " wrote at line " +
                 std::to_string(s.write_line) + " with no barrier between");
      return false;
    }
    s.reader = s.read_epoch == x.epoch && s.reader / kLanes != x.warp->index ? uint16_t{0xfffe}
                                                                             : static_cast<uint16_t>(x.ThreadOf(lane));
    s.read_epoch = x.epoch;
    s.read_sync = x.warp->sync_epoch;
    s.read_line = op.source_line ? op.source_line : op.line;
  }
  return true;
}

void CountMatrixRows(Exec& x, const uint32_t* const* rows, int matrices) {
  x.counts.shared_requests += 1;
  for (int i = 0; i < matrices; ++i) {
    int banks[32] = {};
    int worst = 1;
    for (int r = 0; r < 8; ++r) {
      const auto word =
          static_cast<uint64_t>(reinterpret_cast<const std::byte*>(rows[i * 8 + r]) - x.shared.data()) / 4;
      for (uint64_t k = 0; k < 4; ++k) worst = std::max(worst, ++banks[(word + k) % 32]);
    }
    x.counts.shared_wavefronts += static_cast<uint64_t>(worst);
  }
}

void LoadMatrix(Exec& x, const Op& op, uint32_t mask) {
  if (mask != ~0u)
    return Report(x, op, Hazard::Kind::kInvalidShuffle, std::countr_zero(~mask),
                  "ldmatrix needs all lanes of the warp");
  const int matrices = op.list_size;
  const uint32_t* rows[kLanes] = {};
  for (int r = 0; r < matrices * 8; ++r) {
    if (!MatrixRow(x, op, r, rows[r])) return;
  }
  const bool transposed = op.variant & 1;
  for (int i = 0; i < matrices; ++i) {
    uint32_t* d = x.Slot(x.kernel->lists[op.list + static_cast<size_t>(i)]);
    for (int l = 0; l < kLanes; ++l) {
      const int g = l / 4;
      const int t = l % 4;
      if (!transposed) {
        d[l] = rows[i * 8 + g][t];
      } else {  // lane holds column g, rows 2t and 2t + 1
        const auto half = [&](int r) { return (rows[i * 8 + r][g / 2] >> (16 * (g % 2))) & 0xffffu; };
        d[l] = half(2 * t) | half(2 * t + 1) << 16;
      }
    }
  }
  if (x.count) CountMatrixRows(x, rows, matrices);
}

// ---- tensor-core products ------------------------------------------------------------------------------------------
/// Operand layouts of mma.sync, from the PTX ISA's fragment tables.
struct MmaShape {
  int m = 16, n = 8, k = 16;
};

int32_t ListSlot(const Exec& x, const Op& op, int i) { return x.kernel->lists[op.list + static_cast<size_t>(i)]; }

template <bool kBrain>
float WidenHalf(uint32_t word, int half) {
  const auto bits = static_cast<uint16_t>(word >> (16 * half));
  return kBrain ? BFloat16ToFloat(bits) : HalfToFloat(bits);
}

/// Products of one warp. `kA`-registers hold A (row), then B (col), then C; D goes to the first four or two slots.
template <int kK>
struct Tile {
  float a[16][kK];
  float b[kK][8];
};

template <int kK>
void MultiplyTile(const Tile<kK>& t, float (&c)[16][8]) {
  for (int i = 0; i < 16; ++i) {
    // Sums in double, rounded once: more exact than the hardware, whose order and truncation are not documented.
    double sum[8] = {};
    for (int k = 0; k < kK; ++k) {
      for (int j = 0; j < 8; ++j) sum[j] += static_cast<double>(t.a[i][k]) * static_cast<double>(t.b[k][j]);
    }
    for (int j = 0; j < 8; ++j) c[i][j] = static_cast<float>(sum[j] + static_cast<double>(c[i][j]));
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

bool WholeWarp(Exec& x, const Op& op, uint32_t mask) {
  if (mask == ~0u) return true;
  Report(x, op, Hazard::Kind::kInvalidShuffle, std::countr_zero(~mask), "mma needs all lanes of the warp");
  return false;
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

/// variant bit 1: A unsigned, bit 2: B unsigned, bit 3: saturate.
template <int kK>
void MmaInt8(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  constexpr int kARegs = kK / 8;
  constexpr int kBRegs = kK / 16;
  int a[16][kK];
  int b[kK][8];
  const auto byte = [](uint32_t word, int i, bool is_unsigned) {
    const auto v = static_cast<uint8_t>(word >> (8 * i));
    return is_unsigned ? static_cast<int>(v) : static_cast<int>(static_cast<int8_t>(v));
  };
  for (int r = 0; r < kARegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < 4; ++i)
        a[l / 4 + 8 * (r & 1)][(l % 4) * 4 + i + 16 * (r >> 1)] = byte(s[l], i, op.variant & 2);
    }
  }
  for (int r = 0; r < kBRegs; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + kARegs + r));
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < 4; ++i) b[(l % 4) * 4 + i + 16 * r][l / 4] = byte(s[l], i, op.variant & 4);
    }
  }
  int64_t sums[16][8];
  for (int r = 0; r < 4; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + kARegs + kBRegs + r));
    for (int l = 0; l < kLanes; ++l) sums[l / 4 + 8 * (r >> 1)][(l % 4) * 2 + (r & 1)] = static_cast<int32_t>(s[l]);
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < kK; ++k) sums[i][j] += a[i][k] * b[k][j];
      if (op.variant & 8) sums[i][j] = std::clamp<int64_t>(sums[i][j], INT32_MIN, INT32_MAX);
    }
  }
  for (int r = 0; r < 4; ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    for (int l = 0; l < kLanes; ++l) d[l] = static_cast<uint32_t>(sums[l / 4 + 8 * (r >> 1)][(l % 4) * 2 + (r & 1)]);
  }
  x.counts.tensor_flops += 2.0 * 16 * 8 * kK;
}

void MmaDouble(Exec& x, const Op& op, uint32_t mask) {
  if (!WholeWarp(x, op, mask)) return;
  double a[8][4];
  double b[4][8];
  double c[8][8];
  const uint32_t* sa = x.Source(ListSlot(x, op, 2));
  const uint32_t* sb = x.Source(ListSlot(x, op, 3));
  for (int l = 0; l < kLanes; ++l) {
    a[l / 4][l % 4] = Lane<double>::Get(sa, l);
    b[l % 4][l / 4] = Lane<double>::Get(sb, l);
  }
  for (int r = 0; r < 2; ++r) {
    const uint32_t* s = x.Source(ListSlot(x, op, 4 + r));
    for (int l = 0; l < kLanes; ++l) c[l / 4][(l % 4) * 2 + r] = Lane<double>::Get(s, l);
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < 4; ++k) c[i][j] = std::fma(a[i][k], b[k][j], c[i][j]);
    }
  }
  for (int r = 0; r < 2; ++r) {
    uint32_t* d = x.Slot(ListSlot(x, op, r));
    for (int l = 0; l < kLanes; ++l) Lane<double>::Set(d, l, c[l / 4][(l % 4) * 2 + r]);
  }
  x.counts.tensor_flops += 2.0 * 8 * 8 * 4;
}

uint8_t IndexOf(const Form& form, std::initializer_list<std::string_view> names) {
  uint8_t i = 0;
  for (std::string_view name : names) {
    if (form.Has(name)) return i;
    ++i;
  }
  return 0xff;
}

}  // namespace

Handler WarpHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "shfl") {
    op.variant = IndexOf(form, {"up", "down", "bfly", "idx"});
    return form.Has("sync") && op.variant != 0xff ? Shuffle : nullptr;
  }
  if (opcode == "vote") {
    op.variant = IndexOf(form, {"all", "any", "uni", "ballot"});
    return form.Has("sync") && op.variant != 0xff ? Vote : nullptr;
  }
  if (opcode == "match") {
    if (form.Has("any")) return ptx::BitsOf(form.type) == 64 ? Match<uint64_t, false> : Match<uint32_t, false>;
    return ptx::BitsOf(form.type) == 64 ? Match<uint64_t, true> : Match<uint32_t, true>;
  }
  if (opcode == "redux") {
    op.variant = IndexOf(form, {"add", "min", "max", "and", "or", "xor"});
    if (op.variant == 0xff) return nullptr;
    return form.type == Type::kS32 ? Redux<int32_t> : form.type == Type::kF32 ? nullptr : Redux<uint32_t>;
  }
  if (opcode == "activemask") return ActiveMask;
  if (opcode == "elect") return Elect;
  if (opcode == "membar" || opcode == "fence" || opcode == "nanosleep" || opcode == "griddepcontrol") return NoEffect;
  return nullptr;
}

Handler TensorHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  const std::vector<std::string>& modifiers = form.instruction->modifiers;
  if (opcode == "ldmatrix") {
    if (!form.Has("m8n8") || !form.Has("b16")) return nullptr;
    op.variant = form.Has("trans");
    return LoadMatrix;
  }
  if (opcode != "mma" || !form.Has("sync") || form.Has("sp") || modifiers.size() < 4) return nullptr;
  // The last four types are D, A, B, C.
  std::vector<Type> types;
  for (const std::string& modifier : modifiers) {
    if (const Type type = ptx::ParseType(modifier); type != Type::kNone) types.push_back(type);
  }
  if (types.size() != 4) return nullptr;
  const bool half_acc = types[0] == Type::kF16;
  op.variant = static_cast<uint8_t>((half_acc ? 1 : 0) | (types[1] == Type::kU8 ? 2 : 0) |
                                    (types[2] == Type::kU8 ? 4 : 0) | (form.Has("satfinite") ? 8 : 0));
  if (form.Has("m8n8k4") && types[0] == Type::kF64) return MmaDouble;
  if (types[0] != types[3] || !form.Has("row") || !form.Has("col")) return nullptr;
  const bool k16 = form.Has("m16n8k16");
  const bool k8 = form.Has("m16n8k8");
  if (types[1] == Type::kF16) return k16 ? MmaHalf<false, 16> : k8 ? MmaHalf<false, 8> : nullptr;
  if (types[1] == Type::kBF16) return k16 ? MmaHalf<true, 16> : k8 ? MmaHalf<true, 8> : nullptr;
  if (types[1] == Type::kTF32) return k8 ? MmaTf32<8> : form.Has("m16n8k4") ? MmaTf32<4> : nullptr;
  if (types[1] == Type::kS8 || types[1] == Type::kU8)
    return form.Has("m16n8k32") ? MmaInt8<32> : k16 ? MmaInt8<16> : nullptr;
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
