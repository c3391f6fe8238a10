// wgmma against products computed beside it, on both builds of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/wgmma_cases.h"

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

std::vector<std::string> CheckAll(ProgramLoader load) {
  return CheckWgmma(WgmmaCases(), [&](const WgmmaData& data) -> Result<std::vector<uint32_t>> {
    std::vector<uint32_t> output(data.expected.size());
    const ExecResult result = Launch(load, data.ptx, data.input, output);
    if (!result.outcome.completed()) return Invalid(result.outcome.message);
    return output;
  });
}

TEST(Wgmma, ProductsOfAllTypesAndLayoutsAvx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_THAT(CheckAll(avx2::Load), testing::IsEmpty());
}
TEST(Wgmma, ProductsOfAllTypesAndLayoutsPortable) { EXPECT_THAT(CheckAll(portable::Load), testing::IsEmpty()); }

}  // namespace
}  // namespace atunner::vgpu
