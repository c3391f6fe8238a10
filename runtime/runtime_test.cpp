// The library through its C and C++ headers, on the virtual driver: results are computed, calls are
// recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atunner.hpp>
#include <cstdio>
#include <thread>

#include "atunner/base/cuda_abi.h"
#include "runtime/test_artifacts.h"
#include "runtime/testing/driver_client.h"

namespace atunner::loader {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kA100 = "A100";

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) - 3.0f;
  return values;
}

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

void* const kStream = reinterpret_cast<void*>(uintptr_t{0x57});

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    cuda_.Play(kA100);
    cuda_.AcceptCubins(false);
    cuda_.ResetLog();
  }
  void TearDown() override {
    EXPECT_EQ(cuda_.context_depth(), 0) << "what was current before must be current after";
  }
  /// A set with one artifact.
  runtime::Set SetOf(const Artifact& artifact, const std::string& cubin = {}) {
    const Path folder = dir_.path() / artifact.name;
    const Status saved = SaveTestArtifact(folder, artifact, cubin);
    EXPECT_TRUE(saved.has_value()) << saved.error().ToString();
    runtime::Set set(ATUNNER_VIRTUAL_CUDA);
    set.Add(folder.string());
    return set;
  }
  /// The message of a call that must fail.
  template <class Body>
  std::string ErrorOf(atunner_status expected, Body&& body) {
    try {
      body();
    } catch (const runtime::Error& error) {
      EXPECT_EQ(error.status(), expected) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing_driver::Client cuda_{ATUNNER_VIRTUAL_CUDA};
  TemporaryDirectory dir_;
};

TEST_F(Runtime, LaunchesOnTheUsersStreamWithTheRightArguments) {
  const runtime::Set set = SetOf(ScaleArtifact());
  const runtime::Kernel kernel = set.Choose({"scale", "float32", {{"n", 1000}}, {}}, 0);
  EXPECT_EQ(kernel.match(), ATUNNER_MATCH_EXACT);
  EXPECT_EQ(kernel.match_text(), "tuned for NVIDIA A100-SXM4-80GB at this size, predicted");
  const std::vector<float> input = Ramp(1000);
  const uint64_t x = cuda_.Upload(input);
  const uint64_t y = cuda_.Upload(std::vector<float>(1000, -1.0f));
  cuda_.ResetLog();
  kernel.Launch(kStream, {x, y});
  // 2.5f is 0x40200000, 1000 is 0x3e8.
  EXPECT_EQ(
      cuda_.log(),
      "cuLaunchKernel scale grid=16,1,1 block=64,1,1 cluster=1,1,1 shared=0 stream=0x57 args=" +
          Hex(x) + "," + Hex(y) + ",40200000,3e8\n");
  const std::vector<float> output = cuda_.Download(y, 1000);
  for (size_t i = 0; i < output.size(); ++i) ASSERT_EQ(output[i], 2.5f * input[i]) << i;
}

TEST_F(Runtime, ServesOtherSizesOfTheFreeDims) {
  const runtime::Set set = SetOf(ScaleArtifact());
  const runtime::Kernel kernel = set.Choose({"scale", "", {{"n", 130}}, {}}, 0);
  EXPECT_EQ(kernel.match(), ATUNNER_MATCH_DEVICE);
  const uint64_t x = cuda_.Upload(Ramp(130));
  const uint64_t y = cuda_.Upload(std::vector<float>(131, -1.0f));
  kernel.LaunchNamed(nullptr, {{"y", y}, {"x", x}});
  EXPECT_THAT(cuda_.log(), HasSubstr("grid=3,1,1"));
  const std::vector<float> output = cuda_.Download(y, 131);
  EXPECT_EQ(output[129], 2.5f * 126.0f);
  EXPECT_EQ(output[130], -1.0f) << "nothing behind the size asked for";
}

TEST_F(Runtime, DescribesArgumentsAndArtifacts) {
  const runtime::Set set = SetOf(TableArtifact());
  const atunner_artifact_info info = set.info(0);
  EXPECT_STREQ(info.name, "by_table");
  EXPECT_STREQ(info.dtype, "float32");
  EXPECT_STREQ(info.device, "NVIDIA A100-SXM4-80GB");
  EXPECT_STREQ(info.dims, "n=1000");
  EXPECT_STREQ(info.free_dims, "n");
  EXPECT_EQ(info.evidence, ATUNNER_PREDICTED);
  EXPECT_EQ(info.time_ns, 2500);
  EXPECT_EQ(cuda_.log(), "") << "listing needs no driver";
  const auto arguments = set.Choose({"", "", {{"n", 12}}, {}}, 0).arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[1].role, ATUNNER_INPUT);
  EXPECT_EQ(arguments[2].role, ATUNNER_OUTPUT);
  EXPECT_EQ(arguments[2].rank, 1u);
  EXPECT_EQ(arguments[0].bytes, 48u);
}

TEST_F(Runtime, TakesScratchMemoryFromThePoolInStreamOrder) {
  const runtime::Set set = SetOf(TwoStepArtifact());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  EXPECT_EQ(kernel.workspace_bytes(), 256u + 4096u) << "each workspace rounded up to 256";
  const uint64_t x = cuda_.Upload(Ramp(1000));
  const uint64_t y = cuda_.Upload(std::vector<float>(1000));
  cuda_.ResetLog();
  kernel.Launch(kStream, {x, y});
  EXPECT_THAT(cuda_.log(), testing::MatchesRegex(
                               "cuMemAllocAsync 4352 stream=0x57\ncuLaunchKernel halve [^\n]*\n"
                               "cuLaunchKernel add_one [^\n]*\ncuMemFreeAsync stream=0x57\n"));
  EXPECT_EQ(cuda_.Download(y, 1000)[100], 97.0f / 2 + 1);
}

TEST_F(Runtime, LetsAStepThatWaitsItselfStartEarly) {
  cuda_.Play("H200");
  Artifact artifact = TwoStepArtifact();
  artifact.plan.steps[1].programmatic = true;
  const runtime::Set set = SetOf(artifact);
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  const uint64_t x = cuda_.Upload(Ramp(1000));
  const uint64_t y = cuda_.Upload(std::vector<float>(1000));
  cuda_.ResetLog();
  kernel.Launch(kStream, {x, y});
  EXPECT_THAT(cuda_.log(),
              testing::ContainsRegex(
                  "cuLaunchKernel halve [^\n]*\ncuLaunchKernelEx add_one [^\n]* programmatic\n"));
  EXPECT_EQ(cuda_.Download(y, 1000)[100], 97.0f / 2 + 1);
}

TEST_F(Runtime, PassesTensorMapsAndLaunchesCooperatively) {
  cuda_.Play("H200");
  const Path folder = dir_.path() / "boxes";
  ASSERT_TRUE(SaveTestArtifact(folder, HopperArtifact(), {}, "hopper"));
  runtime::Set set(ATUNNER_VIRTUAL_CUDA);
  set.Add(folder.string());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  const uint64_t x = cuda_.Upload(Ramp(1000));
  const uint64_t y = cuda_.Upload(std::vector<float>(1000));
  cuda_.ResetLog();
  kernel.Launch(kStream, {x, y});
  EXPECT_THAT(cuda_.log(), HasSubstr("cuTensorMapEncodeTiled 7 rank=1\n"));
  EXPECT_THAT(cuda_.log(),
              HasSubstr("cuLaunchKernelEx boxes grid=16,1,1 block=64,1,1 cluster=1,1,1"));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("failed")));
  const std::vector<float> result = cuda_.Download(y, 1000);
  EXPECT_EQ(std::vector(result.begin(), result.end() - 1), std::vector(Ramp(999)));
  EXPECT_EQ(result[999], 16.0f) << "every block saw all others arrive";
}

TEST_F(Runtime, UsesTheCallersScratchMemory) {
  const runtime::Set set = SetOf(TwoStepArtifact());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  const uint64_t x = cuda_.Upload(Ramp(1000));
  const uint64_t y = cuda_.Upload(std::vector<float>(1000));
  const uint64_t workspace = cuda_.Upload(std::vector<float>(1088));
  ASSERT_EQ(workspace % 256, 0u);
  cuda_.ResetLog();
  kernel.Launch(kStream, {x, y}, workspace, 4352);
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("Async")));
  EXPECT_THAT(cuda_.log(), HasSubstr("args=" + Hex(x) + "," + Hex(workspace + 256) + ",3e8"));
  EXPECT_EQ(cuda_.Download(y, 1000)[100], 97.0f / 2 + 1);
  cuda_.ResetLog();
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { kernel.Launch(kStream, {x, y}, workspace, 4351); }),
              HasSubstr("4352 are needed"));
  EXPECT_THAT(
      ErrorOf(ATUNNER_INVALID, [&] { kernel.Launch(kStream, {x, y}, workspace + 16, 9999); }),
      HasSubstr("not aligned to 256"));
  EXPECT_EQ(cuda_.log(), "") << "a refused launch must not reach the driver";
}

TEST_F(Runtime, GivesScratchMemoryBackWhenALaunchFails) {
  const runtime::Set set = SetOf(TwoStepArtifact());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  const uint64_t x = cuda_.Upload(Ramp(1000));
  cuda_.ResetLog();
  cuda_.FailNext("cuLaunchKernel", cuda::kOutOfMemory);
  EXPECT_THAT(ErrorOf(ATUNNER_UNAVAILABLE, [&] { kernel.Launch(kStream, {x, x}); }),
              testing::AllOf(HasSubstr("launch 'halve'"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("add_one")))
      << "later steps must not run on half a result";
  EXPECT_THAT(cuda_.log(), HasSubstr("cuMemFreeAsync"));
}

TEST_F(Runtime, CopiesATensorToItsSymbolInTheStream) {
  const runtime::Set set = SetOf(TableArtifact());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 8}}, {}}, 0);
  const uint64_t x = cuda_.Upload(std::vector<float>(8, 2.0f));
  const uint64_t y = cuda_.Upload(std::vector<float>(8));
  for (const float base : {1.0f, 10.0f}) {
    cuda_.ResetLog();
    kernel.Launch(kStream, {x, cuda_.Upload({base, base + 1, base + 2, base + 3}), y});
    EXPECT_THAT(cuda_.log(),
                HasSubstr("cuMemcpyDtoDAsync_v2 16 stream=0x57\ncuLaunchKernel by_table"));
    EXPECT_EQ(cuda_.Download(y, 8)[6], 2 * (base + 2));
  }
}

TEST_F(Runtime, RefusesWrongTensorsBeforeTheDriverSeesThem) {
  const runtime::Set set = SetOf(ScaleArtifact());
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  cuda_.ResetLog();
  const auto problem = [&](const std::vector<uint64_t>& tensors) {
    return ErrorOf(ATUNNER_INVALID, [&] { kernel.Launch(kStream, tensors); });
  };
  EXPECT_THAT(problem({}), HasSubstr("takes 2 tensors, 0 are given"));
  EXPECT_THAT(problem({16, 32, 48}), HasSubstr("3 are given"));
  EXPECT_THAT(problem({0, 32}), HasSubstr("'x' is null"));
  EXPECT_THAT(problem({16, 36}), HasSubstr("'y' is not aligned to 16"));
  const auto named = [&](std::initializer_list<atunner_tensor> tensors) {
    return ErrorOf(ATUNNER_INVALID, [&] { kernel.LaunchNamed(kStream, tensors); });
  };
  EXPECT_THAT(named({{"x", 16}}), HasSubstr("'y' is null"));
  EXPECT_THAT(named({{"x", 16}, {"x", 32}}), HasSubstr("'x' is given twice"));
  EXPECT_THAT(named({{"x", 16}, {"z", 32}}), HasSubstr("no argument 'z'"));
  EXPECT_EQ(cuda_.log(), "");
}

TEST_F(Runtime, SaysHowGoodTheMatchIsOnOtherGpus) {
  const Artifact artifact = ScaleArtifact();
  for (const auto& [gpu, match] : {std::pair(kA100, ATUNNER_MATCH_EXACT),
                                   {"A30", ATUNNER_MATCH_ARCHITECTURE},
                                   {"A10", ATUNNER_MATCH_COMPATIBLE},
                                   {"H200", ATUNNER_MATCH_COMPATIBLE}}) {
    cuda_.Play(gpu);
    EXPECT_EQ(SetOf(artifact).Choose({"", "", {{"n", 1000}}, {}}, 0).match(), match) << gpu;
  }
  cuda_.Play("T4");
  const runtime::Set set = SetOf(artifact);
  EXPECT_THAT(ErrorOf(ATUNNER_NOT_FOUND, [&] { set.Choose({"", "", {{"n", 1000}}, {}}, 0); }),
              testing::AllOf(HasSubstr("compiled for sm_80"), HasSubstr("7.5")));
}

TEST_F(Runtime, ChoosesAmongSeveralArtifacts) {
  Artifact small = ScaleArtifact();
  small.spec.dims["n"] = 50;
  Artifact other = ScaleArtifact();
  other.device = "NVIDIA A30";
  ASSERT_TRUE(SaveTestArtifact(dir_.path() / "all" / "1000", ScaleArtifact()).has_value());
  ASSERT_TRUE(SaveTestArtifact(dir_.path() / "all" / "50", small).has_value());
  ASSERT_TRUE(SaveTestArtifact(dir_.path() / "all" / "a30", other).has_value());
  ASSERT_TRUE(MakeDirectories(dir_.path() / "all" / "not an artifact").has_value());
  runtime::Set set(ATUNNER_VIRTUAL_CUDA);
  set.Add((dir_.path() / "all").string());
  ASSERT_EQ(set.size(), 3u);
  const auto folder_for = [&](int64_t n) {
    const runtime::Kernel kernel = set.Choose({"", "", {{"n", n}}, {}}, 0);
    return Path(set.info(kernel.artifact()).folder).filename().string();
  };
  EXPECT_EQ(folder_for(1000), "1000");
  EXPECT_EQ(folder_for(60), "50");
  cuda_.Play("A30");
  runtime::Set there(ATUNNER_VIRTUAL_CUDA);
  there.Add((dir_.path() / "all").string());
  EXPECT_EQ(
      Path(there.info(there.Choose({"", "", {{"n", 50}}, {}}, 0).artifact()).folder).filename(),
      "a30");
  EXPECT_THAT(ErrorOf(ATUNNER_NOT_FOUND,
                      [&] { there.Choose({"", "", {{"n", 50}}, {}, ATUNNER_MATCH_EXACT}, 0); }),
              HasSubstr("another size"));
}

TEST_F(Runtime, PrefersTheCubinAndFallsBackToPtx) {
  const std::string cubin =
      "\x7f"
      "ELF of another world";
  const runtime::Set set = SetOf(ScaleArtifact(), cubin);
  cuda_.AcceptCubins(true);
  {
    const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  }
  EXPECT_THAT(cuda_.log(), HasSubstr("cuModuleLoadDataEx cubin\n"));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("ptx")));
  cuda_.AcceptCubins(false);
  cuda_.ResetLog();
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  EXPECT_THAT(cuda_.log(), HasSubstr("cuModuleLoadDataEx cubin\ncuModuleLoadDataEx ptx\n"));
}

TEST_F(Runtime, AllowsLargeSharedMemoryAndClusters) {
  cuda_.Play("H200");
  cuda_.AcceptCubins(true);
  Artifact artifact = ScaleArtifact();
  artifact.arch = "sm_90a";
  artifact.cc_major = 9;
  artifact.plan.steps[0].shared_bytes = Expr(100000);
  artifact.plan.steps[0].cluster[0] = Expr(16);
  const runtime::Set set = SetOf(artifact,
                                 "\x7f"
                                 "ELF");
  const runtime::Kernel kernel = set.Choose({"", "", {{"n", 4096}}, {}}, 0);
  EXPECT_THAT(cuda_.log(),
              HasSubstr("cuFuncSetAttribute scale 8=100000\ncuFuncSetAttribute scale 14=1\n"));
  cuda_.ResetLog();
  kernel.Launch(kStream, {256, 512});
  EXPECT_THAT(
      cuda_.log(),
      HasSubstr("cuLaunchKernelEx scale grid=64,1,1 block=64,1,1 cluster=16,1,1 shared=100000"));
}

TEST_F(Runtime, ASmallerSizeLeavesALargerOneItsSharedMemory) {
  Artifact artifact = ScaleArtifact();
  artifact.plan.steps[0].shared_bytes = Expr::MustParse("48 * n");
  const runtime::Set set = SetOf(artifact);
  const runtime::Kernel large = set.Choose({"", "", {{"n", 2000}}, {}}, 0);
  const runtime::Kernel small = set.Choose({"", "", {{"n", 1500}}, {}}, 0);
  const runtime::Kernel larger = set.Choose({"", "", {{"n", 2500}}, {}}, 0);
  EXPECT_THAT(cuda_.log(), HasSubstr("8=96000"));
  EXPECT_THAT(cuda_.log(), Not(HasSubstr("8=72000")))
      << "one function serves both: it would take from the larger";
  EXPECT_THAT(cuda_.log(), HasSubstr("8=120000"));
}

TEST_F(Runtime, WorksInTheCallersContext) {
  const runtime::Set set = SetOf(ScaleArtifact());
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { set.Choose({"", "", {{"n", 10}}, {}}); }),
              HasSubstr("no current CUDA context"));
  auto* const mine = reinterpret_cast<cuda::Context>(uintptr_t{0xabc});
  cuda_.Call<int(cuda::Context)>("cuCtxPushCurrent_v2", mine);
  cuda_.ResetLog();
  {
    const runtime::Kernel kernel = set.Choose({"", "", {{"n", 10}}, {}});
    EXPECT_THAT(cuda_.log(), Not(HasSubstr("Primary")));
    cuda::Context now = nullptr;
    cuda_.Call<int(cuda::Context*)>("cuCtxGetCurrent", &now);
    EXPECT_EQ(now, mine);
    EXPECT_EQ(cuda_.context_depth(), 1);
  }
  cuda::Context popped = nullptr;
  cuda_.Call<int(cuda::Context*)>("cuCtxPopCurrent_v2", &popped);
}

TEST_F(Runtime, LoadsOnceAndUnloadsWithTheLastKernel) {
  {
    std::optional<runtime::Kernel> last;
    {
      const runtime::Set set = SetOf(ScaleArtifact());
      const runtime::Kernel first = set.Choose({"", "", {{"n", 10}}, {}}, 0);
      last = set.Choose({"", "", {{"n", 20}}, {}}, 0);
    }
    const std::string log = cuda_.log();
    EXPECT_EQ(log.find("cuModuleLoadDataEx"), log.rfind("cuModuleLoadDataEx")) << log;
    EXPECT_THAT(log, Not(HasSubstr("cuModuleUnload"))) << "a kernel outlives its set";
    EXPECT_THAT(log, Not(HasSubstr("cuDevicePrimaryCtxRelease")));
    const uint64_t x = cuda_.Upload(Ramp(20));
    last->Launch(kStream, {x, x});
    EXPECT_EQ(cuda_.Download(x, 20)[19], 2.5f * 16);
  }
  EXPECT_THAT(cuda_.log(), HasSubstr("cuModuleUnload\ncuDevicePrimaryCtxRelease_v2 0\n"));
}

TEST_F(Runtime, SeveralThreadsChooseAndLaunch) {
  const runtime::Set set = SetOf(TwoStepArtifact());
  const runtime::Kernel shared = set.Choose({"", "", {{"n", 1000}}, {}}, 0);
  std::vector<std::thread> threads;
  std::vector<uint64_t> outputs;
  const uint64_t x = cuda_.Upload(Ramp(1000));
  for (int i = 0; i < 4; ++i) outputs.push_back(cuda_.Upload(std::vector<float>(1000)));
  for (const uint64_t y : outputs) {
    threads.emplace_back([&, y] {
      const runtime::Kernel own = set.Choose({"", "", {{"n", 500}}, {}}, 0);
      for (int i = 0; i < 3; ++i) {
        own.Launch(kStream, {x, y});
        shared.Launch(kStream, {x, y});
      }
      EXPECT_EQ(cuda_.context_depth(), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t y : outputs) EXPECT_EQ(cuda_.Download(y, 1000)[900], 897.0f / 2 + 1);
}

TEST_F(Runtime, SaysWhatIsWrongWithProblemsAndFolders) {
  const runtime::Set set = SetOf(ScaleArtifact());
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { set.Choose({"", "float7", {{"n", 10}}, {}}, 0); }),
              HasSubstr("float7"));
  EXPECT_THAT(
      ErrorOf(ATUNNER_INVALID, [&] { set.Choose({"", "", {{"n", 10}, {"n", 11}}, {}}, 0); }),
      HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { set.Choose({"", "", {{"n", 10}}, {}}, 1); }),
              HasSubstr("no GPU 1"));
  EXPECT_THAT(ErrorOf(ATUNNER_NOT_FOUND, [&] { set.Choose({"", "", {{"n", -10}}, {}}, 0); }),
              HasSubstr("at least 1"));
  EXPECT_THAT(
      ErrorOf(ATUNNER_NOT_FOUND, [&] { set.Choose({"", "", {{"n", 10}}, {{"factor", "3"}}}, 0); }),
      HasSubstr("factor=2.5"));
  EXPECT_EQ(set.Choose({"", "", {{"n", 10}}, {{"factor", "2.5"}}}, 0).match(),
            ATUNNER_MATCH_DEVICE);
  runtime::Set empty(ATUNNER_VIRTUAL_CUDA);
  EXPECT_THAT(ErrorOf(ATUNNER_NOT_FOUND, [&] { empty.Add((dir_.path() / "nowhere").string()); }),
              HasSubstr("nowhere"));
  ASSERT_TRUE(MakeDirectories(dir_.path() / "hollow").has_value());
  EXPECT_THAT(ErrorOf(ATUNNER_NOT_FOUND, [&] { empty.Add((dir_.path() / "hollow").string()); }),
              HasSubstr("holds none"));
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "scale" / "kernel.ptx", "edited").has_value());
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { empty.Add(dir_.path().string()); }),
              HasSubstr("changed"));
  EXPECT_EQ(empty.size(), 0u) << "all or nothing";
}

TEST_F(Runtime, AFileChangedAfterAddingIsNotLoaded) {
  const runtime::Set set = SetOf(ScaleArtifact());
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "scale" / "kernel.ptx", "edited").has_value());
  EXPECT_THAT(ErrorOf(ATUNNER_INVALID, [&] { set.Choose({"", "", {{"n", 10}}, {}}, 0); }),
              HasSubstr("changed"));
}

}  // namespace
}  // namespace atunner::loader
