// `explain`, `analyze`, `profile --ncu`, `hardware-optimize --rewrite` and `diff` as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kRowSum = R"(__global__ void row_sum(float* out, const float* in, int rows,
                                                     int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = 0; j < cols; ++j) sum += in[row * cols + j];
  out[row] = sum;
}
int main() {
  const int rows = 512, cols = 256;
  float *out, *in;
  cudaMalloc(&out, rows * sizeof(float));
  cudaMalloc(&in, rows * cols * sizeof(float));
  row_sum<<<(rows + 127) / 128, 128>>>(out, in, rows, cols);
}
)";

class EvidenceVerbs : public testing::Test {
 protected:
  void SetUp() override {
    if (Run("$A doctor --json").out.find("\"part\":\"NVRTC\",\"found\":true") == std::string::npos)
      GTEST_SKIP() << "NVRTC is not installed";
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / "row_sum.cu", kRowSum));
  }
  Outcome Run(const std::string& shell) { return RunShell(dir_.path().string(), shell); }
  TemporaryDirectory dir_;
};

TEST_F(EvidenceVerbs, NameTheBottleneckAndItsIdeas) {
  const Outcome shown = Run("$A explain row_sum.cu --target-gpu A100 --json");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const Json json = ParseJson(shown.out).value();
  EXPECT_EQ(json["bottleneck"], "small-grid");
  EXPECT_EQ(json["ideas"][0]["rewrite"], "share-loop-in-warp");
  EXPECT_GT(json["ideas"][0]["expected_gain"].get<double>(), 1);
  for (const Json& counter : json["launches"][0]["counters"])
    EXPECT_EQ(counter["origin"], "counted") << "what is counted is never called measured";
  EXPECT_THAT(Run("$A analyze row_sum.cu --target-gpu A100").out,
              HasSubstr("load in[row * cols + j]: strided, 256 elements to the next thread"));
}

TEST_F(EvidenceVerbs, ReadWhatNcuMeasured) {
  ASSERT_TRUE(WriteFileAtomic(
      dir_.path() / "ncu.csv",
      "==PROF== Connected\n\"ID\",\"Kernel Name\",\"dram__throughput.avg.pct_of_peak_sustained_"
      "elapsed\",\"gpu__time_duration.sum\"\n\"\",\"\",\"%\",\"us\"\n\"0\",\"k\",\"91\",\"3\"\n"));
  const Outcome shown = Run("$A profile --ncu ncu.csv");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("bottleneck: memory-bound"));
  EXPECT_THAT(shown.out, HasSubstr("measured"));
  EXPECT_NE(Run("$A explain --ncu row_sum.cu").exit_code, 0);
  // What ncu printed of three kernels on an H100.
  const std::string golden = std::string(ATUNNER_SOURCE_DIR) + "/atunner/evidence/testdata/";
  const Json raw = ParseJson(Run("$A profile --json --ncu " + golden + "ncu_raw.csv").out).value();
  ASSERT_EQ(raw["kernels"].size(), 3U);
  EXPECT_EQ(raw["kernels"][1]["findings"][0]["bottleneck"], "uncoalesced");
  EXPECT_EQ(raw["kernels"][2]["findings"][0]["bottleneck"], "bank-conflicts");
}

TEST_F(EvidenceVerbs, RewriteUntilNothingIsGained) {
  const Outcome done = Run(
      "$A hardware-optimize --source row_sum.cu --rewrite --target-gpu A100 --virtual --out best");
  ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
  EXPECT_THAT(done.out, HasSubstr("1 share-loop-in-warp"));
  EXPECT_THAT(done.out, HasSubstr("does not apply"));
  // It is recognised; whichever kernel wins, the file has the fastest rewrite.
  EXPECT_THAT(done.out + done.err, HasSubstr("the kernel was recognised as sum of rows of in"));
  EXPECT_THAT(done.out, HasSubstr("1 operator-kernel "));
  const std::string kernel = ReadFile(dir_.path() / "best/kernel.cu").value();
  EXPECT_THAT(kernel, HasSubstr("__shfl_xor_sync"));
  const std::string file = ReadFile(dir_.path() / "best/rewritten.cu").value();
  EXPECT_THAT(file, HasSubstr("row_sum<<<32 * ((rows + 127) / 128), 128>>>"));
  const Outcome diff = Run("$A diff best");
  EXPECT_THAT(diff.out, HasSubstr("; bottleneck "));
  EXPECT_THAT(diff.out, HasSubstr("\n+  for (int j = lane; j < cols; j += 32)"));
  const Json json = ParseJson(Run("$A diff best --json").out).value();
  EXPECT_GT(json["own_ns"].get<double>(), 1.5 * json["best_ns"].get<double>());
  EXPECT_EQ(json["times"], "predicted");
  // The diff is a patch of the user's file.
  EXPECT_EQ(Run("patch -p1 --dry-run < best/rewrite.diff").exit_code, 0);
  EXPECT_NE(Run("$A diff row_sum.cu").exit_code, 0);
}

}  // namespace
}  // namespace atunner
