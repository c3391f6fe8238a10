// S1: a source on which the compiler runs for ever or out of memory fails alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/compile/worker_compiler.h"

namespace atunner {
namespace {

using testing::HasSubstr;

CompileRequest Request(const std::string& text) {
  CompileRequest request;
  request.source.name = "bomb.cu";
  request.source.text = text;
  request.entries = {"k"};
  request.arch = "sm_80";
  return request;
}

/// A source with 2^40 template instantiations.
constexpr const char* kTemplateBomb = R"(
template <int N, long M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };
template <long M> struct F<0, M> { static constexpr long v = M; };
extern "C" __global__ void k(long* y) { *y = F<40, 1>::v; }
)";

class CompileBomb : public testing::Test {
 protected:
  void SetUp() override {
    if (auto nvrtc = MakeNvrtcCompiler(); !nvrtc) GTEST_SKIP() << nvrtc.error().ToString();
  }
  static CompileWorkerOptions Options() {
    CompileWorkerOptions options;
    options.worker.executable = ATUNNER_EXECUTABLE;
    options.worker.arguments = {"__compiler"};
    return options;
  }
  static void ExpectItGoesOn(WorkerCompiler& compiler) {
    const auto next = compiler.Compile(
        Request("extern \"C\" __global__ void k(int* y) { *y = 1; }"));
    ASSERT_TRUE(next);
    EXPECT_TRUE(next->ok()) << next->error;
  }
};

TEST_F(CompileBomb, IsStoppedByTheClock) {
  CompileWorkerOptions options = Options();
  options.timeout_seconds = 2;
  WorkerCompiler compiler(options, "");
  const auto outcome = compiler.Compile(Request(kTemplateBomb));
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_THAT(outcome->error, HasSubstr("did not compile within 2 s"));
  ExpectItGoesOn(compiler);
}

TEST_F(CompileBomb, IsStoppedByTheMemoryLimit) {
  CompileWorkerOptions options = Options();
  options.timeout_seconds = 120;
  options.worker.address_space_bytes = uint64_t{1} << 30;
  WorkerCompiler compiler(options, "");
  const auto outcome = compiler.Compile(Request(kTemplateBomb));
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_FALSE(outcome->ok());
  EXPECT_FALSE(outcome->timed_out) << "the limit comes first";
  ExpectItGoesOn(compiler);
}

}  // namespace
}  // namespace atunner
