// wgmma against products computed beside it, on both builds of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/conformance/wgmma_cases.h"

namespace atunner::vgpu {
namespace {

ExecResult Launch(ProgramLoader load, const std::string& ptx, const std::vector<uint32_t>& input,
                  std::vector<uint32_t>& output, uint32_t threads = 128) {
  Memory memory(uint64_t{1} << 30);
  ExecResult result;
  auto module = ptx::Parse(ptx);
  auto program = module ? load(*std::move(module), memory) : std::unexpected(module.error());
  if (!program) {
    result.outcome.kind = LaunchOutcome::Kind::kUnsupported;
    result.outcome.message = program.error().ToString();
    return result;
  }
  const uint64_t from = memory.Allocate(4 * input.size() + 4).value();
  const uint64_t to = memory.Allocate(4 * output.size() + 4).value();
  std::memcpy(reinterpret_cast<void*>(from), input.data(), 4 * input.size());
  std::vector<std::byte> params(16);
  std::memcpy(params.data(), &from, 8);
  std::memcpy(params.data() + 8, &to, 8);
  result = (*program)->Run("product", {{1, 1, 1}, {threads, 1, 1}, {1, 1, 1}, 0}, params, {});
  std::memcpy(output.data(), reinterpret_cast<const void*>(to), 4 * output.size());
  return result;
}

WgmmaRunner Runner(ProgramLoader load) {
  return [load](const WgmmaData& data) -> Result<std::vector<uint32_t>> {
    std::vector<uint32_t> output(data.expected.size());
    const ExecResult result = Launch(load, data.ptx, data.input, output, data.threads);
    if (!result.outcome.completed()) return Invalid(result.outcome.message);
    return output;
  };
}

TEST(TensorProducts, OfAllTypesAndLayoutsAvx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_THAT(CheckWgmma(WgmmaCases(), Runner(avx2::Load)), testing::IsEmpty());
  EXPECT_THAT(CheckMma(MmaCases(), Runner(avx2::Load)), testing::IsEmpty());
  EXPECT_THAT(CheckQuads(Runner(avx2::Load)), testing::IsEmpty());
}
TEST(TensorProducts, OfAllTypesAndLayoutsPortable) {
  EXPECT_THAT(CheckWgmma(WgmmaCases(), Runner(portable::Load)), testing::IsEmpty());
  EXPECT_THAT(CheckMma(MmaCases(), Runner(portable::Load)), testing::IsEmpty());
  EXPECT_THAT(CheckQuads(Runner(portable::Load)), testing::IsEmpty());
}

/// As an H200 was seen to do: of C and 32 products of 2.25 the digits below the 13th of the largest
/// are cut off.
TEST(TensorProducts, Of8BitFloatsKeepThirteenDigits) {
  WgmmaCase one;
  one.a = one.b = "e4m3";
  WgmmaData data = MakeWgmmaData(one);
  const size_t registers = data.input.size() - data.expected.size();
  std::fill_n(data.input.begin(), registers, 0x3c3c3c3cu);  // 1.5
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [c, d] : {std::pair(0.0f, 72.0f),
                             {20001.0f, 20064.0f},
                             {-20001.0f, -19936.0f},
                             {65537.0f, 65536.0f},
                             {0x1p-100f, 72.0f},
                             {0.0001f, 72.0f},
                             {3e38f, 0x1.c36p127f},
                             {kInfinity, kInfinity}}) {
    std::fill(data.input.begin() + static_cast<long>(registers), data.input.end(),
              std::bit_cast<uint32_t>(c));
    std::vector<uint32_t> output(data.expected.size());
    for (const ProgramLoader load : {portable::Load, ProgramLoader(LoadProgram)}) {
      EXPECT_TRUE(Launch(load, data.ptx, data.input, output).outcome.completed());
      EXPECT_EQ(std::bit_cast<float>(output[0]), d) << c;
      EXPECT_EQ(output, std::vector<uint32_t>(output.size(), std::bit_cast<uint32_t>(d))) << c;
    }
  }
}

/// Elements of B that meet no element of a sparse A have no effect, as on an H200; the others do.
TEST(TensorProducts, OfASparseMatrixLeaveOutWhatItsIndicesDo) {
  for (const char* type : {"f16", "e5m2"}) {
    WgmmaCase one;
    one.a = one.b = type;
    one.sparse = true;
    const WgmmaData clean = MakeWgmmaData(one);
    WgmmaData data = clean;
    const size_t shared = (8192 + 40960 - 2048) / 4;
    for (size_t i = 8192 / 4; i < shared; ++i) data.input[i] = 0x7e7e7e7eu;  // NaNs all over B
    std::vector<uint32_t> output(data.expected.size());
    ASSERT_TRUE(Launch(LoadProgram, data.ptx, data.input, output).outcome.completed());
    EXPECT_TRUE(std::ranges::all_of(output, [](uint32_t d) {
      return std::isnan(std::bit_cast<float>(d));
    })) << type;
    // All of A is at the same two places of four: NaNs at the others are not seen.
    data = clean;
    const size_t stride = (data.input.size() - shared) / 128;
    for (size_t thread = 0; thread < 128; ++thread)
      data.input[shared + (thread + 1) * stride - 1] = 0x44444444u;
    const bool narrow = one.a == "e5m2";
    for (size_t i = 8192 / 4; i < shared; ++i)
      data.input[i] = narrow ? 0x7e7e0000u : i % 2 == 0 ? 0 : 0x7e007e00u;
    ASSERT_TRUE(Launch(LoadProgram, data.ptx, data.input, output).outcome.completed());
    EXPECT_TRUE(std::ranges::none_of(output, [](uint32_t d) {
      return std::isnan(std::bit_cast<float>(d));
    })) << type;
  }
}

/// The message of a run of the small kernel after `from` was replaced by `to` in its text; "" when
/// it completes.
std::string After(const WgmmaCase& one, const std::string& from, const std::string& to,
                  uint32_t threads = 128) {
  WgmmaData data = MakeWgmmaData(one);
  const size_t at = data.ptx.find(from);
  if (at == std::string::npos) return "there is no " + from;
  data.ptx.replace(at, from.size(), to);
  std::vector<uint32_t> output(data.expected.size());
  const LaunchOutcome outcome = Launch(LoadProgram, data.ptx, data.input, output, threads).outcome;
  if (!outcome.completed()) return outcome.message;
  return output == data.expected ? "" : "the result is wrong";
}

const std::string kCommit = "  wgmma.commit_group.sync.aligned;\n";
const std::string kWait = "  wgmma.wait_group.sync.aligned 0;\n";

TEST(WgmmaChecks, RegistersInUse) {
  const WgmmaCase one;
  EXPECT_EQ(After(one, kWait, kWait), "");
  EXPECT_THAT(After(one, kWait, ""), testing::HasSubstr("reads a register of the wgmma at line"));
  EXPECT_THAT(After(one, kWait, "  add.u32 %d1, %i, 1;\n" + kWait),
              testing::HasSubstr("writes a register of the wgmma"));
  WgmmaCase fragments = one;
  fragments.a_in_registers = true;
  EXPECT_EQ(After(fragments, kWait, "  add.u32 %i, %a2, 1;\n" + kWait), "")
      << "reading a fragment is no harm";
  EXPECT_THAT(After(fragments, kWait, "  add.u32 %a2, %i, 1;\n" + kWait),
              testing::HasSubstr("writes a register of the wgmma"));
}

TEST(WgmmaChecks, MovedAccumulatorsAreStillToCome) {
  const WgmmaCase one;
  const std::string move = "  mov.b32 %v0, %d0;\n";
  EXPECT_EQ(After(one, kWait, move + kWait + "  mov.b32 %d0, %v0;\n"), "");
  EXPECT_THAT(After(one, kWait, move + "  add.u32 %v1, %v0, 1;\n" + kWait),
              testing::HasSubstr("reads a register"));
}

TEST(WgmmaChecks, AWaitLeavesTheNewestGroups) {
  const WgmmaCase one;
  const std::string older = kCommit + kCommit + "  wgmma.wait_group.sync.aligned 1;\n";
  EXPECT_EQ(After(one, kCommit + kWait, older), "");
  EXPECT_THAT(After(one, kCommit + kWait, kCommit + "  wgmma.wait_group.sync.aligned 1;\n"),
              testing::HasSubstr("reads a register"));
  EXPECT_THAT(After(one, kCommit, ""), testing::HasSubstr("reads a register"))
      << "without a commit there is no group";
}

TEST(WgmmaChecks, OperandsInSharedMemory) {
  const WgmmaCase one;
  EXPECT_THAT(After(one, "  fence.proxy.async;\n", ""),
              testing::HasSubstr("with no fence.proxy.async between"));
  EXPECT_THAT(After(one, "  bar.sync 0;\n", ""), testing::HasSubstr("with no barrier between"));
  EXPECT_THAT(After(one, kWait, "  st.shared.b32 [tile], %thread;\n" + kWait),
              testing::HasSubstr("which an asynchronous operation still reads"));
  EXPECT_EQ(After(one, kWait, kWait + "  bar.sync 0;\n  st.shared.b8 [tile], %thread;\n"), "");
  EXPECT_THAT(After(one, "  add.u64 %db,", "  add.u64 %base, %base, 3000;\n  add.u64 %db,"),
              testing::HasSubstr("matrix descriptor reaches shared address"));
}

TEST(WgmmaChecks, TheWholeGroupTakesPart) {
  const WgmmaCase one;
  EXPECT_THAT(After(one, kWait, kWait, 96), testing::HasSubstr("has no whole warp group"));
  EXPECT_THAT(
      After(one, "  wgmma.fence.sync.aligned;\n",
            "  setp.gt.u32 %more, %thread, 95;\n  @%more exit;\n  wgmma.fence.sync.aligned;\n"),
      testing::HasSubstr("warp 3 of its warp group has ended"));
}

TEST(WgmmaForms, WhatTheIsaLacksIsRefused) {
  const std::string form = "m64n8k16.f32.f16.f16";
  for (const char* other :
       {"m64n12k16.f32.f16.f16", "m64n8k8.f32.f16.f16", "m32n8k16.f32.f16.f16",
        "m64n8k16.f32.f16.bf16", "m64n8k16.f16.bf16.bf16", "m64n8k32.s32.s8.e4m3"})
    EXPECT_THAT(After({}, form, other), testing::HasSubstr("does not support")) << other;
  WgmmaCase sparse;
  sparse.sparse = true;
  EXPECT_EQ(After(sparse, "%meta, 0,", "%meta, 1,"), "the result is wrong")
      << "other lanes say which elements are there";
  EXPECT_THAT(After(sparse, "%meta, 0,", "%meta, 2,"), testing::HasSubstr("does not support"));
}

}  // namespace
}  // namespace atunner::vgpu
