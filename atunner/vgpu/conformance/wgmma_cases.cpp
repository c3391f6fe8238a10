#include "atunner/vgpu/conformance/wgmma_cases.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "atunner/base/random.h"
#include "atunner/model/value/dtype.h"

namespace atunner::vgpu {
namespace {

constexpr int kRows = 64;
constexpr int kThreads = 128;

int BitsOfType(const std::string& type) {
  if (type == "b1") return 1;
  if (type == "s4" || type == "u4") return 4;
  if (type == "tf32" || type == "f32" || type == "s32") return 32;
  return type == "f16" || type == "bf16" ? 16 : 8;
}
int StoredInnerOf(const WgmmaCase& one) { return 256 / BitsOfType(one.a); }
int InnerOf(const WgmmaCase& one) { return StoredInnerOf(one) * (one.sparse ? 2 : 1); }
int AccumulatorsOf(const WgmmaCase& one) { return one.d == "f16" ? one.n / 4 : one.n / 2; }

/// Small integers, so that every sum is exact in every accumulator.
uint32_t Encode(const std::string& type, int v) {
  if (type == "f16") return FloatToHalf(static_cast<float>(v));
  if (type == "bf16") return FloatToBFloat16(static_cast<float>(v));
  if (type == "tf32" || type == "f32") return std::bit_cast<uint32_t>(static_cast<float>(v));
  if (type == "s8" || type == "u8") return static_cast<uint8_t>(v);
  if (type == "s4" || type == "u4") return static_cast<uint32_t>(v) & 15u;
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
  if (type == "u4") return static_cast<int>(random.Below(16));
  if (type == "s4") return static_cast<int>(random.Below(16)) - 8;
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

/// A as a product sees it, the elements of it that are stored, and each thread's word that says
/// which they are.
struct SparseMatrix {
  Matrix dense, stored;
  std::vector<uint32_t> indices = std::vector<uint32_t>(kThreads);
};

/// Notes two bits of a row, the `i`-th such pair, where the ISA's figures have them: rows of 32
/// bits in halves of words, the lower ones those of rows 0 to 7 of a warp; rows of 64 bits in words
/// of lanes that take turns.
void NoteIndex(const WgmmaCase& one, int row, int i, uint32_t index, std::vector<uint32_t>& words) {
  const int lane = row / 16 * 32 + row % 8 * 4;
  const int upper = row % 16 / 8;
  if (BitsOfType(one.a) >= 16)
    words[static_cast<size_t>(lane + 2 * one.selector + i / 8)] |= index
                                                                   << (16 * upper + 2 * (i % 8));
  else
    words[static_cast<size_t>(lane + i / 16 * 2 + upper)] |= index << 2 * (i % 16);
}

/// One of two TF32 is there, of other types two of four.
SparseMatrix DrawSparse(Random& random, const WgmmaCase& one) {
  SparseMatrix a;
  a.stored = DrawMatrix(random, one.a, kRows, StoredInnerOf(one));
  a.dense.assign(kRows, std::vector<int>(static_cast<size_t>(InnerOf(one))));
  for (int row = 0; row < kRows; ++row) {
    const auto& stored = a.stored[static_cast<size_t>(row)];
    auto& dense = a.dense[static_cast<size_t>(row)];
    for (int group = 0; group < StoredInnerOf(one); ++group) {
      const auto at = static_cast<size_t>(group);
      if (one.a == "tf32") {
        const auto second = static_cast<uint32_t>(random.Below(2));
        dense[2 * at + second] = stored[at];
        NoteIndex(one, row, 2 * group, second ? 2 : 0, a.indices);
        NoteIndex(one, row, 2 * group + 1, second ? 3 : 1, a.indices);
      } else if (group % 2 == 0) {
        const auto first = static_cast<uint32_t>(random.Below(3));
        const auto second = first + 1 + static_cast<uint32_t>(random.Below(3 - first));
        dense[2 * at + first] = stored[at];
        dense[2 * at + second] = stored[at + 1];
        NoteIndex(one, row, group, first, a.indices);
        NoteIndex(one, row, group + 1, second, a.indices);
      }
    }
  }
  return a;
}

/// One operand in shared memory. Bytes are counted from `start`, which swizzled layouts align to
/// 1024.
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

/// Chunk of 16 bytes in row `line` of a swizzled pattern: figures of the ISA, by rows instead of
/// address bits.
int SwizzledChunk(int swizzle, int line, int chunk) {
  return swizzle == 128  ? chunk ^ line % 8
         : swizzle == 64 ? chunk ^ line / 2 % 4
                         : chunk ^ line / 4 % 2;
}

/// Where a byte of the matrix lies: `major` bytes along the contiguous direction, `minor` lines
/// across it.
int ByteAt(const Placement& p, bool transposed, int major, int minor) {
  if (p.swizzle == 0) {  // cores of 8 lines of 16 bytes
    const int core = transposed ? major / 16 * p.stride + minor / 8 * p.leading
                                : minor / 8 * p.stride + major / 16 * p.leading;
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

/// Gaps between the parts, so that a wrong stride reads something else. `k_bytes` are those of a
/// row along k.
Placement Layout(int start, int rows, int swizzle, bool transposed, int k_step, int k_bytes) {
  Placement p{start, 0, 0, swizzle, 0};
  if (swizzle == 0) {
    const int cores = transposed ? rows / 8 : k_bytes / 16;  // along the contiguous direction
    p.leading = transposed ? 128 * cores + 16 : 128;
    p.stride = transposed ? 128 : 128 * cores + 32;
  } else if (transposed) {  // lines of k, atoms along m or n one behind the other
    p.stride = 8 * swizzle;
    p.leading = k_bytes / 2 * swizzle;
  } else {
    p.stride = 8 * swizzle;
    p.skip = k_step * k_bytes % swizzle;
    if (k_bytes > swizzle) p.leading = rows * swizzle;
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
  return std::string("wgmma.mma_async") + (one.sparse ? ".sp" : "") + ".sync.aligned.m64n" +
         std::to_string(one.n) + "k" + std::to_string(InnerOf(one)) +
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
  const int per_thread = 4 * (accumulators + (one.a_in_registers ? 4 : 0) + one.sparse);
  std::string load;
  std::string store;
  for (int i = 0; i < accumulators; ++i) {
    load += "  ld.global.b32 %d" + std::to_string(i) + ", [%mine+" + std::to_string(4 * i) + "];\n";
    store += "  st.global.b32 [%to+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  }
  for (int i = 0; one.a_in_registers && i < 4; ++i)
    load += "  ld.global.b32 %a" + std::to_string(i) + ", [%mine+" +
            std::to_string(4 * (accumulators + i)) + "];\n";
  if (one.sparse)
    load += "  ld.global.b32 %meta, [%mine+" + std::to_string(per_thread - 4) + "];\n";
  const std::string size = std::to_string(bytes);
  return ".version 8.4\n.target sm_90a\n.address_size 64\n"
         ".visible .entry product(.param .u64 input, .param .u64 output)\n{\n"
         "  .shared .align 1024 .b8 tile[" +
         size +
         "];\n"
         "  .reg .pred %more, %add;\n  .reg .b32 %d<128>, %a<4>, %v<4>, %thread, %i, %at, %start, "
         "%meta;\n"
         "  .reg .b64 %in, %from, %mine, %to, %base, %da, %db;\n"
         "  ld.param.u64 %in, [input];\n  ld.param.u64 %to, [output];\n  mov.u32 %thread, %tid.x;\n"
         "  mov.u32 %start, tile;\n  mul.lo.u32 %i, %thread, 16;\nFILL:\n  cvt.u64.u32 %from, %i;\n"
         "  add.u64 %from, %from, %in;\n  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%from];\n"
         "  add.u32 %at, %start, %i;\n  st.shared.v4.u32 [%at], {%v0, %v1, %v2, %v3};\n"
         "  add.u32 %i, %i, 2048;\n  setp.lt.u32 %more, %i, " +
         size +
         ";\n  @%more bra FILL;\n"
         "  fence.proxy.async;\n  bar.sync 0;\n  mad.wide.u32 %mine, %thread, " +
         std::to_string(per_thread) + ", %in;\n  add.u64 %mine, %mine, " + size +
         ";\n  mad.wide.u32 %to, %thread, " + std::to_string(4 * accumulators) + ", %to;\n" + load +
         "  shr.u32 %start, %start, 4;\n  cvt.u64.u32 %base, %start;\n  add.u64 %da, %base, " +
         std::to_string(static_cast<int64_t>(a.Descriptor())) + ";\n  add.u64 %db, %base, " +
         std::to_string(static_cast<int64_t>(b.Descriptor())) + ";\n  setp.ne.u32 %add, " +
         (one.add ? "1" : "0") + ", 0;\n  wgmma.fence.sync.aligned;\n  " + Mnemonic(one) + " " +
         Registers("d", accumulators) + ", " + (one.a_in_registers ? Registers("a", 4) : "%da") +
         ", %db, " + (one.sparse ? "%meta, " + std::to_string(one.selector) + ", " : "") + "%add" +
         Options(one) +
         ";\n  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n" + store +
         "  ret;\n}\n";
}

}  // namespace

std::string WgmmaCase::Name() const {
  return Mnemonic(*this) + " A " +
         (a_in_registers ? "in registers" : "swizzle " + std::to_string(swizzle_a)) +
         (transposed_a ? " transposed" : "") + ", B swizzle " + std::to_string(swizzle_b) +
         (transposed_b ? " transposed" : "") + ", step " + std::to_string(k_step) + Options(*this) +
         (add ? "" : ", without C") + (selector ? ", selector " + std::to_string(selector) : "");
}

WgmmaData MakeWgmmaData(const WgmmaCase& one) {
  Random random(static_cast<uint64_t>(one.n * 1000 + one.swizzle_a + one.swizzle_b));
  const int inner = InnerOf(one);
  const SparseMatrix sparse = one.sparse ? DrawSparse(random, one) : SparseMatrix{};
  const Matrix stored = one.sparse ? sparse.stored : DrawMatrix(random, one.a, kRows, inner);
  const Matrix& a = one.sparse ? sparse.dense : stored;
  const Matrix b = DrawMatrix(random, one.b, one.n, inner);
  const Placement at_a = Layout(0, kRows, one.swizzle_a, one.transposed_a, one.k_step, 32);
  // The longest layout of A has 8 KiB.
  const Placement at_b = Layout(8192, one.n, one.swizzle_b, one.transposed_b, one.k_step,
                                one.sparse ? 64 : 32);
  const int bytes = 8192 + 40960 - 2048;
  WgmmaData data;
  data.input.resize(static_cast<size_t>(bytes) / 4);
  for (uint32_t& word : data.input) word = 0x3c3c3c3c;  // a number of every type
  if (!one.a_in_registers) Place(stored, one.a, at_a, one.transposed_a, data.input);
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
        sum += one.sign_a * one.sign_b * a[static_cast<size_t>(row)][k] *
               b[static_cast<size_t>(column)][k];
      const auto result = static_cast<int>(std::min(sum, highest));
      const int bits = one.d == "f16" ? 16 : 32;
      SetBits(c, int64_t{i} * bits, bits, Encode(one.d, before));
      SetBits(d, int64_t{i} * bits, bits, Encode(one.d, result));
    }
    data.input.insert(data.input.end(), c.begin(), c.end());
    data.expected.insert(data.expected.end(), d.begin(), d.end());
    const auto fragment = one.a_in_registers ? FragmentOfA(stored, one.a, thread)
                                             : std::vector<uint32_t>();
    data.input.insert(data.input.end(), fragment.begin(), fragment.end());
    if (one.sparse) data.input.push_back(sparse.indices[static_cast<size_t>(thread)]);
  }
  data.ptx = Kernel(one, at_a, at_b, bytes);
  return data;
}

namespace {
/// The same with half of A, where there is such a product. Rows of B have 64 bytes then, more than
/// swizzling by 32 knows.
void AddSparse(WgmmaCase one, std::vector<WgmmaCase>& cases) {
  if (one.a == "b1") return;
  one.sparse = true;
  one.selector = BitsOfType(one.a) >= 16 ? static_cast<int>(cases.size() / 2 % 2) : 0;
  cases.push_back(one);
}
}  // namespace

std::vector<WgmmaCase> WgmmaCases() {
  std::vector<WgmmaCase> cases;
  const char* types[][3] = {
      {"f16", "f16", "f32"},   {"f16", "f16", "f16"},   {"bf16", "bf16", "f32"},
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
        if (one.d != "s32")
          one.sign_a = turn % 5 == 0 ? -1 : 1, one.sign_b = turn % 7 == 0 ? -1 : 1;
        cases.push_back(one);
        AddSparse(one, cases);
        one.a_in_registers = true;
        one.transposed_a = false;
        one.add = true;
        if (order % 2 != 0) continue;
        cases.push_back(one);
        AddSparse(one, cases);
      }
    }
  }
  cases.push_back({"s8", "s8", "s32", 32});
  cases.back().saturate = true;
  cases.push_back({"f16", "f16", "f32", 128, 128, 64});
  return cases;
}

std::string MmaCase::Mnemonic() const {
  return "mma.sync.aligned.m" + std::to_string(m) + "n8k" + std::to_string(k) + ".row.col." + d +
         "." + a + "." + b + "." + d + (bit_operation.empty() ? "" : "." + bit_operation + ".popc");
}

std::vector<MmaCase> MmaCases() {
  return {{"f16", "f16", "f32", 16, 16},       {"f16", "f16", "f16", 16, 16},
          {"f16", "f16", "f32", 16, 8},        {"f16", "f16", "f16", 16, 8},
          {"bf16", "bf16", "f32", 16, 16},     {"bf16", "bf16", "f32", 16, 8},
          {"tf32", "tf32", "f32", 16, 8},      {"tf32", "tf32", "f32", 16, 4},
          {"e4m3", "e4m3", "f32", 16, 32},     {"e5m2", "e4m3", "f32", 16, 32},
          {"s8", "s8", "s32", 16, 32},         {"u8", "s8", "s32", 16, 16},
          {"s8", "u8", "s32", 8, 16},          {"s4", "s4", "s32", 16, 64},
          {"u4", "s4", "s32", 16, 32},         {"s4", "u4", "s32", 8, 32},
          {"b1", "b1", "s32", 16, 256, "and"}, {"b1", "b1", "s32", 16, 128, "xor"},
          {"b1", "b1", "s32", 8, 128, "xor"}};
}

namespace {
/// Registers of A or B of one lane, as the ISA's tables give them; rows of eight come in pairs for
/// A of sixteen rows.
std::vector<uint32_t> MmaFragment(const Matrix& matrix, const std::string& type, int lane) {
  const int bits = BitsOfType(type);
  const int per = 32 / bits;
  const int pairs = matrix.size() == 16 ? 2 : 1;
  const auto inner = static_cast<int>(matrix[0].size());
  std::vector<uint32_t> registers(static_cast<size_t>(pairs * inner / (4 * per)));
  for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
    for (int i = 0; i < per; ++i) {
      const int row = lane / 4 + r % pairs * 8;
      const int k = lane % 4 * per + i + r / pairs * 4 * per;
      SetBits(registers, int64_t{r} * 32 + i * bits, bits,
              Encode(type, matrix[static_cast<size_t>(row)][static_cast<size_t>(k)]));
    }
  }
  return registers;
}

std::string MmaKernel(const MmaCase& one, int a, int b, int c) {
  std::string load;
  std::string store;
  const int per_thread = 4 * (a + b + c);
  int at = 0;
  for (const auto& [name, count] : {std::pair("a", a), std::pair("b", b), std::pair("d", c)}) {
    for (int i = 0; i < count; ++i, at += 4)
      load += "  ld.global.b32 %" + std::string(name) + std::to_string(i) + ", [%in+" +
              std::to_string(at) + "];\n";
  }
  for (int i = 0; i < c; ++i)
    store += "  st.global.b32 [%to+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  const std::string d = Registers("d", c);
  return ".version 8.4\n.target sm_90a\n.address_size 64\n"
         ".visible .entry product(.param .u64 input, .param .u64 output)\n{\n  .reg .b32 %a<4>, "
         "%b<4>, %d<4>, "
         "%thread;\n"
         "  .reg .b64 %in, %to;\n  ld.param.u64 %in, [input];\n  ld.param.u64 %to, [output];\n  "
         "mov.u32 %thread, "
         "%tid.x;\n"
         "  mad.wide.u32 %in, %thread, " +
         std::to_string(per_thread) + ", %in;\n  mad.wide.u32 %to, %thread, " +
         std::to_string(4 * c) + ", %to;\n" + load + "  " + one.Mnemonic() + " " + d + ", " +
         Registers("a", a) + ", " + Registers("b", b) + ", " + d + ";\n" + store + "  ret;\n}\n";
}
}  // namespace

WgmmaData MakeMmaData(const MmaCase& one) {
  Random random(static_cast<uint64_t>(one.k));
  const Matrix a = DrawMatrix(random, one.a, one.m, one.k);
  const Matrix b = DrawMatrix(random, one.b, 8, one.k);
  const int bits = one.d == "f16" ? 16 : 32;
  const int accumulators = one.m / 4 * bits / 32;
  WgmmaData data;
  data.threads = 32;
  size_t a_registers = 0;
  size_t b_registers = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const auto fragment_a = MmaFragment(a, one.a, lane);
    const auto fragment_b = MmaFragment(b, one.b, lane);
    a_registers = fragment_a.size();
    b_registers = fragment_b.size();
    std::vector<uint32_t> c(static_cast<size_t>(accumulators));
    std::vector<uint32_t> d(c.size());
    for (int i = 0; i < one.m / 4; ++i) {
      const auto row = static_cast<size_t>(lane / 4 + i / 2 * 8);
      const auto column = static_cast<size_t>(lane % 4 * 2 + i % 2);
      const int before = static_cast<int>(random.Below(99)) - 49;
      int sum = before;
      for (size_t k = 0; k < static_cast<size_t>(one.k); ++k)
        sum += one.bit_operation == "xor" ? a[row][k] ^ b[column][k] : a[row][k] * b[column][k];
      SetBits(c, int64_t{i} * bits, bits, Encode(one.d, before));
      SetBits(d, int64_t{i} * bits, bits, Encode(one.d, sum));
    }
    for (const std::vector<uint32_t>& part : {fragment_a, fragment_b, c})
      data.input.insert(data.input.end(), part.begin(), part.end());
    data.expected.insert(data.expected.end(), d.begin(), d.end());
  }
  data.ptx = MmaKernel(one, static_cast<int>(a_registers), static_cast<int>(b_registers),
                       accumulators);
  return data;
}

namespace {
void Compare(const std::string& name, const WgmmaData& data, const WgmmaRunner& run,
             std::vector<std::string>& wrong) {
  const auto got = run(data);
  if (!got) {
    wrong.push_back(name + ": " + got.error().ToString());
    return;
  }
  size_t different = 0;
  size_t first = 0;
  for (size_t i = data.expected.size(); i-- > 0;) {
    if ((*got)[i] != data.expected[i]) ++different, first = i;
  }
  if (different == 0) return;
  const size_t per_thread = data.expected.size() / data.threads;
  wrong.push_back(name + ": " + std::to_string(different) + " of " +
                  std::to_string(data.expected.size()) + " words differ, first register " +
                  std::to_string(first % per_thread) + " of thread " +
                  std::to_string(first / per_thread));
}
}  // namespace

std::vector<std::string> CheckWgmma(const std::vector<WgmmaCase>& cases, const WgmmaRunner& run) {
  std::vector<std::string> wrong;
  for (const WgmmaCase& one : cases) Compare(one.Name(), MakeWgmmaData(one), run, wrong);
  return wrong;
}

std::vector<std::string> CheckMma(const std::vector<MmaCase>& cases, const WgmmaRunner& run) {
  std::vector<std::string> wrong;
  for (const MmaCase& one : cases) Compare(one.Mnemonic(), MakeMmaData(one), run, wrong);
  return wrong;
}

}  // namespace atunner::vgpu
