// Each rewrite: the text that comes out, and kernels that it must not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/rewrites/source/catalogue.h"
#include "atunner/rewrites/user_file.h"

namespace atunner::rewrites {
namespace {

using testing::HasSubstr;

RenderedKernel KernelOf(const std::string& text, Dim3 grid, Dim3 block,
                        const std::vector<std::string>& tensors) {
  RenderedKernel kernel;
  kernel.source.text = text;
  LaunchStep step;
  step.entry = "k";
  step.grid = {Expr(int64_t{grid.x}), Expr(int64_t{grid.y}), Expr(int64_t{grid.z})};
  step.block = {Expr(int64_t{block.x}), Expr(int64_t{block.y}), Expr(int64_t{block.z})};
  for (const std::string& tensor : tensors) step.args.push_back(ArgBinding::Tensor(tensor));
  kernel.plan.steps = {step};
  return kernel;
}

/// A kernel `k` and a rewrite of it.
struct Case {
  std::string rewrite;
  std::string text;
  Dim3 block{256, 1, 1};
  Dim3 grid{64, 1, 1};
  std::vector<std::string> tensors = {"y", "x"};
  int64_t elements = 0;  ///< of y; 0: not known

  Result<std::vector<Proposal>> Apply() const {
    KernelSpec spec;
    if (elements > 0) {
      ArgSpec output;
      output.name = "y";
      output.role = Role::kOutput;
      output.shape = {Expr(elements)};
      spec.args.push_back(std::move(output));
    }
    const auto subject = Subject::Read(KernelOf(text, grid, block, tensors), spec);
    if (!subject) return std::unexpected(subject.error());
    return FindRewrite(rewrite)->apply(**subject);
  }
  /// The body that comes out of the first proposal, or "refused: why".
  std::string Body() const {
    const auto proposals = Apply();
    if (!proposals) return "refused: " + proposals.error().what;
    const std::string& out = proposals->front().text;
    const size_t begin = out.find('{') + 1;
    return out.substr(begin, out.rfind('}') - begin);
  }
};

const std::string kHead = "__global__ void k(float* y, const float* x, int n, int m) {";

TEST(RestrictPointers, PromisesAndReadsInputsAsConstants) {
  const Case one{"restrict-pointers", "__global__ void k(float* y, float *x) { y[0] = x[0]; }"};
  EXPECT_EQ(
      one.Apply()->front().text,
      "__global__ void k(float*  __restrict__ y, const float * __restrict__ x) { y[0] = x[0]; "
      "}");
}
TEST(RestrictPointers, DoesNotApplyToOneBufferGivenTwice) {
  Case one{"restrict-pointers", "__global__ void k(float* y, float* x) { y[0] = x[0]; }"};
  one.tensors = {"y", "y"};
  EXPECT_THAT(one.Body(), HasSubstr("different buffers"));
  one.tensors = {"y", "x"};
  one.text = "__global__ void k(float* __restrict__ y) { y[0] = 1; }";
  EXPECT_THAT(one.Body(), HasSubstr("no pointer is without"));
}

TEST(FloatLiterals, GetTheirSuffix) {
  EXPECT_EQ((Case{"float-literals", kHead + "y[0] = 0.5 * x[0] + 1.f + 1e-3 + 2 + 3.;}"}.Body()),
            "y[0] = 0.5f * x[0] + 1.f + 1e-3f + 2 + 3.0f;");
  EXPECT_THAT((Case{"float-literals", kHead + "double a = 0.5; y[0] = a;}"}.Body()),
              HasSubstr("asks for double"));
  EXPECT_THAT((Case{"float-literals", kHead + "y[0] = 0.5f;}"}.Body()), HasSubstr("no literal"));
}

TEST(UnrollLoops, PutsAPragmaOnInnermostLoops) {
  const Case one{"unroll-loops", kHead +
                                     "\n  for (int i = 0; i < n; ++i)\n"
                                     "    for (int j = 0; j < m; ++j) y[i] += x[j];\n}"};
  EXPECT_EQ(one.Body(),
            "\n  for (int i = 0; i < n; ++i)\n    #pragma unroll 4\n    for (int j = 0; j < m; "
            "++j) y[i] += x[j];\n");
  EXPECT_EQ(one.Apply()->size(), 3U);
  EXPECT_THAT((Case{"unroll-loops",
                    kHead + "\n#pragma unroll 2\n  for (int i = 0; i < n; ++i) y[i] = 0;\n}"}
                   .Body()),
              HasSubstr("refused"));
}

TEST(InterchangeThreads, SwapsTheAxesOfASquareBlock) {
  Case one{"interchange-threads",
           kHead + "\n  y[threadIdx.x * m + threadIdx.y] = x[blockIdx.x];\n}",
           {16, 16, 1}};
  EXPECT_EQ(one.Body(), "\n  y[threadIdx.y * m + threadIdx.x] = x[blockIdx.x];\n");
  one.block = {32, 8, 1};
  EXPECT_THAT(one.Body(), HasSubstr("y[(thread / blockDim.y) * m + (thread % blockDim.y)]"));
  one.block = {256, 1, 1};
  EXPECT_THAT(one.Body(), HasSubstr("one axis only"));
  one.block = {16, 16, 1};
  one.text = kHead + "y[threadIdx.x + threadIdx.y] = __shfl_sync(~0u, x[0], 0);}";
  EXPECT_THAT(one.Body(), HasSubstr("within warps"));
}

TEST(PadShared, AddsAColumn) {
  EXPECT_EQ((Case{"pad-shared", kHead + "__shared__ float t[32][N]; t[n][m] = 1;}"}.Body()),
            "__shared__ float t[32][N + 1]; t[n][m] = 1;");
  EXPECT_THAT((Case{"pad-shared", kHead + "__shared__ float t[32][32]; f(t[0]);}"}.Body()),
              HasSubstr("refused"));
  EXPECT_THAT((Case{"pad-shared", kHead + "__shared__ float t[32]; t[n] = 1;}"}.Body()),
              HasSubstr("refused"));
}

TEST(AccumulateInRegister, TakesTheElementOutOfTheLoop) {
  const std::string head = kHead + "\n  int i = threadIdx.x;\n";
  EXPECT_EQ((Case{"accumulate-in-register",
                  head + "  for (int j = 0; j < n; ++j) y[i] += x[j * m + i];\n}"}
                 .Body()),
            "\n  int i = threadIdx.x;\n  float y_sum = y[i];\n"
            "  for (int j = 0; j < n; ++j) y_sum += x[j * m + i];\n  y[i] = y_sum;\n");
  for (const char* loop : {"for (int j = 0; j < n; ++j) y[j] += x[j];",
                           "for (int j = 0; j < n; ++j) y[i] += y[i + 1];",
                           "for (int j = 0; j < n; ++j) { y[i] += x[j]; y[j] = 0; }"})
    EXPECT_THAT((Case{"accumulate-in-register", head + loop + "}"}.Body()), HasSubstr("refused"))
        << loop;
}

TEST(AccumulateInRegister, BeginsWhereTheElementWasGivenAValue) {
  EXPECT_EQ((Case{"accumulate-in-register",
                  kHead + "\n  int i = threadIdx.x;\n  if (i < m) {\n    y[i] = 0.0;\n"
                          "    for (int j = 0; j < n; ++j) y[i] += x[j * m + i];\n  }\n}"})
                .Body(),
            "\n  int i = threadIdx.x;\n  if (i < m) {\n    float y_sum = 0.0;\n"
            "    for (int j = 0; j < n; ++j) y_sum += x[j * m + i];\n    y[i] = y_sum;\n  }\n");
}

const std::string kRow = kHead +
                         "\n  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "  if (row >= n) return;\n";

TEST(ShareLoopInBlock, SharesColumns) {
  const Case one{"share-loop-in-block", kRow +
                                            "  float sum = 1;\n"
                                            "  for (int j = 0; j < m; ++j) sum += x[j * n + row];\n"
                                            "  y[row] = sum;\n}"};
  EXPECT_EQ(one.Body(),
            "\n  // A block computes 32 results; each of its 8 warps takes every 8th iteration.\n"
            "  __shared__ float sum_of_part[8][32];\n"
            "  const int part = threadIdx.x / 32, column = threadIdx.x % 32;\n"
            "  int row = blockIdx.x * 32 + column;\n"
            "  float sum = 1;\n"
            "  const bool inside = row < n;\n"
            "  if (part != 0) sum = 0;\n"
            "  if (inside) {\n"
            "    for (int j = part; j < m; j += 8) sum += x[j * n + row];\n"
            "  }\n"
            "  sum_of_part[part][column] = sum;\n"
            "  __syncthreads();\n"
            "  sum = sum_of_part[0][column];\n"
            "  for (int other = 1; other < 8; ++other) sum += sum_of_part[other][column];\n"
            "  if (inside && part == 0) y[row] = sum;\n");
  EXPECT_EQ(one.Apply()->front().grid.times[0], 8U);
  for (const char* body :
       {"  float v = x[row];\n  for (int j = 0; j < m; ++j) v += x[j];\n  y[row] = v;\n}",
        "  float s = 0;\n  while (s < 1) s += 2;\n  y[row] = s;\n}", "  y[row] = 1;\n}"})
    EXPECT_THAT((Case{"share-loop-in-block", kRow + body}.Body()), HasSubstr("refused"));
}

const std::string kTwoRows =
    "__global__ void k(float* y, const float* x, int n, int m) {\n"
    "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  int r = blockIdx.y * blockDim.y + threadIdx.y;\n";

TEST(CoarsenThreads, LoadsOnceWhatResultsShare) {
  Case one{"coarsen-threads", kTwoRows +
                                  "  if (r >= m || c >= n) return;\n"
                                  "  float s = 0;\n"
                                  "  for (int j = 0; j < 3; ++j) s += x[j] * x[r * n + j];\n"
                                  "  y[r * n + c] = s;\n}"};
  one.block = {16, 16, 1};
  one.grid = {1, 3, 1};
  EXPECT_EQ(one.Body(),
            "\n  // A thread computes 2 results along y.\n"
            "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  const int r_0 = 2 * (blockIdx.y * blockDim.y + threadIdx.y);\n"
            "  if (!(c < n)) return;\n"
            "  const int r_1 = r_0 + 1;\n"
            "  if (r_0 < m && r_1 < m) {\n"
            "    float s_0 = 0;\n"
            "    float s_1 = 0;\n"
            "    for (int j = 0; j < 3; ++j) {\n"
            "      s_0 += x[j] * x[r_0 * n + j];\n"
            "      s_1 += x[j] * x[r_1 * n + j];\n"
            "    }\n"
            "    y[r_0 * n + c] = s_0;\n"
            "    y[r_1 * n + c] = s_1;\n"
            "    return;\n"
            "  }\n"
            "  for (int r = r_0; r <= r_1; ++r) {\n"
            "    if (!(r < m)) continue;\n"
            "    float s = 0;\n"
            "    for (int j = 0; j < 3; ++j) s += x[j] * x[r * n + j];\n"
            "    y[r * n + c] = s;\n"
            "  }\n");
  EXPECT_EQ(one.Apply()->front().grid.over[1], 2U);
}

TEST(CoarsenThreads, DoesNotApplyWhereThreadsWorkTogether) {
  for (const char* body :
       {"__shared__ float t[16]; t[r] = x[r]; __syncthreads(); y[r] = t[c];",
        "if (r % 2 == 0) { y[r] = 1; }", "y[r] = x[blockIdx.y] + x[blockIdx.x];"}) {
    Case one{"coarsen-threads", kTwoRows + body + "}"};
    one.grid = {1, 4, 1};
    EXPECT_THAT(one.Body(), HasSubstr("refused")) << body;
  }
}

TEST(ShareLoopInWarp, SharesSumsAndExtremes) {
  const Case one{"share-loop-in-warp", kRow +
                                           "  float sum = 0;\n"
                                           "  for (int j = 0; j < m; ++j) sum += x[row * m + j];\n"
                                           "  y[row] = sum;\n}"};
  EXPECT_EQ(one.Body(),
            "\n  const int lane = threadIdx.x % 32;\n"
            "  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\n"
            "  if (row >= n) return;\n"
            "  float sum = 0;\n"
            "  for (int j = lane; j < m; j += 32) sum += x[row * m + j];\n"
            "  for (int offset = 16; offset > 0; offset /= 2)\n"
            "    sum += __shfl_xor_sync(0xffffffffu, sum, offset);\n"
            "  if (lane == 0) y[row] = sum;\n");
  EXPECT_EQ(one.Apply()->front().grid.times[0], 32U);
  const Case extreme{"share-loop-in-warp",
                     kRow +
                         "float top = -1; for (int j = 1; j < m; j++) top = fmaxf(top, x[j]);"
                         " y[row] = top;}"};
  EXPECT_THAT(extreme.Body(), HasSubstr("for (int j = 1 + lane; j < m; j += 32)"));
  EXPECT_THAT(extreme.Body(), HasSubstr("top = fmaxf(top, __shfl_xor_sync("));
}

TEST(ShareLoopInWarp, SharesTheSearchForAPlace) {
  const Case one{"share-loop-in-warp",
                 kRow +
                     "float top = x[0]; int at = 0;\n"
                     "  for (int j = 1; j < m; ++j) { if (x[j] > top) { top = x[j]; at = j; } }\n"
                     "  y[row] = at;}"};
  EXPECT_THAT(one.Body(), HasSubstr("if (other > top || (other == top && other_at < at))"));
}

TEST(ShareLoopInWarp, DoesNotApplyToDependentIterations) {
  const std::pair<const char*, const char*> cases[] = {
      {"float s = 0; for (int j = 0; j < m; ++j) { s += s * x[j]; y[row * m + j] = s; }",
       "an iteration needs 's'"},
      {"float s = 0; for (int j = 0; j < m; ++j) s = s * x[j]; y[row] = s;", "needs 's'"},
      {"for (int j = 0; j < m; ++j) y[row] += x[j];", "the same element"},
      {"for (int j = 0; j < m; ++j) atomicAdd(y, x[j]);", "not known"},
      {"for (int j = 0; j < m; j *= 2) y[j] = 0;", "does not count"},
      {"y[row] = x[row];", "no loop"},
      {"y[threadIdx.x] = 0;", "numbered in another way"}};
  for (const auto& [body, why] : cases)
    EXPECT_THAT((Case{"share-loop-in-warp", kRow + body + "}"}.Body()), HasSubstr(why)) << body;
  Case two_axes{"share-loop-in-warp", kRow + "for (int j = 0; j < m; ++j) y[j] = 0;}"};
  two_axes.block = {16, 16, 1};
  EXPECT_THAT(two_axes.Body(), HasSubstr("several axes"));
}

const std::string kTree =
    "\n  __shared__ float part[256];\n  int t = threadIdx.x;\n  part[t] = x[t];\n"
    "  __syncthreads();\n"
    "  for (int s = 128; s > 0; s /= 2) {\n    if (t < s) part[t] += part[t + s];\n"
    "    __syncthreads();\n  }\n";

TEST(ShuffleTree, ReplacesTheTree) {
  const std::string body = Case{"shuffle-tree", kHead + kTree + "  if (t == 0) y[0] = part[0];\n}"}
                               .Body();
  EXPECT_THAT(body, HasSubstr("float sum = part[threadIdx.x];"));
  EXPECT_THAT(body, HasSubstr("sum = threadIdx.x < 8 ? part[threadIdx.x] : 0;"));
  EXPECT_THAT(body, testing::Not(HasSubstr("s /= 2")));
  EXPECT_THAT((Case{"shuffle-tree", kHead + kTree + "  y[t] = part[t];\n}"}.Body()),
              HasSubstr("partial sums are used"));
  EXPECT_THAT((Case{"shuffle-tree", kHead + "y[0] = 1;}"}.Body()), HasSubstr("no tree"));
}

TEST(AggregateAtomics, AddsUpAWarpFirst) {
  const std::string body = Case{"aggregate-atomics",
                                kHead +
                                    "\n  int i = threadIdx.x;\n  if (i < n) atomicAdd(y, x[i]);\n}"}
                               .Body();
  EXPECT_THAT(body, HasSubstr("float warp_sum = i < n ? x[i] : 0;"));
  EXPECT_THAT(body, HasSubstr("if (threadIdx.x % 32 == 0) atomicAdd(y, warp_sum);"));
  EXPECT_THAT((Case{"aggregate-atomics", kHead + "int i = 0; atomicAdd(&y[i], 1.0f);}"}.Body()),
              HasSubstr("different addresses"));
  EXPECT_THAT((Case{"aggregate-atomics", kHead + "if (n < 1) return; atomicAdd(y, 1.0f);}"}.Body()),
              HasSubstr("may have returned"));
}

const std::string kElement = kHead +
                             "\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  if (i >= n) return;\n";

TEST(AggregateAtomics, AddsUpSeveralElementsOfAThread) {
  const Case one{"aggregate-atomics", kElement + "  float v = x[i];\n  atomicAdd(y, v * v);\n}"};
  EXPECT_EQ(one.Body(),
            "\n  float thread_sum = 0;\n"
            "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; "
            "i += gridDim.x * blockDim.x) {\n"
            "    float v = x[i];\n"
            "    thread_sum += v * v;\n"
            "  }\n"
            "  for (int offset = 16; offset > 0; offset /= 2)\n"
            "    thread_sum += __shfl_down_sync(0xffffffffu, thread_sum, offset);\n"
            "  if (threadIdx.x % 32 == 0) atomicAdd(y, thread_sum);\n");
  ASSERT_EQ(one.Apply()->size(), 2U);
  EXPECT_EQ(one.Apply()->back().grid.over[0], 16U);
  EXPECT_THAT((Case{"aggregate-atomics", kElement + "y[i] = 0; atomicAdd(y, x[i]);}"}.Body()),
              HasSubstr("may have returned"));
}

TEST(PrivateBins, CountsInSharedMemory) {
  Case one{"private-bins", kElement + "  atomicAdd(&y[int(x[i])], 1.0f);\n}"};
  one.elements = 64;
  EXPECT_EQ(one.Body(),
            "\n  __shared__ float y_of_block[64];\n"
            "  for (int bin = threadIdx.x; bin < 64; bin += blockDim.x) y_of_block[bin] = 0;\n"
            "  __syncthreads();\n"
            "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; "
            "i += gridDim.x * blockDim.x) {\n"
            "    atomicAdd(&y_of_block[int(x[i])], 1.0f);\n"
            "  }\n"
            "  __syncthreads();\n"
            "  for (int bin = threadIdx.x; bin < 64; bin += blockDim.x) {\n"
            "    if (y_of_block[bin] != 0) atomicAdd(&y[bin], y_of_block[bin]);\n"
            "  }\n");
  EXPECT_EQ(one.Apply()->size(), 3U);
  one.text = kHead + "\n  for (int i = threadIdx.x; i < n; i += 7) atomicAdd(y + i % 64, 1.0f);\n}";
  EXPECT_THAT(one.Body(), HasSubstr("atomicAdd(y_of_block + i % 64, 1.0f);"));
  EXPECT_EQ(one.Apply()->size(), 1U);
}

TEST(PrivateBins, DoesNotApplyToOtherUses) {
  const std::pair<const char*, const char*> cases[] = {
      {"atomicAdd(&y[i], 1.0f); y[0] = 1;", "in other ways"},
      {"float old = atomicAdd(&y[i], 1.0f);", "no element of one array"},
      {"atomicAdd(y, 1.0f);", "no element of one array"},
      {"y[i] = 0;", "no atomic addition"},
      {"if (x[i] < 0) return; atomicAdd(&y[i], 1.0f);", "may return"}};
  for (const auto& [body, why] : cases) {
    Case one{"private-bins", kElement + body + "}"};
    one.elements = 64;
    EXPECT_THAT(one.Body(), HasSubstr(why)) << body;
  }
  Case large{"private-bins", kElement + "atomicAdd(&y[i], 1.0f);}"};
  EXPECT_THAT(large.Body(), HasSubstr("2 to 8192 fit"));
  large.elements = 8193;
  EXPECT_THAT(large.Body(), HasSubstr("8193 elements"));
}

TEST(RowInRegisters, LoadsAndStoresVectors) {
  const Case one{"row-in-registers", kElement + "  y[4 * i + 1] += y[i * 4] * 2;\n}"};
  EXPECT_EQ(one.Body(),
            "\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i >= n) return;\n"
            "  alignas(16) float y_row[4];\n"
            "  reinterpret_cast<float4*>(y_row)[0] = "
            "reinterpret_cast<const float4*>(y)[i * 1];\n"
            "  y_row[1] += y_row[0] * 2;\n"
            "  reinterpret_cast<float4*>(y)[i * 1] = "
            "reinterpret_cast<const float4*>(y_row)[0];\n");
  const Case loop{"row-in-registers",
                  kElement +
                      "  float s = 0;\n  for (int d = 0; d < 8; ++d) s += x[i * 8 + d];\n"
                      "  y[i] = s;\n}"};
  EXPECT_THAT(loop.Body(), HasSubstr("reinterpret_cast<const float4*>(x)[i * 2 + 1];"));
  EXPECT_THAT(loop.Body(),
              HasSubstr("#pragma unroll\n  for (int d = 0; d < 8; ++d) s += x_row[d];"));
}

TEST(RowInRegisters, DoesNotApplyToOtherAccesses) {
  for (const char* body : {"y[i] = x[i];", "y[3 * i] = x[3 * i + 1];", "y[i] = x[4 * i + m];",
                           "y[i] = x[4 * i] + x[i];", "y[i] = x[4 * i + 1] + x[4 * i + 5];",
                           "for (int d = 0; d < m; ++d) y[i] += x[i * 8 + d];"})
    EXPECT_THAT((Case{"row-in-registers", kElement + body + "}"}.Body()), HasSubstr("refused"))
        << body;
}

TEST(ShareLoopInWarp, ScansRunningSums) {
  const Case one{"share-loop-in-warp",
                 kRow +
                     "  float s = 0;\n  for (int j = 0; j < m; ++j) {\n    s += x[row * m + j];\n"
                     "    y[row * m + j] = s;\n  }\n}"};
  EXPECT_THAT(one.Body(), HasSubstr("  for (int first = 0; first < m; first += 32) {\n"
                                    "    const int j = first + lane;\n"
                                    "    float part = j < m ? x[row * m + j] : 0;\n"));
  EXPECT_THAT(one.Body(), HasSubstr("    if (j < m) {\n      y[row * m + j] = (s + part);\n"));
  EXPECT_THAT(one.Body(), HasSubstr("    s += __shfl_sync(0xffffffffu, part, 31);\n"));
  const Case before{"share-loop-in-warp",
                    kRow +
                        "  float s = 1;\n  for (int j = 0; j < m; ++j) {\n    y[row * m + j] = s;\n"
                        "    s += x[row * m + j];\n  }\n}"};
  EXPECT_THAT(before.Body(), HasSubstr("    before = s + (lane == 0 ? 0 : before);\n"));
  EXPECT_THAT(before.Body(), HasSubstr("      y[row * m + j] = before;\n"));
}

const std::string kIndices =
    "\n  int x0 = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  int y0 = blockIdx.y * blockDim.y + threadIdx.y;\n";

TEST(StageTranspose, ReadsAndWritesNeighbours) {
  Case one{"stage-transpose",
           kHead + kIndices + "  if (x0 < n && y0 < m) y[x0 * m + y0] = x[y0 * n + x0];\n}",
           {16, 16, 1}};
  EXPECT_EQ(one.Body(),
            "\n  __shared__ float tile[16][17];\n"
            "  {\n"
            "    const int x0 = blockIdx.x * 16 + threadIdx.x;\n"
            "    const int y0 = blockIdx.y * 16 + threadIdx.y;\n"
            "    if (x0 < n && y0 < m) tile[threadIdx.y][threadIdx.x] = x[y0 * n + x0];\n"
            "  }\n"
            "  __syncthreads();\n"
            "  const int x0 = blockIdx.x * 16 + threadIdx.y;\n"
            "  const int y0 = blockIdx.y * 16 + threadIdx.x;\n"
            "  if (x0 < n && y0 < m) y[x0 * m + y0] = tile[threadIdx.x][threadIdx.y];\n");
  one.text = kHead + kIndices + "  y[y0 * n + x0] = x[y0 * n + x0];\n}";
  EXPECT_THAT(one.Body(), HasSubstr("no transposition"));
  one.text = kHead + kIndices + "  y[x0 * m + y0] = 2 * x[y0 * n + x0];\n}";
  EXPECT_THAT(one.Body(), HasSubstr("computes something"));
  one.block = {32, 8, 1};
  EXPECT_THAT(one.Body(), HasSubstr("no square"));
}

TEST(BlockProduct, ComputesATile) {
  Case one{"block-product",
           "__global__ void k(float* c, const float* a, const float* b, int n) {" + kIndices +
               "  if (x0 >= n || y0 >= n) return;\n  float sum = 0;\n"
               "  for (int i = 0; i < n; ++i) sum += a[y0 * n + i] * b[i * n + x0];\n"
               "  c[y0 * n + x0] = sum;\n}",
           {16, 16, 1}};
  const std::string body = one.Body();
  EXPECT_THAT(body, HasSubstr("__shared__ alignas(16) float left_tile[16][68]"));
  EXPECT_THAT(body, HasSubstr("y0 < n && i < n ? a[y0 * n + i] : float(0);"));
  EXPECT_THAT(body, HasSubstr("if (x0 < n && y0 < n) c[y0 * n + x0] = sum;"));
  EXPECT_EQ(one.Apply()->front().grid.over[1], 4U);
  one.text = kHead + kIndices + "float s = 0; for (int i = 0; i < n; ++i) s += x[i]; y[x0] = s;}";
  EXPECT_THAT(one.Body(), HasSubstr("no product"));
  one.block = {256, 1, 1};
  EXPECT_THAT(one.Body(), HasSubstr("no square"));
}

TEST(Catalogue, HasNamesReasonsAndCauses) {
  std::set<std::string_view> names;
  for (const Rewrite& rewrite : Catalogue()) {
    EXPECT_TRUE(names.insert(rewrite.name).second);
    EXPECT_FALSE(rewrite.reason.empty());
    EXPECT_FALSE(rewrite.removes.empty());
  }
  EXPECT_EQ(FindRewrite("nothing"), nullptr);
}

TEST(Subject, RefusesWhatItCannotRead) {
  RenderedKernel kernel = KernelOf("__global__ void other() {}", {}, {}, {});
  EXPECT_FALSE(Subject::Read(kernel, {}));
  kernel.source.language = Language::kPtx;
  EXPECT_FALSE(Subject::Read(kernel, {}));
}

std::vector<Path> NaiveKernels() {
  std::vector<Path> files;
  for (const char* folder : {"bench/naive", "bench/naive_more"})
    for (const auto& entry : std::filesystem::directory_iterator(Path(ATUNNER_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".cu") files.push_back(entry.path());
  return files;
}

/// No rewrite may crash on any of the naive kernels, nor leave unbalanced braces.
TEST(Catalogue, TakesTheNaiveKernels) {
  size_t files = 0, proposals = 0;
  for (const Path& path : NaiveKernels()) {
    ++files;
    std::string text = ReadFile(path, 1 << 20).value();
    const std::string name = path.stem() == "bodies" ? "move" : path.stem().string();
    for (const Dim3 block : {Dim3{16, 16, 1}, Dim3{256, 1, 1}}) {
      RenderedKernel kernel = KernelOf(text, {4, block.y == 1 ? 1U : 4U, 1}, block, {"a", "b"});
      kernel.plan.steps[0].entry = name;
      const auto subject = Subject::Read(kernel, {});
      ASSERT_TRUE(subject) << name << ": " << subject.error().ToString();
      for (const Rewrite& rewrite : Catalogue()) {
        const auto made = rewrite.apply(**subject);
        for (const Proposal& one : made.value_or(std::vector<Proposal>{})) {
          EXPECT_EQ(std::ranges::count(one.text, '{'), std::ranges::count(one.text, '}'))
              << rewrite.name << " of " << name << "\n"
              << one.text;
          ++proposals;
        }
      }
    }
  }
  EXPECT_EQ(files, 49U);
  EXPECT_GT(proposals, 60U);
}

TEST(UserFile, GetsTheKernelAndTheGrid) {
  const std::string kernel = "__global__ void k(float* y) {\n  y[0] = 1;\n}\n";
  const std::string file = "#include <x>\n" + kernel +
                           "int main() {\n  k<<<(n + 255) / 256, 256>>>(y);\n  dim3 g(4, 4);\n"
                           "  k<<<g, 256>>>(y);\n}\n";
  const std::string after = "__global__ void k(float* y) {\n  y[0] = 2;\n}\n";
  const auto text = RewrittenFile(file, kernel, after, "k", {{32, 1, 1}, {1, 1, 1}});
  ASSERT_TRUE(text) << text.error().ToString();
  EXPECT_THAT(*text, HasSubstr("y[0] = 2;"));
  EXPECT_THAT(*text, HasSubstr("k<<<32 * ((n + 255) / 256), 256>>>(y);"));
  EXPECT_THAT(*text, HasSubstr("k<<<dim3(32 * (g.x), g.y, g.z), 256>>>(y);"));
  EXPECT_FALSE(RewrittenFile(file, after, after, "k", {}));
  const GridChange joined = Joined({{32, 1, 1}, {1, 1, 1}}, {{1, 1, 1}, {4, 4, 1}});
  EXPECT_EQ(joined, (GridChange{{8, 1, 1}, {1, 4, 1}}));
}

}  // namespace
}  // namespace atunner::rewrites
