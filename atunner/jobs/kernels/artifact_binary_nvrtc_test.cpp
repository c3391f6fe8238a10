#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/base/files.h"
#include "atunner/compile/shared_compiler_test.h"
#include "atunner/jobs/kernels/artifact_binary.h"

namespace atunner::jobs {
namespace {

using Kind = BinaryComparison::Kind;

class ArtifactBinaryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeSharedCompiler();
    if (!made) GTEST_SKIP() << made.error().ToString();
    compiler_ = *std::move(made);
    LaunchStep step;
    step.entry = "f";
    artifact_.plan.steps = {step};
    artifact_.resources = {{.entry = "f", .mangled = "f"}};
    artifact_.arch = "sm_80";
    artifact_.compiler = compiler_->Version();
  }

  CompiledModule Compiled(const std::string& value) {
    CompileRequest request;
    request.source.text = "extern \"C\" __global__ void f(float* x) { x[threadIdx.x] *= " + value +
                          "; }";
    request.entries = {"f"};
    request.arch = "sm_80";
    CompileOutcome outcome = compiler_->Compile(request).value();
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    return *std::move(outcome.module);
  }

  /// What is found of an artifact with these files, whose digests are right.
  BinaryComparison Compare(const std::string& ptx, const std::string& cubin) {
    for (const auto& [name, text] : {std::pair("kernel.ptx", ptx), {"kernel.cubin", cubin}}) {
      EXPECT_TRUE(WriteFileAtomic(folder_.path() / name, text));
      artifact_.digests[name] = DigestOf(text);
    }
    const auto found = CompareBinaries(folder_.path(), artifact_, *compiler_);
    EXPECT_TRUE(found.has_value()) << found.error().ToString();
    return *found;
  }

  TemporaryDirectory folder_ = TemporaryDirectory::Make().value();
  std::unique_ptr<Compiler> compiler_;
  Artifact artifact_;
};

TEST_F(ArtifactBinaryTest, TheCubinOfThePtxIsTheSame) {
  const CompiledModule module = Compiled("2.0f");
  EXPECT_EQ(Compare(module.ptx, module.cubin).kind, Kind::kSame);
  EXPECT_EQ(Compare(module.ptx, "").kind, Kind::kSame) << "there is none";
}

TEST_F(ArtifactBinaryTest, KernelsWithNamesOfCppAreFoundInThePtx) {
  CompileRequest request;
  request.source.text = "template <int N> __global__ void g(float* x) { x[threadIdx.x] *= N; }";
  request.entries = {"g<4>"};
  request.arch = "sm_80";
  const CompileOutcome outcome = compiler_->Compile(request).value();
  ASSERT_TRUE(outcome.ok()) << outcome.error;
  artifact_.plan.steps[0].entry = "g<4>";
  artifact_.resources = outcome.module->kernels;
  EXPECT_EQ(Compare(outcome.module->ptx, outcome.module->cubin).kind, Kind::kSame);
}

TEST_F(ArtifactBinaryTest, AForeignCubinIsNoticed) {
  const BinaryComparison found = Compare(Compiled("2.0f").ptx, Compiled("3.0f").cubin);
  EXPECT_EQ(found.kind, Kind::kForeign);
  EXPECT_THAT(found.detail, testing::HasSubstr(".text.f"));
  EXPECT_EQ(Compare(Compiled("2.0f").ptx, "no cubin").kind, Kind::kForeign);
}

TEST_F(ArtifactBinaryTest, WhatCannotBeKnownIsSaid) {
  artifact_.compiler = "NVRTC 11.1";
  const BinaryComparison other = Compare(Compiled("2.0f").ptx, Compiled("3.0f").cubin);
  EXPECT_EQ(other.kind, Kind::kUnknown);
  EXPECT_THAT(other.detail, testing::HasSubstr("NVRTC 11.1"));
  artifact_.compiler = compiler_->Version();
  artifact_.configuration = {{"max_registers", int64_t{32}}};
  EXPECT_EQ(Compare(Compiled("2.0f").ptx, Compiled("3.0f").cubin).kind, Kind::kUnknown);
}

}  // namespace
}  // namespace atunner::jobs
