// Runs the fuzzer of vgpu_fuzz.cpp on a few damaged modules.
#include <gtest/gtest.h>

#include <algorithm>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#include "atunner/vgpu/conformance/conformance_cases.h"

namespace atunner::vgpu {

void FuzzEngine(std::string_view text);  // vgpu_fuzz.cpp

namespace {

std::string Text(const char* file) {
  return ReadFile(Path(ATUNNER_SOURCE_DIR) / file).value_or("");
}

TEST(Damage, WholeKernels) {
  for (const char* file : {"runtime/testdata/kernels.ptx", "runtime/testdata/hopper.ptx"}) {
    const std::string good = Text(file);
    ASSERT_FALSE(good.empty()) << file;
    Random random(3);
    for (int i = 0; i < 300; ++i) FuzzEngine(Mutated(good, random));
  }
}

/// One form of every instruction that has cases, damaged by itself.
TEST(Damage, SingleInstructions) {
  for (const char* group : {"approximate", "convert", "floats", "halves", "integers", "logic"}) {
    const auto forms = ReadConformance(
        Text(("atunner/vgpu/conformance/" + std::string(group) + ".txt").c_str()));
    ASSERT_TRUE(forms) << forms.error().ToString();
    Random random(4);
    for (const ConformanceForm& form : *forms) {
      const std::string good = ConformanceModule({form}, std::max(form.arch, 80));
      for (int i = 0; i < 3; ++i) FuzzEngine(Mutated(good, random));
    }
  }
}

}  // namespace
}  // namespace atunner::vgpu
