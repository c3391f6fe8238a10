// What families write: heads of the sources, which texts follow them, launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/files.h"
#include "atunner/codegen/tests/family_tasks_test.h"

namespace atunner {
namespace {

std::string KernelFile(const char* name) {
  return ReadFile(Path(ATUNNER_SOURCE_DIR) / "kernels" / "families" / name).value();
}

/// The head that the family writes before the texts of kernels/families; what follows must be these
/// texts, in order.
std::string Head(const RenderedKernel& kernel, const std::vector<const char*>& files) {
  size_t at = kernel.source.text.find(KernelFile(files[0]));
  EXPECT_NE(at, std::string::npos) << files[0] << " is not in the source";
  const std::string head = kernel.source.text.substr(0, at);
  for (const char* file : files) {
    const std::string text = KernelFile(file);
    const size_t found = kernel.source.text.find(text, at);
    EXPECT_NE(found, std::string::npos) << file << " is not in the source, or not in order";
    EXPECT_LE(found, at + 1) << "something lies before " << file;
    at = found + text.size();
  }
  EXPECT_LE(kernel.source.text.size(), at + 1) << "something lies behind the last text";
  return head;
}

RenderedKernel RenderDefault(const FamilyTask& task, DType dtype, const char* device,
                             std::vector<std::pair<const char*, Value>> changed = {}) {
  const auto schedule = MakeTemplate(SpecOf(task, dtype), FindProfile(device).value()).value();
  Configuration configuration = schedule->Default();
  for (const auto& [name, value] : changed)
    configuration.values[static_cast<size_t>(schedule->space().Find(name))] = value;
  EXPECT_TRUE(schedule->space().Allows(configuration, schedule->spec().dims).value())
      << schedule->space().Describe(configuration);
  return schedule->Render(configuration).value();
}

TEST(Golden, Rows) {
  const RenderedKernel kernel = RenderDefault({"softmax", {{8192, 1024}}, {}}, DType::kBFloat16,
                                              "A100",
                                              {{"threads_per_row", int64_t{32}},
                                               {"rows_per_block", int64_t{4}},
                                               {"storage", std::string("shared")},
                                               {"blocks_per_sm", int64_t{4}}});
  EXPECT_EQ(Head(kernel, {"common/words.cuh", "../graph/element.cuh", "../graph/vector.cuh",
                          "../graph/combine.cuh", "../graph/warp_reduce.cuh",
                          "../graph/row_reduce.cuh", "rows/row_common.cuh", "rows/softmax.cu"}),
            R"(// softmax in bfloat16, scheduled by atunner.
// threads_per_row=32, rows_per_block=4, vector=8, cluster=1, split=1, storage=shared, fused=0, prefetch=0, keep=0, blocks_per_sm=4
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 T;
#define MMA_TYPE "bf16"
enum Storage { REGISTERS, SHARED, RELOAD };
constexpr Storage STORAGE = SHARED;
constexpr int COLS = 1024;
constexpr int THREADS_PER_ROW = 32;
constexpr int ROWS_PER_BLOCK = 4;
constexpr int PREFETCH = 0;
constexpr int KEEP = 0;
constexpr int UNROLL = 8;  // vectors at once of a row that does not stay in registers
constexpr int VEC = 8;  // elements per load
constexpr int TENSORS = 1;  // read row by row
constexpr int PARAMETERS = 0;  // values per column
constexpr int ADD_GROUPS = 8;
constexpr int MAILBOXES = 2;  // buffers for what blocks of a cluster send, in turn
constexpr bool BY_VALUE = true;  // order: [value][block] instead of [block][value]
#define CLUSTER 1
#define SPLIT 1
#define FUSED 0
#define NEUTRAL MINUS_INFINITY

)");
  ASSERT_EQ(kernel.plan.steps.size(), 1u);
  const LaunchStep& step = kernel.plan.steps[0];
  EXPECT_EQ(step.block[0].text(), "128");
  EXPECT_EQ(step.shared_bytes.text(), std::to_string(4 * 1024 * 2));
  const ConcretePlan plan = Resolve(kernel.plan, {{"rows", 8192}, {"cols", 1024}}, {}).value();
  EXPECT_EQ(plan.steps[0].grid.x, 4u * 108u) << "four blocks on each of 108 SMs, which stay";
  EXPECT_EQ(Resolve(kernel.plan, {{"rows", 9}, {"cols", 1024}}, {})->steps[0].grid.x, 3u);
}

TEST(Golden, TensorCoreGemm) {
  const RenderedKernel kernel = RenderDefault({"matmul", {{4096, 4096, 4096}}, {}}, DType::kFloat16,
                                              "A100",
                                              {{"tile_m", int64_t{128}},
                                               {"tile_n", int64_t{256}},
                                               {"tile_k", int64_t{32}},
                                               {"warp_m", int64_t{64}},
                                               {"warp_n", int64_t{64}},
                                               {"stages", int64_t{4}},
                                               {"group_m", int64_t{8}},
                                               {"split_k", int64_t{1}}});
  EXPECT_EQ(Head(kernel, {"common/words.cuh", "common/mma_common.cuh", "matmul/plain_epilogue.cuh",
                          "matmul/tile_order.cuh", "matmul/mma_loop.cuh", "matmul/tile_walkers.cuh",
                          "matmul/result_index.cuh", "matmul/tile_store.cuh", "matmul/batches.cuh",
                          "matmul/gemm_walkers.cu"}),
            R"(// matmul in float16, scheduled by atunner.
// tile_m=128, tile_n=256, tile_k=32, warp_m=64, warp_n=64, stages=4, group_m=8, split_k=1, widen=0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __half T;
#define MMA_TYPE "f16"
#define SPLIT_K 1
typedef __half Operand;
typedef T OUT;
constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 32;
constexpr int WARP_M = 64;
constexpr int WARP_N = 64;
constexpr int STAGES = 4;
constexpr int GROUP_M = 8;
constexpr int RESIDENT = 1;  // blocks that an SM must hold
constexpr bool PERSISTENT = false;  // a block computes one tile after another
constexpr bool B_TRANSPOSED = false;
constexpr bool C_ALIGNED = true;  // rows of the result start at multiples of 16 bytes
constexpr bool BATCHED = false;
constexpr bool A_BATCHED = false;
constexpr bool B_BATCHED = false;
constexpr int TRIANGLE = 0;  // non-zero side of a: 0 = both, 1 = below the diagonal, 2 = above
constexpr int A_ALIGN = 8;  // elements at whose multiples rows of a start
constexpr int B_ALIGN = 8;

)");
  const ConcretePlan plan = Resolve(kernel.plan, {{"M", 4096}, {"N", 4096}, {"K", 4096}}, {})
                                .value();
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].grid.Count(), 32u * 16u);
  EXPECT_EQ(plan.steps[0].block.Count(), 256u);
  EXPECT_EQ(plan.steps[0].shared_bytes, (128u + 256u) * 32u * 2u * 4u);
}

// The instruction names each of its accumulators, so its text depends on the tile.
TEST(Golden, HopperGemm) {
  const FamilyTask task{"matmul", {{4096, 4096, 4096}}, {}};
  const auto schedule = MakeTemplate(SpecOf(task, DType::kBFloat16), FindProfile("H200").value())
                            .value();
  const RenderedKernel kernel = schedule
                                    ->Render(WithValues(*schedule, {{"tile_m", 128},
                                                                    {"tile_n", 64},
                                                                    {"group_rows", 64},
                                                                    {"alternate", 0},
                                                                    {"stages", 6},
                                                                    {"group_m", 8},
                                                                    {"split_k", 1},
                                                                    {"persistent", 0},
                                                                    {"in_cluster", 0}}))
                                    .value();
  EXPECT_THAT(kernel.source.text, testing::HasSubstr(R"(
constexpr int GROUP_ROWS = 64;
constexpr int GROUPS = 2;  // warpgroups that multiply
constexpr int OPERAND_BYTES = 2;
constexpr int PROMOTE = 0;  // buffers at a time
typedef float Sum;
constexpr int STAGES = 6;
constexpr int GROUP_M = 8;
constexpr int RESIDENT = 1;  // blocks that an SM must hold
)"));
  EXPECT_THAT(kernel.source.text, testing::HasSubstr(R"(
/// d[64, 64] = a[64, 16] · b[16, 64], started asynchronously; with ADDS it is added to d.
template <bool ADDS = true>
DEVICE void multiply(float (&d)[8][4], unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." MMA_TYPE "." MMA_TYPE " {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
      "}, %32, %33, %34, 1, 1, 0, %35;"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
)"));
  for (const char* file : {"common/mma_common.cuh", "common/wgmma_common.cuh",
                           "matmul/wgmma_tile.cuh", "common/tensor_copies.cuh",
                           "matmul/maps_loop.cuh", "matmul/tile_store.cuh", "matmul/gemm_maps.cu"})
    EXPECT_THAT(kernel.source.text, testing::HasSubstr(KernelFile(file)));
  const ConcretePlan plan = Resolve(kernel.plan, {{"M", 4000}, {"N", 4096}, {"K", 4104}}, {})
                                .value();
  ASSERT_EQ(plan.steps.size(), 1u);
  const ConcreteStep& step = plan.steps[0];
  EXPECT_EQ(step.grid, (Dim3{32 * 64, 1, 1}));
  EXPECT_EQ(step.cluster.Count(), 1u);
  EXPECT_EQ(step.block.Count(), 2u * 128u + 32u);
  EXPECT_EQ(step.shared_bytes, (128u + 64u) * 128u * 6u + 8u * 2048u + 6u * 16u);
  EXPECT_EQ(step.args[0].map.dims, (std::vector<uint64_t>{4104, 4000, 1}));
  EXPECT_EQ(step.args[0].map.box, (std::vector<uint32_t>{64, 128, 1}));
  EXPECT_EQ(step.args[1].map.strides, (std::vector<uint64_t>{2 * 4096, 2 * 4096 * 4104}));
  EXPECT_EQ(step.args[1].map.box, (std::vector<uint32_t>{64, 64, 1}));
}

TEST(Golden, ASplitInAClusterHasOneStep) {
  const FamilyTask task{"matmul", {{8, 4096, 4096}}, {}};
  const auto schedule = MakeTemplate(SpecOf(task, DType::kFloat16), FindProfile("H200").value())
                            .value();
  Configuration one = WithValues(*schedule, {{"tile_m", 64},
                                             {"tile_n", 128},
                                             {"group_rows", 64},
                                             {"alternate", 0},
                                             {"stages", 8},
                                             {"split_k", 4},
                                             {"persistent", 0},
                                             {"in_cluster", 1}});
  const ConcretePlan joined = Resolve(schedule->Render(one)->plan, schedule->spec().dims, {})
                                  .value();
  ASSERT_EQ(joined.steps.size(), 1u);
  EXPECT_TRUE(joined.workspaces.empty());
  EXPECT_EQ(joined.steps[0].grid, (Dim3{32, 4, 1}));
  EXPECT_EQ(joined.steps[0].cluster, (Dim3{1, 4, 1}));
  one.values[static_cast<size_t>(schedule->space().Find("in_cluster"))] = int64_t{0};
  const ConcretePlan apart = Resolve(schedule->Render(one)->plan, schedule->spec().dims, {})
                                 .value();
  ASSERT_EQ(apart.steps.size(), 2u);
  EXPECT_EQ(apart.workspaces[0].bytes, 8u * 4096u * 4u * 4u);
  EXPECT_EQ(apart.steps[0].cluster.Count(), 1u);
}

TEST(Golden, SimtGemmWithASplitHasASecondStep) {
  const RenderedKernel kernel = RenderDefault({"matmul", {{64, 64, 4096}}, {}}, DType::kFloat32,
                                              "A100",
                                              {{"tile_m", int64_t{64}},
                                               {"tile_n", int64_t{64}},
                                               {"tile_k", int64_t{16}},
                                               {"thread_m", int64_t{8}},
                                               {"thread_n", int64_t{4}},
                                               {"stages", int64_t{3}},
                                               {"group_m", int64_t{1}},
                                               {"split_k", int64_t{8}}});
  EXPECT_EQ(Head(kernel, {"common/words.cuh", "matmul/plain_epilogue.cuh", "matmul/tile_order.cuh",
                          "matmul/simt_tile.cuh", "matmul/tile_walkers.cuh",
                          "matmul/result_index.cuh", "matmul/simt_store.cuh", "matmul/batches.cuh",
                          "matmul/gemm_walkers.cu", "matmul/split_k.cuh"}),
            R"(// matmul in float32, scheduled by atunner.
// tile_m=64, tile_n=64, tile_k=16, thread_m=8, thread_n=4, stages=3, group_m=1, split_k=8
typedef float T;
#define SPLIT_K 8
typedef float Operand;
typedef float OUT;
constexpr int TILE_M = 64;
constexpr int TILE_N = 64;
constexpr int TILE_K = 16;
constexpr int THREAD_M = 8;
constexpr int THREAD_N = 4;
constexpr int STAGES = 3;
constexpr int GROUP_M = 1;
constexpr int RESIDENT = 1;  // blocks that an SM must hold
constexpr bool PERSISTENT = false;  // a block computes one tile after another
constexpr bool B_TRANSPOSED = false;
constexpr bool C_ALIGNED = true;  // rows of the result start at multiples of 16 bytes
constexpr bool BATCHED = false;
constexpr bool A_BATCHED = false;
constexpr bool B_BATCHED = false;
constexpr int TRIANGLE = 0;  // non-zero side of a: 0 = both, 1 = below the diagonal, 2 = above
constexpr int A_ALIGN = 4;  // elements at whose multiples rows of a start
constexpr int B_ALIGN = 4;

)");
  const ConcretePlan plan = Resolve(kernel.plan, {{"M", 64}, {"N", 64}, {"K", 4096}}, {}).value();
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].grid.Count(), 8u);
  EXPECT_EQ(plan.steps[1].entry, "add_partial_sums");
  ASSERT_EQ(plan.workspaces.size(), 1u);
  EXPECT_EQ(plan.workspaces[0].bytes, 64u * 64u * 4u * 8u);
}

TEST(Golden, ConvThatWidensItsChannels) {
  const RenderedKernel kernel = RenderDefault(
      {"conv2d", {{8, 56, 56, 3}, {64, 7, 7}}, {{"stride", int64_t{2}}, {"padding", int64_t{3}}}},
      DType::kBFloat16, "A100", {});
  for (const char* line :
       {"CHANNELS = 3;", " C = 8;", "PIXELS_FIRST = true;", "ARRANGE_X = true;", "X_LAST = true;"})
    EXPECT_THAT(kernel.source.text, testing::HasSubstr(line));
  ASSERT_EQ(kernel.plan.steps.size(), 2u) << "both operands are widened first, in one step";
  EXPECT_EQ(kernel.plan.steps[1].entry, "conv");
  const RenderedKernel whole = RenderDefault({"conv2d", {{8, 56, 56, 16}, {64, 3, 3}}, {}},
                                             DType::kBFloat16, "A100", {});
  EXPECT_EQ(whole.plan.steps[0].entry, "conv") << "both operands lie as they are multiplied";
}

TEST(Golden, Attention) {
  const RenderedKernel kernel = RenderDefault(
      {"flash_attention", {{4, 16, 4096, 128}}, {{"causal", true}}}, DType::kBFloat16, "A100",
      {{"tile_q", int64_t{128}},
       {"warp_q", int64_t{16}},
       {"tile_k", int64_t{64}},
       {"stages", int64_t{2}},
       {"q_registers", int64_t{1}}});
  EXPECT_EQ(
      Head(kernel, {"common/words.cuh", "common/mma_common.cuh", "attention/attention_queries.cuh",
                    "attention/attention_tensor.cuh", "attention/attention_mma.cu"}),
      R"(// flash_attention in bfloat16, scheduled by atunner.
// tile_q=128, warp_q=16, tile_k=64, stages=2, q_registers=1
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 T;
#define MMA_TYPE "bf16"
#define STATISTICS 0
constexpr int DIM = 128;
constexpr bool CAUSAL = true;
constexpr bool FAR = false;
constexpr int WINDOW = 0;  // latest keys that a query sees; 0 = all
constexpr int AHEAD = 0;  // keys in front of the first query's own
constexpr int SHARING = 1;  // query heads that share a key head
constexpr int HEADS = 1;  // of a sequence
constexpr int HEAD_GROUP = 1;
constexpr int GIVEN = 0;
constexpr bool WHOLE_UNITS = false;
constexpr bool NEGATIVE = false;  // the scale's sign: the least score weighs most
constexpr int TILE_Q = 128;
constexpr int TILE_K = 64;
constexpr int THREADS = 256;
constexpr int WARP_Q = 16;
constexpr int STAGES = 2;
constexpr int PANEL = 16;  // units of 16 bytes in a row of a panel in shared memory
constexpr bool Q_REGISTERS = true;

)");
  const ConcretePlan plan = Resolve(kernel.plan, {{"heads", 64}, {"sequence", 4096}, {"dim", 128}},
                                    {{"scale", 0.125}})
                                .value();
  EXPECT_EQ(plan.steps[0].grid.Count(), 32u * 64u);
  EXPECT_EQ(plan.steps[0].block.Count(), 256u);
}

TEST(Golden, AttentionByTensorMaps) {
  const RenderedKernel kernel = RenderDefault(
      {"flash_attention", {{4, 16, 4096, 128}}, {{"causal", true}}}, DType::kBFloat16, "H200",
      {{"tile_q", int64_t{128}}, {"tile_k", int64_t{128}}, {"order", int64_t{1}}});
  const auto at = [&](int64_t heads, int64_t sequence) {
    const Dims dims = {{"heads", heads}, {"sequence", sequence}, {"dim", 128}};
    return Resolve(kernel.plan, dims, {{"scale", 0.125}}).value().steps[0];
  };
  const ConcreteStep full = at(64, 4096);
  EXPECT_EQ(full.block.Count(), 384u) << "two groups of four warps, and the one that loads";
  EXPECT_EQ(full.grid.Count(), 132u) << "SMs";
  EXPECT_EQ(at(3, 1000).grid.Count(), 24u) << "no more than there are tiles";
  ASSERT_EQ(full.args.size(), 8u);
  for (const auto& [index, name, rows] :
       {std::tuple(0, "q", 64u), std::tuple(1, "k", 128u), std::tuple(2, "v", 128u)}) {
    const ConcreteArg& arg = full.args[static_cast<size_t>(index)];
    EXPECT_EQ(arg.kind, ArgBinding::Kind::kTensorMap);
    EXPECT_EQ(arg.name, name);
    EXPECT_THAT(arg.map.dims, testing::ElementsAre(128u, 4096u, 64u));
    EXPECT_THAT(arg.map.strides, testing::ElementsAre(256u, 1048576u)) << "bytes";
    EXPECT_THAT(arg.map.box, testing::ElementsAre(64u, rows, 1u))
        << "one head at a time: beyond its end come zeros";
    EXPECT_EQ(arg.map.swizzle_bytes, 128);
  }
}

}  // namespace
}  // namespace atunner
