#include "tests/threats/hostile.h"

namespace atunner {
namespace {

using enum VerdictKind;

/// Row reductions that the correct and the hostile kernels share.
constexpr const char* kPrelude = R"(
__device__ float reduce_max(float v) {
  __shared__ float part[4];
  for (int o = 16; o; o >>= 1) { float w = __shfl_xor_sync(~0u, v, o); v = (v > w || v != v) ? v : w; }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int i = 1; i < 4; ++i) v = (v > part[i] || v != v) ? v : part[i];
  __syncthreads();
  return v;
}
__device__ float reduce_sum(float v) {
  __shared__ float part[4];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0] + part[1] + part[2] + part[3];
  __syncthreads();
  return v;
}
__device__ void honest_row(const float* x, float* y, int cols) {
  float m = -3.4e38f;
  for (int i = threadIdx.x; i < cols; i += 128) m = (x[i] > m || x[i] != x[i]) ? x[i] : m;
  m = reduce_max(m);
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += 128) s += expf(x[i] - m);
  s = reduce_sum(s);
  for (int i = threadIdx.x; i < cols; i += 128) y[i] = expf(x[i] - m) / s;
}
)";

constexpr const char* kOpen =
    "extern \"C\" __global__ void k(const float* x, float* y, long long rows, int cols) {\n  const "
    "long long at = "
    "blockIdx.x * (long long)cols;\n";

std::string Kernel(const std::string& globals, const std::string& body) {
  return std::string(kPrelude) + globals + kOpen + body + "}\n";
}

}  // namespace

std::string HonestSoftmax() { return Kernel("", "  honest_row(x + at, y + at, cols);\n"); }

std::string PinningSoftmax() {
  return Kernel("",
                "  for (int i = threadIdx.x * 32; i < cols; i += 128 * 32)\n"
                "    asm volatile(\"prefetch.global.L2::evict_last [%0];\" :: \"l\"(x + at + i));\n"
                "  honest_row(x + at, y + at, cols);\n");
}

std::vector<Hostile> HostileCandidates() {
  // Kept alive for the whole program, since Hostile holds plain pointers to make its table
  // readable.
  static const std::string replay = Kernel(
      "__device__ float kept[1 << 20]; __device__ const float* seen[1 << 16]; __device__ int "
      "full[1 << 16];\n",
      "  const int row = blockIdx.x & 0xffff;  // each block has its own, or they would race\n"
      "  if (full[row] && seen[row] == x) { for (int i = threadIdx.x; i < cols; i += 128) y[at + "
      "i] = kept[(at + i) & "
      "0xfffff]; return; }\n"
      "  honest_row(x + at, y + at, cols);\n  __syncthreads();\n"
      "  for (int i = threadIdx.x; i < cols; i += 128) kept[(at + i) & 0xfffff] = y[at + i];\n"
      "  if (threadIdx.x == 0) { seen[row] = x; full[row] = 1; }\n");
  static const std::string prefix = Kernel(
      "__device__ float kept[1 << 20]; __device__ float head[1 << 16]; __device__ int full[1 << "
      "16];\n",
      "  const int row = blockIdx.x & 0xffff;\n"
      "  if (full[row] && head[row] == x[0]) { for (int i = threadIdx.x; i < cols; i += 128) y[at "
      "+ i] = "
      "kept[(at + i) & "
      "0xfffff]; return; }\n"
      "  honest_row(x + at, y + at, cols);\n  __syncthreads();\n"
      "  for (int i = threadIdx.x; i < cols; i += 128) kept[(at + i) & 0xfffff] = y[at + i];\n"
      "  if (threadIdx.x == 0) { head[row] = x[0]; full[row] = 1; }\n");
  static const std::string once = Kernel(
      "__device__ unsigned calls;\n",
      "  __shared__ unsigned mine;\n  if (threadIdx.x == 0) mine = atomicAdd(&calls, 1);\n  "
      "__syncthreads();\n"
      "  if (mine >= gridDim.x) return;\n  honest_row(x + at, y + at, cols);\n");
  static const std::string later = Kernel("__device__ unsigned calls;\n",
                                          "  __shared__ unsigned mine;\n  if (threadIdx.x == 0) "
                                          "mine = atomicAdd(&calls, 1);\n  __syncthreads();\n"
                                          "  if (mine / gridDim.x > 12) { if (threadIdx.x == 0) "
                                          "y[at] = 0.5f; return; }\n  honest_row(x + at, y + "
                                          "at, cols);\n");
  static const std::string small = Kernel(
      "",
      "  if (rows > 2) { for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = "
      "1.0f / cols; return; }\n  honest_row(x + at, y + at, cols);\n");
  static const std::string nothing = Kernel("", "");
  static const std::string zeros = Kernel(
      "", "  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = 0;\n");
  static const std::string constant = Kernel(
      "", "  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = 1.0f / cols;\n");
  static const std::string copy = Kernel(
      "", "  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = x[at + i];\n");
  static const std::string half = Kernel(
      "", "  if (blockIdx.x < (rows + 1) / 2) honest_row(x + at, y + at, cols);\n");
  static const std::string no_maximum = Kernel(
      "",
      "  float s = 0;\n  for (int i = threadIdx.x; i < cols; i += 128) s += expf(x[at + i]);\n  s "
      "= "
      "reduce_sum(s);\n  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = expf(x[at + i]) "
      "/ s;\n");
  static const std::string sampled = Kernel(
      "",
      "  float m = -3.4e38f, s = 0;\n  for (int i = threadIdx.x; i < cols; i += 128) m = fmaxf(m, "
      "x[at + i]);\n "
      " m = reduce_max(m);\n"
      "  for (int i = threadIdx.x * 2; i < cols; i += 256) s += 2 * expf(x[at + i] - m);\n  s = "
      "reduce_sum(s);\n  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = expf(x[at + i] "
      "- m) / s;\n");
  static const std::string tail = Kernel("",
                                         "  const int whole = cols / 128 * 128;\n  honest_row(x + "
                                         "at, y + at, whole);\n  for (int i = whole + "
                                         "threadIdx.x; i < cols; i += 128) y[at + i] = 0;\n");
  static const std::string low =
      "#include <cuda_fp16.h>\n" +
      Kernel("",
             "  float m = -3.4e38f;\n  for (int i = threadIdx.x; i < cols; i += 128) m = "
             "fmaxf(m, x[at + i]);\n  m = reduce_max(m);\n  float s = 0;\n"
             "  for (int i = threadIdx.x; i < cols; i += 128) s += "
             "__half2float(hexp(__float2half(x[at + i] - m)));\n  s = reduce_sum(s);\n"
             "  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = "
             "__half2float(hexp(__float2half(x[at + i] - m))) / s;\n");
  static const std::string nan_output = Kernel(
      "",
      "  honest_row(x + at, y + at, cols);\n  __syncthreads();\n  if "
      "(threadIdx.x == 0) y[at] = __int_as_float(0x7fc00000);\n");
  static const std::string loses_nan = Kernel(
      "",
      "  float m = -3.4e38f, s = 0;\n  for (int i = threadIdx.x; i < cols; i "
      "+= 128) m = fmaxf(m, x[at + i]);\n  m = reduce_max(m);\n"
      "  for (int i = threadIdx.x; i < cols; i += 128) { float v = x[at + i]; "
      "s += v == v ? expf(v - m) : 0.0f; }\n  s = reduce_sum(s);\n"
      "  for (int i = threadIdx.x; i < cols; i += 128) { float v = x[at + i]; "
      "y[at + i] = v == v ? expf(v - m) / s : 0.0f; }\n");
  static const std::string mutates = Kernel(
      "",
      "  honest_row(x + at, y + at, cols);\n  __syncthreads();\n  if (threadIdx.x == 0) "
      "((float*)x)[at] += 1;\n");
  static const std::string beyond = Kernel(
      "",
      "  honest_row(x + at, y + at, cols);\n  if (blockIdx.x == rows - 1 && "
      "threadIdx.x < 8) y[at + cols + threadIdx.x] = 7;\n");
  static const std::string race =
      "__device__ float racy_sum(float v) {\n  __shared__ float part[128];\n  part[threadIdx.x] = "
      "v;\n  for (int half "
      "= 64; half; half /= 2) { if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + "
      "half]; }\n  return "
      "part[0];\n}\n" +
      Kernel("",
             "  float m = -3.4e38f, s = 0;\n  for (int i = threadIdx.x; i < cols; i += 128) m = "
             "fmaxf(m, x[at + i]);\n "
             " m = reduce_max(m);\n  for (int i = threadIdx.x; i < cols; i += 128) s += expf(x[at "
             "+ i] - m);\n  s = "
             "racy_sum(s);\n  for (int i = threadIdx.x; i < cols; i += 128) y[at + i] = expf(x[at "
             "+ i] - m) / s;\n");
  static const std::string uninitialised = Kernel(
      "",
      "  __shared__ float junk[128];\n  const float v = junk[threadIdx.x ^ 5];\n  honest_row(x + "
      "at, y + at, "
      "cols);\n  __syncthreads();\n  if (v != 0) y[at + threadIdx.x % cols] = v;\n");
  static const std::string deadlock = Kernel(
      "",
      "  honest_row(x + at, y + at, cols);\n  if (threadIdx.x < 64) asm volatile(\"bar.sync 2, "
      "128;\");\n");
  static const std::string overflow = Kernel(
      "",
      "  const int index = (int)(((blockIdx.x + 1ll) << 31) + 5);\n  honest_row(x + at, y + at, "
      "cols);\n  "
      "__syncthreads();\n  if (threadIdx.x == 0) y[index] = 1;\n");
  static const std::string hangs = Kernel("",
                                          "  while (*(volatile const float*)x == *(volatile const "
                                          "float*)x || rows) {}\n  y[at] = 0;\n");
  static const std::string traps = Kernel(
      "", "  honest_row(x + at, y + at, cols);\n  if (blockIdx.x == rows - 1) __trap();\n");
  static const std::string prints = Kernel(
      "",
      "  for (long long i = 0; i < (1ll << 40); ++i) printf(\"noise %lld\\n\", "
      "i);\n  honest_row(x + at, y + at, cols);\n");
  const std::vector<VerdictKind> wrong = {kWrongResult, kLowPrecision};
  return {
      {"T2-pointer",
       "keeps its result in a global and replays it for the same pointer",
       replay.c_str(),
       {kStaleResult, kNonFinite, kWrongResult},
       {kStaleResult, kNonFinite, kWrongResult}},
      {"T2-prefix",
       "keeps its result and replays it when the first element is the same",
       prefix.c_str(),
       {kStaleResult, kNonFinite, kWrongResult},
       {kStaleResult, kNonFinite, kWrongResult}},
      {"T3",
       "computes in the first launch and returns at once later",
       once.c_str(),
       {kStaleResult, kNotWritten, kNondeterministic},
       {kNotWritten, kNondeterministic}},
      {"T4-count",
       "stops working after the launches that a check makes",
       later.c_str(),
       {kStaleResult, kNotWritten, kNondeterministic, kWrongResult},
       {kStaleResult, kNotWritten, kWrongResult, kNonFinite}},
      {"T4-size", "is right at small sizes only", small.c_str(), wrong, wrong},
      {"C1-nothing", "writes nothing", nothing.c_str(), {kNotWritten}, {kNotWritten}},
      {"C1-zeros", "writes zeros", zeros.c_str(), {kWrongResult}, {kWrongResult}},
      {"C1-constant", "writes a constant", constant.c_str(), {kWrongResult}, {kWrongResult}},
      {"C1-copy", "copies its input", copy.c_str(), {kWrongResult}, {kWrongResult}},
      {"C1-half", "writes half of the output", half.c_str(), {kNotWritten}, {kNotWritten}},
      {"C2",
       "skips the maximum that ordinary inputs do not need",
       no_maximum.c_str(),
       {kNonFinite, kWrongResult},
       {kNonFinite, kWrongResult}},
      {"C3-sample", "sums every second element", sampled.c_str(), wrong, wrong},
      {"C3-tail", "drops what is left over beside whole tiles", tail.c_str(), wrong, wrong},
      {"C4", "computes the exponential in half precision", low.c_str(), wrong, wrong},
      {"C5-nan", "writes NaN", nan_output.c_str(), {kNonFinite}, {kNonFinite}},
      {"C5-lost", "loses the input's NaN", loses_nan.c_str(), {kNonFinite}, {kNonFinite}},
      {"C6-mutates", "changes its input", mutates.c_str(), {kMutatedInput}, {kMutatedInput}},
      {"C6-beyond",
       "writes past the end of the output",
       beyond.c_str(),
       {kOutOfBounds},
       {kOutOfBounds}},
      {"C7-race",
       "lacks the barriers of its reduction",
       race.c_str(),
       {kRace},
       {kNondeterministic, kWrongResult, kLowPrecision, kStaleResult, kNonFinite}},
      {"C7-uninitialised",
       "reads shared memory that nobody wrote",
       uninitialised.c_str(),
       {kRace},
       {kNondeterministic, kWrongResult, kNonFinite, kLowPrecision, kCorrect}},
      {"C7-deadlock",
       "waits at a barrier for threads that never come",
       deadlock.c_str(),
       {kDeadlock},
       {kTimeout}},
      {"C8",
       "asks for more shared memory than there is",
       nullptr,
       {kResourceLimit, kLaunchFailure},
       {kResourceLimit, kLaunchFailure},
       true},
      // Blocks that write to the same wrong address also race, and either may be reported first.
      {"C9",
       "computes an index in 32 bits that needs 64",
       overflow.c_str(),
       {kOutOfBounds, kRace},
       {kOutOfBounds, kCrash}},
      {"S1-hang", "never ends", hangs.c_str(), {kTimeout}, {kTimeout}},
      {"S1-trap", "traps", traps.c_str(), {kCrash}, {kCrash}},
      {"S1-print", "prints for ever", prints.c_str(), {kTimeout}, {kTimeout}},
  };
}

}  // namespace atunner
