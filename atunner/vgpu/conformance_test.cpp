// Every form of the conformance files, on both builds of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "atunner/base/files.h"
#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/conformance_cases.h"

namespace atunner::vgpu {
namespace {

using testing::IsEmpty;

constexpr const char* kFiles[] = {"integers", "logic", "floats", "halves", "convert", "approximate"};

std::vector<ConformanceForm> Forms(const std::string& file) {
  const Path path = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "conformance" / (file + ".txt");
  return ReadConformance(ReadFile(path).value()).value();
}

/// Keeps one module loaded at a time: forms come in the order of their modules.
class EngineRunner {
 public:
  explicit EngineRunner(ProgramLoader loader) : loader_(loader) {}

  Result<std::vector<uint64_t>> operator()(const std::string& ptx, const std::string& entry,
                                           const std::vector<uint64_t>& inputs, size_t cases, size_t outputs) {
    if (ptx != ptx_) {
      ATUNNER_TRY(ptx::ValidModule module, ptx::Parse(ptx));
      ATUNNER_TRY(program_, loader_(std::move(module), *memory_));
      ptx_ = ptx;
    }
    ATUNNER_TRY(const uint64_t from, memory_->Allocate(8 * inputs.size() + 8));
    ATUNNER_TRY(const uint64_t to, memory_->Allocate(8 * cases * outputs + 8));
    std::memcpy(reinterpret_cast<void*>(from), inputs.data(), 8 * inputs.size());
    std::vector<std::byte> params(20);
    std::memcpy(params.data(), &from, 8);
    std::memcpy(params.data() + 8, &to, 8);
    const auto count = static_cast<uint32_t>(cases);
    std::memcpy(params.data() + 16, &count, 4);
    const ExecResult result = program_->Run(entry, {{(count + 31) / 32, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, params, {});
    std::vector<uint64_t> values(cases * outputs);
    std::memcpy(values.data(), reinterpret_cast<const void*>(to), 8 * values.size());
    memory_->Free(from);
    memory_->Free(to);
    if (!result.outcome.completed()) return Invalid(result.outcome.message);
    return values;
  }

 private:
  ProgramLoader loader_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>(uint64_t{1} << 30);
  std::string ptx_;
  std::unique_ptr<Program> program_;
};

class Conformance : public testing::TestWithParam<const char*> {
 protected:
  void Check(ProgramLoader loader) {
    EngineRunner runner(loader);
    const std::vector<ConformanceForm> forms = Forms(GetParam());
    size_t expected = 0;
    for (const ConformanceForm& form : forms) expected += form.cases.size();
    size_t cases = 0;
    const auto wrong = CheckConformance(forms, 90, std::ref(runner), cases);
    EXPECT_THAT(wrong, IsEmpty());
    EXPECT_EQ(cases, expected);
    RecordProperty("cases", static_cast<int>(cases));
  }
};

TEST_P(Conformance, Avx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    GTEST_SKIP() << "this processor has no AVX2";
  Check(avx2::Load);
}
TEST_P(Conformance, Portable) { Check(portable::Load); }

INSTANTIATE_TEST_SUITE_P(Files, Conformance, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param); });

TEST(ConformanceFile, ErrorsNameTheLine) {
  EXPECT_THAT(ReadConformance("1 2 = 3\n").error().ToString(), testing::HasSubstr("line 1"));
  EXPECT_THAT(ReadConformance("form add.u32 $d, $a, $b; | u32 | u32 u32 | exact | 75\n1 = 3\n").error().ToString(),
              testing::HasSubstr("line 2"));
}

TEST(ConformanceFile, DifferencesAreFound) {
  const auto forms =
      ReadConformance("form add.u32 $d, $a, $b; | u32 | u32 u32 | exact | 75\n1 2 = 3\n1 2 = 4\n").value();
  EngineRunner runner(portable::Load);
  size_t cases = 0;
  EXPECT_EQ(CheckConformance(forms, 90, std::ref(runner), cases).size(), 1u);
  EXPECT_EQ(cases, 2u);
}

}  // namespace
}  // namespace atunner::vgpu
