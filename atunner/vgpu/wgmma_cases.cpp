#include "atunner/vgpu/wgmma_cases.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "atunner/base/random.h"
#include "atunner/model/dtype.h"

namespace atunner::vgpu {
namespace {

constexpr int kRows = 64;
constexpr int kThreads = 128;

int BitsOfType(const std::string& type) {
  if (type == "b1") return 1;
  if (type == "tf32") return 32;
  return type == "f16" || type == "bf16" ? 16 : 8;
}
int InnerOf(const WgmmaCase& one) { return 256 / BitsOfType(one.a); }
int AccumulatorsOf(const WgmmaCase& one) { return one.d == "f16" ? one.n / 4 : one.n / 2; }

/// Small integers, so that every sum is exact in every accumulator.
uint32_t Encode(const std::string& type, int v) {
  if (type == "f16") return FloatToHalf(static_cast<float>(v));
  if (type == "bf16") return FloatToBFloat16(static_cast<float>(v));
  if (type == "tf32" || type == "f32") return std::bit_cast<uint32_t>(static_cast<float>(v));
  if (type == "s8" || type == "u8") return static_cast<uint8_t>(v);
  if (type == "b1" || type == "s32") return static_cast<uint32_t>(v);
  if (v == 0) return 0;
  const int mantissa = type == "e4m3" ? 3 : 2;
  const int bias = type == "e4m3" ? 7 : 15;
  const int exponent = std::bit_width(static_cast<unsigned>(std::abs(v))) - 1;
  const int fraction = (std::abs(v) << mantissa >> exponent) - (1 << mantissa);
  return static_cast<uint32_t>((v < 0 ? 0x80 : 0) | (exponent + bias) << mantissa | fraction);
}

int Draw(Random& random, const std::string& type) {
  if (type == "b1") return static_cast<int>(random.Below(2));
  if (type == "u8") return static_cast<int>(random.Below(256));
  if (type == "s8") return static_cast<int>(random.Below(256)) - 128;
  return static_cast<int>(random.Below(9)) - 4;
}

using Matrix = std::vector<std::vector<int>>;  // [m or n][k]
Matrix DrawMatrix(Random& random, const std::string& type, int rows, int inner) {
  Matrix matrix(static_cast<size_t>(rows), std::vector<int>(static_cast<size_t>(inner)));
  for (auto& row : matrix) {
    for (int& v : row) v = Draw(random, type);
  }
  return matrix;
}

/// One operand in shared memory. Bytes are counted from `start`, which swizzled layouts align to 1024.
struct Placement {
  int start = 0;
  int leading = 0;
  int stride = 0;
  int swizzle = 0;
  int skip = 0;  ///< bytes between start and the descriptor's start address

  uint64_t Descriptor() const {
    const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return static_cast<uint64_t>(start + skip) / 16 | static_cast<uint64_t>(leading) / 16 << 16 |
           static_cast<uint64_t>(stride) / 16 << 32 | mode << 62;
  }
};

/// Chunk of 16 bytes in row `line` of a swizzled pattern: figures of the ISA, by rows instead of address bits.
int SwizzledChunk(int swizzle, int line, int chunk) {
  return swizzle == 128 ? chunk ^ line % 8 : swizzle == 64 ? chunk ^ line / 2 % 4 : chunk ^ line / 4 % 2;
}

/// Where a byte of the matrix lies: `major` bytes along the contiguous direction, `minor` lines across it.
int ByteAt(const Placement& p, bool transposed, int major, int minor) {
  if (p.swizzle == 0) {  // cores of 8 lines of 16 bytes
    const int core =
        transposed ? major / 16 * p.stride + minor / 8 * p.leading : minor / 8 * p.stride + major / 16 * p.leading;
    return p.start + core + minor % 8 * 16 + major % 16;
  }
  major += p.skip;
  const int line = minor % 8;
  const int atoms = minor / 8 * p.stride + major / p.swizzle * p.leading;
  const int chunk = SwizzledChunk(p.swizzle, line, major % p.swizzle / 16);
  return p.start + atoms + line * p.swizzle + chunk * 16 + major % 16;
}

void SetBits(std::vector<uint32_t>& image, int64_t bit, int bits, uint32_t value) {
  uint32_t& word = image[static_cast<size_t>(bit / 32)];
  const auto shift = static_cast<uint32_t>(bit % 32);
  const uint32_t mask = (bits == 32 ? ~0u : (1u << bits) - 1) << shift;
  word = (word & ~mask) | (value << shift & mask);
}

void Place(const Matrix& matrix, const std::string& type, const Placement& p, bool transposed,
           std::vector<uint32_t>& image) {
  const int bits = BitsOfType(type);
  for (size_t row = 0; row < matrix.size(); ++row) {
    for (size_t k = 0; k < matrix[row].size(); ++k) {
      const int across = static_cast<int>(transposed ? k : row);
      const int64_t along = static_cast<int64_t>(transposed ? row : k) * bits;
      const int byte = ByteAt(p, transposed, static_cast<int>(along / 8), across);
      SetBits(image, int64_t{byte} * 8 + along % 8, bits, Encode(type, matrix[row][k]));
    }
  }
}

/// Gaps between the parts, so that a wrong stride reads something else.
Placement Layout(int start, int rows, int swizzle, bool transposed, int k_step) {
  Placement p{start, 0, 0, swizzle, 0};
  if (swizzle == 0) {
    const int cores = transposed ? rows / 8 : 2;  // along the contiguous direction
    p.leading = transposed ? 128 * cores + 16 : 128;
    p.stride = transposed ? 128 : 256 + 32;
  } else if (transposed) {  // 16 lines of k, atoms along m or n one behind the other
    p.stride = 8 * swizzle;
    p.leading = 2 * 8 * swizzle;
  } else {
    p.stride = 8 * swizzle;
    p.skip = k_step * 32 % swizzle;
  }
  return p;
}

struct Place2 {
  int row = 0, column = 0;
};
/// The ISA's fragment table of D: value `i` of a thread.
Place2 PlaceOfD(int thread, int i) {
  const int lane = thread % 32;
  return {thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

std::vector<uint32_t> FragmentOfA(const Matrix& a, const std::string& type, int thread) {
  const int bits = BitsOfType(type);
  const int per = 32 / bits;
  std::vector<uint32_t> registers(4);
  for (int r = 0; r < 4; ++r) {
    const auto row = static_cast<size_t>(thread / 32 * 16 + thread % 32 / 4 + r % 2 * 8);
    for (int i = 0; i < per; ++i) {
      const auto k = static_cast<size_t>(thread % 4 * per + i + r / 2 * 4 * per);
      SetBits(registers, r * 32 + i * bits, bits, Encode(type, a[row][k]));
    }
  }
  return registers;
}

std::string Registers(const char* name, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
  return list + "}";
}

std::string Mnemonic(const WgmmaCase& one) {
  return std::string("wgmma.mma_async.sync.aligned.m64n") + std::to_string(one.n) + "k" + std::to_string(InnerOf(one)) +
         (one.saturate ? ".satfinite" : "") + "." + one.d + "." + one.a + "." + one.b +
         (one.a == "b1" ? ".and.popc" : "");
}

std::string Options(const WgmmaCase& one) {
  if (one.d == "s32") return "";
  std::string text = ", " + std::to_string(one.sign_a) + ", " + std::to_string(one.sign_b);
  if (BitsOfType(one.a) != 16) return text;
  if (!one.a_in_registers) text += one.transposed_a ? ", 1" : ", 0";
  return text + (one.transposed_b ? ", 1" : ", 0");
}

std::string Kernel(const WgmmaCase& one, const Placement& a, const Placement& b, int bytes) {
  const int accumulators = AccumulatorsOf(one);
  const int per_thread = 4 * (accumulators + (one.a_in_registers ? 4 : 0));
  std::string load;
  std::string store;
  for (int i = 0; i < accumulators; ++i) {
    load += "  ld.global.b32 %d" + std::to_string(i) + ", [%mine+" + std::to_string(4 * i) + "];\n";
    store += "  st.global.b32 [%to+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  }
  for (int i = 0; one.a_in_registers && i < 4; ++i)
    load += "  ld.global.b32 %a" + std::to_string(i) + ", [%mine+" + std::to_string(4 * (accumulators + i)) + "];\n";
  const std::string size = std::to_string(bytes);
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry product(.param .u64 input, .param .u64 output)\n{\n"
         "  .shared .align 1024 .b8 tile[" +
         size +
         "];\n"
         "  .reg .pred %more, %add;\n  .reg .b32 %d<128>, %a<4>, %v<4>, %tid, %i, %at, %start;\n"
         "  .reg .b64 %in, %from, %mine, %to, %base, %da, %db;\n"
         "  ld.param.u64 %in, [input];\n  ld.param.u64 %to, [output];\n  mov.u32 %tid, %tid.x;\n"
         "  mov.u32 %start, tile;\n  mul.lo.u32 %i, %tid, 16;\nFILL:\n  cvt.u64.u32 %from, %i;\n"
         "  add.u64 %from, %from, %in;\n  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%from];\n"
         "  add.u32 %at, %start, %i;\n  st.shared.v4.u32 [%at], {%v0, %v1, %v2, %v3};\n"
         "  add.u32 %i, %i, 2048;\n  setp.lt.u32 %more, %i, " +
         size +
         ";\n  @%more bra FILL;\n"
         "  fence.proxy.async;\n  bar.sync 0;\n  mad.wide.u32 %mine, %tid, " +
         std::to_string(per_thread) + ", %in;\n  add.u64 %mine, %mine, " + size + ";\n  mad.wide.u32 %to, %tid, " +
         std::to_string(4 * accumulators) + ", %to;\n" + load +
         "  shr.u32 %start, %start, 4;\n  cvt.u64.u32 %base, %start;\n  add.u64 %da, %base, " +
         std::to_string(static_cast<int64_t>(a.Descriptor())) + ";\n  add.u64 %db, %base, " +
         std::to_string(static_cast<int64_t>(b.Descriptor())) + ";\n  setp.ne.u32 %add, " + (one.add ? "1" : "0") +
         ", 0;\n  wgmma.fence.sync.aligned;\n  " + Mnemonic(one) + " " + Registers("d", accumulators) + ", " +
         (one.a_in_registers ? Registers("a", 4) : "%da") + ", %db, %add" + Options(one) +
         ";\n  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n" + store + "  ret;\n}\n";
}

}  // namespace

std::string WgmmaCase::Name() const {
  return Mnemonic(*this) + " A " + (a_in_registers ? "in registers" : "swizzle " + std::to_string(swizzle_a)) +
         (transposed_a ? " transposed" : "") + ", B swizzle " + std::to_string(swizzle_b) +
         (transposed_b ? " transposed" : "") + ", step " + std::to_string(k_step) + Options(*this) +
         (add ? "" : ", without C");
}

WgmmaData MakeWgmmaData(const WgmmaCase& one) {
  Random random(static_cast<uint64_t>(one.n * 1000 + one.swizzle_a + one.swizzle_b));
  const int inner = InnerOf(one);
  const Matrix a = DrawMatrix(random, one.a, kRows, inner);
  const Matrix b = DrawMatrix(random, one.b, one.n, inner);
  const Placement at_a = Layout(0, kRows, one.swizzle_a, one.transposed_a, one.k_step);
  // The longest layout of A has 8 KiB.
  const Placement at_b = Layout(8192, one.n, one.swizzle_b, one.transposed_b, one.k_step);
  const int bytes = 8192 + 40960 - 2048;
  WgmmaData data;
  data.input.resize(static_cast<size_t>(bytes) / 4);
  for (uint32_t& word : data.input) word = 0x3c3c3c3c;  // a number of every type
  if (!one.a_in_registers) Place(a, one.a, at_a, one.transposed_a, data.input);
  Place(b, one.b, at_b, one.transposed_b, data.input);
  const int accumulators = AccumulatorsOf(one);
  const int64_t highest = one.saturate ? INT32_MAX : INT64_MAX;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::vector<uint32_t> c(static_cast<size_t>(accumulators));
    std::vector<uint32_t> d(c.size());
    for (int i = 0; i < one.n / 2; ++i) {
      const auto [row, column] = PlaceOfD(thread, i);
      const int before = one.saturate ? INT32_MAX - 5 : static_cast<int>(random.Below(99)) - 49;
      int64_t sum = one.add ? before : 0;
      for (size_t k = 0; k < static_cast<size_t>(inner); ++k)
        sum += one.sign_a * one.sign_b * a[static_cast<size_t>(row)][k] * b[static_cast<size_t>(column)][k];
      const auto result = static_cast<int>(std::min(sum, highest));
      const int bits = one.d == "f16" ? 16 : 32;
      SetBits(c, int64_t{i} * bits, bits, Encode(one.d, before));
      SetBits(d, int64_t{i} * bits, bits, Encode(one.d, result));
    }
    data.input.insert(data.input.end(), c.begin(), c.end());
    data.expected.insert(data.expected.end(), d.begin(), d.end());
    if (!one.a_in_registers) continue;
    const std::vector<uint32_t> fragment = FragmentOfA(a, one.a, thread);
    data.input.insert(data.input.end(), fragment.begin(), fragment.end());
  }
  data.ptx = Kernel(one, at_a, at_b, bytes);
  return data;
}

std::vector<WgmmaCase> WgmmaCases() {
  std::vector<WgmmaCase> cases;
  const char* types[][3] = {{"f16", "f16", "f32"},   {"f16", "f16", "f16"},   {"bf16", "bf16", "f32"},
                            {"tf32", "tf32", "f32"}, {"e4m3", "e4m3", "f32"}, {"e4m3", "e5m2", "f32"},
                            {"e5m2", "e4m3", "f16"}, {"e5m2", "e5m2", "f32"}, {"s8", "s8", "s32"},
                            {"s8", "u8", "s32"},     {"u8", "u8", "s32"},     {"b1", "b1", "s32"}};
  const int widths[] = {8, 16, 24, 64, 112, 256};
  size_t turn = 0;
  for (const auto& [a, b, d] : types) {
    const bool half = BitsOfType(a) == 16;
    for (int swizzle : {0, 32, 64, 128}) {
      for (int order = 0; order < (half ? 4 : 1); ++order) {
        WgmmaCase one{a, b, d, widths[turn++ % std::size(widths)], swizzle, swizzle};
        one.transposed_a = order & 1;
        one.transposed_b = order & 2;
        // Atoms along m and n are 128 bytes at most: a narrower matrix fills a part.
        if (one.transposed_b && one.n * 2 < swizzle) one.n = 64;
        if (one.transposed_b && one.n * 2 % std::max(swizzle, 1) != 0) one.n = 128;
        one.k_step = static_cast<int>(turn % 4);
        one.add = turn % 3 != 0;
        if (one.d != "s32") one.sign_a = turn % 5 == 0 ? -1 : 1, one.sign_b = turn % 7 == 0 ? -1 : 1;
        cases.push_back(one);
        one.a_in_registers = true;
        one.transposed_a = false;
        one.add = true;
        if (order % 2 == 0) cases.push_back(one);
      }
    }
  }
  cases.push_back({"s8", "s8", "s32", 32});
  cases.back().saturate = true;
  cases.push_back({"f16", "f16", "f32", 128, 128, 64});
  return cases;
}

std::vector<std::string> CheckWgmma(const std::vector<WgmmaCase>& cases, const WgmmaRunner& run) {
  std::vector<std::string> wrong;
  for (const WgmmaCase& one : cases) {
    const WgmmaData data = MakeWgmmaData(one);
    const auto got = run(data);
    if (!got) {
      wrong.push_back(one.Name() + ": " + got.error().ToString());
      continue;
    }
    size_t different = 0;
    size_t first = 0;
    for (size_t i = data.expected.size(); i-- > 0;) {
      if ((*got)[i] != data.expected[i]) ++different, first = i;
    }
    if (different == 0) continue;
    const auto per_thread = static_cast<size_t>(AccumulatorsOf(one));
    wrong.push_back(one.Name() + ": " + std::to_string(different) + " of " + std::to_string(data.expected.size()) +
                    " words differ, first register " + std::to_string(first % per_thread) + " of thread " +
                    std::to_string(first / per_thread));
  }
  return wrong;
}

}  // namespace atunner::vgpu
