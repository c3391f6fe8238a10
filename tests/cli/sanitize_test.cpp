// `sanitize` and `counts` as a user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kProgram = R"(#include <cuda_runtime.h>
__global__ void smooth(const float* x, float* y, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  @BARRIER@
  const float next = tile[(threadIdx.x + 1) % 256];
  if (@GUARD@) y[i] = tile[threadIdx.x] + next;
}
int main() {
  const int n = 1000;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  smooth<<<(n + 255) / 256, 256>>>(x, y, n);
  cudaDeviceSynchronize();
}
)";

class SanitizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  void Write(const std::string& barrier, const std::string& guard) {
    std::string text = kProgram;
    text.replace(text.find("@BARRIER@"), 9, barrier);
    text.replace(text.find("@GUARD@"), 7, guard);
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / "smooth.cu", text).has_value());
  }
  Json Hazards(const std::string& flags, int exit_code) {
    const Outcome outcome = Run("$A sanitize smooth.cu --target-gpu A100 --json " + flags);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err << outcome.out;
    const auto json = ParseJson(outcome.out);
    return json ? (*json)["hazards"] : Json::array();
  }
  TemporaryDirectory dir_;
};

TEST_F(SanitizeCommand, ACorrectProgramIsClean) {
  Write("__syncthreads();", "i < n");
  const Outcome outcome = Run("$A sanitize smooth.cu --target-gpu A100");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("smooth: no hazards on 4 blocks"));
}

TEST_F(SanitizeCommand, NamesLineThreadAllocationAndBothSidesOfARace) {
  Write("", "i < n");
  const Json race = Hazards("", 1)[0];
  EXPECT_EQ(race["kind"], "race");
  EXPECT_EQ(race["line"], 5);
  EXPECT_EQ(race["text"], "tile[threadIdx.x] = i < n ? x[i] : 0.0f;");
  EXPECT_EQ(race["other"]["line"], 7);
  EXPECT_EQ(race["other"]["text"], "const float next = tile[(threadIdx.x + 1) % 256];");
  EXPECT_EQ(race["space"], "shared");
  EXPECT_GT(race["count"], 4) << "of one place there is one report, and it is counted";
  EXPECT_EQ(Hazards("--check memory,sync", 0).size(), 0u) << "races were not asked for";

  Write("__syncthreads();", "i < n + 1");
  const Json beyond = Hazards("--check memory", 1)[0];
  EXPECT_EQ(beyond["kind"], "out of bounds");
  EXPECT_EQ(beyond["line"], 8);
  EXPECT_EQ(beyond["block"], 3);
  EXPECT_EQ(beyond["thread"], 1000 - 768);
  EXPECT_THAT(beyond["allocation"],
              HasSubstr("0 bytes after the end of 'y', an allocation of 4000 bytes"));
  const Outcome text = Run("$A sanitize smooth.cu --target-gpu A100");
  EXPECT_THAT(text.out, HasSubstr("out of bounds in"));
  EXPECT_THAT(text.out, HasSubstr("smooth.cu:8  if (i < n + 1) y[i] = tile[threadIdx.x] + next;"));
}

TEST_F(SanitizeCommand, FindsWhatNothingWasWrittenTo) {
  Write("__syncthreads(); float* p = (float*)malloc(64); y[i < n ? i : 0] = p[i % 16]; free(p);",
        "false");
  const Json hazards = Hazards("--check init", 1);
  ASSERT_EQ(hazards.size(), 1u) << hazards.dump();
  EXPECT_EQ(hazards[0]["kind"], "uninitialised global memory");
  EXPECT_EQ(hazards[0]["line"], 6);
  EXPECT_EQ(hazards[0]["space"], "global");
}

TEST_F(SanitizeCommand, EndlessLoopsAndLeaksAreHazards) {
  Write("__syncthreads(); while (tile[0] == tile[0]) tile[threadIdx.x] = tile[threadIdx.x];",
        "i < n");
  EXPECT_EQ(Hazards("--max-instructions 100000 --check memory", 1)[0]["kind"],
            "instruction budget");
  Write("__syncthreads(); if (i == 5) *(volatile char*)malloc(24) = 1;", "i < n");
  const Json leak = Hazards("", 1)[0];
  EXPECT_EQ(leak["kind"], "leak");
  EXPECT_EQ(leak["line"], 6);
}

TEST_F(SanitizeCommand, TakesOperatorsDescribedKernelsAndArtifacts) {
  const Outcome softmax = Run(
      "$A sanitize --operator softmax --input-shape 16,300 --target-gpu A100 --json --check "
      "race,init,sync");
  EXPECT_EQ(softmax.exit_code, 0) << softmax.err << softmax.out;
  EXPECT_TRUE((*ParseJson(softmax.out))["complete"]);
  const std::string folder = std::string(ATUNNER_SOURCE_DIR) + "/examples/kernels/";
  Run("cp " + folder + "reduce.* . && sed -i 's/^n = .*/n = 50000/' reduce.toml");
  const Outcome described = Run(
      "$A sanitize reduce.toml --target-gpu A100 --config block=64,vector=4 --json");
  EXPECT_EQ(described.exit_code, 0) << described.err << described.out;
  EXPECT_EQ((*ParseJson(described.out))["configuration"], "block=64, items=1, vector=4");
  ASSERT_EQ(Run("$A optimize --operator softmax --input-shape 8,64 --target-gpu A100 --virtual "
                "--budget 2 --quiet --out best")
                .exit_code,
            0);
  EXPECT_EQ(Run("$A sanitize best").exit_code, 0);
}

/// Neighbours of a graph's vertices. The host's values of the index arrays are unknown, but they
/// are valid indices.
TEST_F(SanitizeCommand, GraphsHaveNeighboursThatExist) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "bfs.cu", R"(#include <cuda_runtime.h>
__global__ void bfs(const int* row, const int* edge, const int* frontier, int count, int* level, int* next, int* size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int v = frontier[i];
  for (int e = row[v]; e < row[v + 1]; e++) {
    int u = edge[e];
    if (atomicCAS(&level[u], -1, 3) == -1) next[atomicAdd(size, 1)] = u;
  }
}
int main() {
  const int vertices = 500, edges = 4000, count = 100;
  int *r, *e, *f, *l, *n, *s;
  cudaMalloc(&r, (vertices + 1) * sizeof(int)); cudaMalloc(&e, edges * sizeof(int));
  cudaMalloc(&f, count * sizeof(int)); cudaMalloc(&l, vertices * sizeof(int));
  cudaMalloc(&n, edges * sizeof(int)); cudaMalloc(&s, sizeof(int));
  cudaMemset(s, 0, sizeof(int));
  bfs<<<(count + 127) / 128, 128>>>(r, e, f, count, l, n, s);
}
)")
                  .has_value());
  const Outcome outcome = Run("$A sanitize bfs.cu --target-gpu A100");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("bfs: no hazards"));
  EXPECT_THAT(outcome.err, HasSubstr("'row' is filled with ascending offsets of 'edge'"));
}

/// One kernel reads a texture that an annotation states, a second one has a bug, and a third one cannot
/// be read.
TEST_F(SanitizeCommand, EveryKernelThatAProgramLaunchesIsRun) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "two.cu", R"(#include <cuda_runtime.h>
// atunner: arg tex = texture:f32[16,16]
__global__ void look(cudaTextureObject_t tex, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = tex2D<float>(tex, i % 16, i / 16);
}
__global__ void past(float* y, int n) { y[n - threadIdx.x] = 1; }
struct First { float a; };
struct Pair : First { float b; };
__global__ void pairs(Pair p, float* y) { *y = p.a; }
int main() {
  const int n = 256;
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &desc, 16, 16);
  float* y;
  cudaMalloc(&y, n * sizeof(float));
  cudaTextureObject_t tex = 0;
  Pair p;
  p.a = 1, p.b = 2;
  look<<<2, 128>>>(tex, y, n);
  past<<<1, 32>>>(y, n);
  pairs<<<1, 1>>>(p, y);
}
)")
                  .has_value());
  const Outcome outcome = Run("$A sanitize two.cu --target-gpu A100");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("look: no hazards"));
  EXPECT_THAT(outcome.out, HasSubstr("past: 1 hazard"));
  EXPECT_THAT(outcome.err, HasSubstr("pairs was not run"));
  EXPECT_THAT(outcome.err, HasSubstr("takes a structure by value (Pair p)"));
  EXPECT_EQ(Run("$A sanitize two.cu --kernel look --target-gpu A100").exit_code, 0);
  const Json reports = ParseJson(Run("$A sanitize two.cu --target-gpu A100 --json").out).value();
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[1]["kernel"], "past");
  EXPECT_EQ(reports[1]["found"], 1);
  EXPECT_THAT(reports[2]["refused"].get<std::string>(), HasSubstr("structure"));
}

TEST_F(SanitizeCommand, WrongInputIsOneMessage) {
  Write("__syncthreads();", "i < n");
  const std::pair<const char*, const char*> cases[] = {
      {"$A sanitize", "name a file"},
      {"$A sanitize smooth.cu --operator softmax --input-shape 8,8", "name a file"},
      {"$A sanitize missing.cu --target-gpu A100", "missing.cu"},
      {"$A sanitize smooth.cu --target-gpu A100 --check bounds", "there is no check 'bounds'"},
      {"$A sanitize smooth.cu --target-gpu A100 --config blok=3", "sets no parameter"},
      {"$A sanitize smooth.cu --target-gpu A100 --timeout 0", "--timeout"},
      {"$A counts missing.toml --target-gpu A100", "missing.toml"},
  };
  for (const auto& [shell, says] : cases) {
    const Outcome outcome = Run(shell);
    EXPECT_EQ(outcome.exit_code, 2) << shell;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << shell;
  }
}

TEST_F(SanitizeCommand, CountsByLineOfTheSource) {
  Write("__syncthreads();", "i < n");
  const Outcome outcome = Run("$A counts smooth.cu --target-gpu A100 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = ParseJson(outcome.out).value();
  std::map<int, Json> lines;
  for (const Json& line : json["lines"]) lines[line["line"]] = line;
  // 1000 floats: 31 whole warps and one of eight lanes.
  EXPECT_EQ(lines[5]["global_requests"], 32);
  EXPECT_EQ(lines[5]["memory_l2_theoretical_sectors_global"], 125);
  EXPECT_EQ(lines[5]["global_bytes"], 4000);
  EXPECT_EQ(lines[7]["shared_requests"], 32);
  EXPECT_EQ(lines[7]["memory_l1_wavefronts_shared"], 32);
  EXPECT_EQ(lines[8]["memory_l2_theoretical_sectors_global"], 125);
  uint64_t executed = 0;
  for (const auto& [number, line] : lines) executed += line["inst_executed"].get<uint64_t>();
  EXPECT_EQ(json["totals"]["inst_executed"], executed);
  EXPECT_EQ(json["totals"]["shared_wavefronts"], 96);
  EXPECT_EQ(json["totals"]["barriers"], 32);
  EXPECT_THAT(Run("$A counts smooth.cu --target-gpu A100").out, HasSubstr("smooth.cu:7"));
}

}  // namespace
}  // namespace atunner
