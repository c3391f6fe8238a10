// Every form of the conformance files, on both builds of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/vgpu/backend.h"
#include "atunner/vgpu/conformance/conformance_cases.h"
#include "atunner/vgpu/conformance/sweep_cases.h"

namespace atunner::vgpu {
namespace {

using testing::IsEmpty;

constexpr const char* kFiles[] = {"integers", "logic",       "floats", "halves",
                                  "convert",  "approximate", "special"};

std::vector<ConformanceForm> Forms(const std::string& file) {
  const Path path = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "conformance" / (file + ".txt");
  return ReadConformance(ReadFile(path).value()).value();
}

/// Keeps one module loaded at a time: forms come in the order of their modules.
class EngineRunner {
 public:
  explicit EngineRunner(ProgramLoader loader) : loader_(loader) {}

  Result<std::vector<uint64_t>> operator()(const std::string& ptx, const std::string& entry,
                                           const std::vector<uint64_t>& inputs, size_t cases,
                                           size_t outputs) {
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
    const ExecResult result = program_->Run(
        entry, {{(count + 31) / 32, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, params, {});
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
    const auto wrong = CheckConformance(forms, 120, std::ref(runner), cases);
    EXPECT_THAT(wrong, IsEmpty());
    EXPECT_EQ(cases, expected);
    RecordProperty("cases", static_cast<int>(cases));
  }
};

TEST_P(Conformance, Avx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    GTEST_SKIP() << "this processor has no AVX2";
  Check(avx2::Load);
}
TEST_P(Conformance, Portable) { Check(portable::Load); }

INSTANTIATE_TEST_SUITE_P(Files, Conformance, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param); });

std::string SweepsText() {
  return ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "conformance" / "sweeps.txt")
      .value();
}

/// The approximations of the unit for special functions are those of a GPU, bit by bit.
void CheckSpecialFunctions(ProgramLoader loader) {
  EngineRunner runner(loader);
  const auto sweeps = ReadSweeps(SweepsText()).value();
  size_t operands = 0;
  EXPECT_THAT(CheckSweeps(sweeps, std::ref(runner), operands), IsEmpty());
  EXPECT_GE(sweeps.size(), 29u);
  EXPECT_GT(operands, size_t{80} << 20);
}
TEST(SpecialFunctions, AreThoseOfAGpuAvx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    GTEST_SKIP() << "this processor has no AVX2";
  CheckSpecialFunctions(avx2::Load);
}
TEST(SpecialFunctions, AreThoseOfAGpuPortable) { CheckSpecialFunctions(portable::Load); }

TEST(Sweeps, DifferencesAndErrorsAreFound) {
  EngineRunner runner(portable::Load);
  const auto sweeps = ReadSweeps("sweep ex2.approx.ftz.f32 $d, $a; | f32 | f32\n0000 00000000\n")
                          .value();
  size_t operands = 0;
  EXPECT_THAT(CheckSweeps(sweeps, std::ref(runner), operands),
              testing::ElementsAre(testing::HasSubstr("block 0000")));
  EXPECT_EQ(operands, kSweptBlock);
  EXPECT_THAT(ReadSweeps("0000 00000000\n").error().ToString(), testing::HasSubstr("line 1"));
}

TEST(ConformanceFile, ErrorsNameTheLine) {
  EXPECT_THAT(ReadConformance("1 2 = 3\n").error().ToString(), testing::HasSubstr("line 1"));
  EXPECT_THAT(ReadConformance("form add.u32 $d, $a, $b; | u32 | u32 u32 | exact | 75\n1 = 3\n")
                  .error()
                  .ToString(),
              testing::HasSubstr("line 2"));
}

TEST(ConformanceFile, DifferencesAreFound) {
  const auto forms =
      ReadConformance("form add.u32 $d, $a, $b; | u32 | u32 u32 | exact | 75\n1 2 = 3\n1 2 = 4\n")
          .value();
  EngineRunner runner(portable::Load);
  size_t cases = 0;
  EXPECT_EQ(CheckConformance(forms, 90, std::ref(runner), cases).size(), 1u);
  EXPECT_EQ(cases, 2u);
}

/// Lane i holds i with the sign of its parity; the result is the smallest, the largest magnitude,
/// and NaN where asked for.
TEST(Redux, Floats) {
  const std::string ptx =
      ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 %i, %v, %r<4>;\n.reg .pred %odd;\n.reg .b64 %to;\nld.param.u64 %to, "
      "[out];\nmov.u32 %i, %tid.x;\n"
      "cvt.rn.f32.u32 %v, %i;\nand.b32 %r0, %i, 1;\nsetp.ne.u32 %odd, %r0, 0;\n@%odd neg.f32 %v, "
      "%v;\n"
      "redux.sync.min.f32 %r0, %v, -1;\nredux.sync.max.abs.f32 %r1, %v, -1;\n"
      "setp.eq.u32 %odd, %i, 9;\n@%odd mov.b32 %v, 0x7fc00000;\nredux.sync.max.f32 %r2, %v, -1;\n"
      "redux.sync.max.NaN.f32 %r3, %v, -1;\nmad.wide.u32 %to, %i, 16, %to;\n"
      "st.global.v4.b32 [%to], {%r0, %r1, %r2, %r3};\nret;\n}\n";
  Memory memory(uint64_t{1} << 20);
  auto program = portable::Load(ptx::Parse(ptx).value(), memory).value();
  const uint64_t to = memory.Allocate(512).value();
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &to, 8);
  ASSERT_TRUE(
      program->Run("k", {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0}, params, {}).outcome.completed());
  float values[4];
  std::memcpy(values, reinterpret_cast<const void*>(to + 16 * 20), sizeof values);
  EXPECT_EQ(values[0], -31);
  EXPECT_EQ(values[1], 31);
  EXPECT_EQ(values[2], 30);
  EXPECT_TRUE(std::isnan(values[3]));
}

/// Opcodes of 523 PTX files compiled from public projects; those that need textures are not there
/// yet.
TEST(Opcodes, OfPublicProjectsAreThere) {
  const std::vector<std::string> supported = SupportedOpcodes();
  for (const char* opcode : {"abs",        "activemask",
                             "add",        "and",
                             "atom",       "bar",
                             "barrier",    "bfi",
                             "bfind",      "bmsk",
                             "bra",        "brev",
                             "brkpt",      "call",
                             "clz",        "copysign",
                             "cos",        "cp",
                             "cvt",        "cvta",
                             "div",        "dp4a",
                             "elect",      "ex2",
                             "exit",       "fence",
                             "fma",        "ld",
                             "ldmatrix",   "lg2",
                             "mad",        "mapa",
                             "match",      "max",
                             "mbarrier",   "membar",
                             "min",        "mma",
                             "mov",        "movmatrix",
                             "mul",        "multimem",
                             "nanosleep",  "neg",
                             "not",        "or",
                             "popc",       "prefetch",
                             "prmt",       "rcp",
                             "red",        "redux",
                             "rem",        "ret",
                             "rsqrt",      "selp",
                             "setmaxnreg", "setp",
                             "shf",        "shfl",
                             "shl",        "shr",
                             "sin",        "sqrt",
                             "st",         "stmatrix",
                             "sub",        "tanh",
                             "trap",       "vabsdiff4",
                             "vote",       "wmma",
                             "xor",        "griddepcontrol",
                             "wgmma"})
    EXPECT_THAT(supported, testing::Contains(opcode));
}

/// The text of the file of that name in whichever sub-folder of the room it is; empty if there is
/// none.
std::string SourceNamed(const std::string& name) {
  const Path room = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(room)) {
    if (entry.path().filename() == name) return ReadFile(entry.path()).value_or("");
  }
  return "";
}

/// The how-to page names files of this room and the look-ups in them.
TEST(HowToPage, NamesWhatThereIs) {
  const Path root = ATUNNER_SOURCE_DIR;
  const std::string page = ReadFile(root / "docs" / "how-to" / "add-a-ptx-instruction.md").value();
  std::string sources;
  std::istringstream words(page);
  size_t files = 0;
  for (std::string word; words >> word;) {
    const size_t start = word.find('`');
    const size_t end = word.find(".cpp`");
    if (start == std::string::npos || end == std::string::npos ||
        word.find('/') != std::string::npos)
      continue;
    const std::string text = SourceNamed(word.substr(start + 1, end + 3 - start));
    ASSERT_FALSE(text.empty()) << word;
    sources += text;
    ++files;
  }
  EXPECT_GT(files, 15u);
  for (size_t at = page.find("Handler`"); at != std::string::npos;
       at = page.find("Handler`", at + 1)) {
    const size_t start = page.rfind('`', at) + 1;
    EXPECT_THAT(sources, testing::HasSubstr(page.substr(start, at + 7 - start) + "("));
  }
}

/// Token soup: whatever a module says, loading and running it ends in an error or a report, never
/// in a crash.
TEST(HostileModules, EndInErrorsOrReports) {
  std::vector<std::string> lines;
  std::istringstream in(ConformanceModule(Forms("integers"), 90) +
                        ConformanceModule(Forms("halves"), 90));
  for (std::string line; std::getline(in, line);) {
    if (line.find(';') != std::string::npos && line.find(".reg") == std::string::npos)
      lines.push_back(line);
  }
  Random random(11);
  int loaded = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text =
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry form0(.param .u64 in, "
        ".param .u64 "
        "out, .param .u32 count)\n{\n.reg .pred %past, %q;\n.reg .b32 %n, %i, %block, %in0, "
        "%in1;\n.reg "
        ".b64 %from, %to, %in2, %out0;\n.reg .b16 %in3, %out1;\nld.param.u64 %from, "
        "[in];\nld.param.u64 "
        "%to, [out];\n";
    for (int i = 0; i < 6; ++i) text += lines[random.Below(lines.size())] + "\n";
    // One word of the text in the place of another.
    std::vector<size_t> starts;
    for (size_t i = text.find("[out]"); i < text.size(); ++i) {
      if (text[i] == ' ' || text[i] == ',') starts.push_back(i);
    }
    const size_t a = starts[random.Below(starts.size())];
    const size_t b = starts[random.Below(starts.size())];
    text.insert(a, text.substr(b, text.find_first_of(",;\n", b + 1) - b));
    text += "END: ret;\n}\n";
    auto module = ptx::Parse(text);
    if (!module) continue;
    Memory memory(uint64_t{1} << 28);
    auto program = portable::Load(*std::move(module), memory);
    if (!program) continue;
    ++loaded;
    ExecOptions options;
    options.deadline_seconds = 1;
    options.max_warp_instructions_per_block = 100000;
    (void)(*program)->Run("form0", {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0},
                          std::vector<std::byte>(20), options);
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace atunner::vgpu
