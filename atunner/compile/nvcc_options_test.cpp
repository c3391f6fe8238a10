#include "atunner/compile/nvcc_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(OptionsForSource, LibrariesOfWhatIsIncluded) {
  EXPECT_THAT(OptionsForSource("#include <cublas_v2.h>\n#include <omp.h>\n#pragma omp parallel"),
              ElementsAre("-lcublas", "-Xcompiler=-fopenmp"));
  EXPECT_THAT(OptionsForSource("#include <cstdio>"), IsEmpty());
}

class NvccRemedies : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / name, text));
  }
  std::optional<NvccRemedy> Find(const std::string& messages,
                                 const std::vector<std::string>& options = {}) {
    return FindNvccRemedy(messages, dir_.path() / "app/main.cu", options, dir_.path() / "ours");
  }
  TemporaryDirectory dir_;
};

TEST_F(NvccRemedies, AHeaderInAFolderBesideThoseAbove) {
  Write("app/main.cu", "#include \"timing.h\"");
  Write("common/inc/timing.h", "");
  const auto remedy = Find("main.cu:1:10: fatal error: timing.h: No such file or directory");
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->options, ElementsAre("-I" + (dir_.path() / "common/inc").string()));
  EXPECT_FALSE(Find("fatal error: timing.h: No such file or directory", remedy->options))
      << "the same again does not help";
  EXPECT_FALSE(Find("fatal error: nowhere.h: No such file or directory"));
}

TEST_F(NvccRemedies, OurOwnHeaderInPlaceOfTheSamples) {
  Write("app/main.cu", "#include <helper_cuda.h>");
  const auto remedy = Find("fatal error: helper_cuda.h: No such file or directory");
  ASSERT_TRUE(remedy);
  EXPECT_THAT(ReadFile(dir_.path() / "ours/helper_cuda.h").value(), HasSubstr("checkCudaErrors"));
  EXPECT_TRUE(Exists(dir_.path() / "ours/helper_string.h")) << "which that one includes";
}

TEST_F(NvccRemedies, SourcesBesideButNoOtherPrograms) {
  Write("app/main.cu", "#include \"part.cu\"\nint main() {}");
  Write("app/part.cu", "");
  Write("app/host.cpp", "void f() {}");
  Write("app/other.cu", "int main() {}");
  const auto remedy = Find("main.o: undefined reference to `f()'");
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->sources, ElementsAre(dir_.path() / "app/host.cpp"));
}

TEST_F(NvccRemedies, FlagsThatNvccNames) {
  const auto remedy = Find("error: the flag --extended-lambda must be specified");
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->options, ElementsAre("--extended-lambda"));
  EXPECT_FALSE(Find("the flag --extended-lambda must be specified", {"--extended-lambda"}));
}

TEST_F(NvccRemedies, TheDialectThatThrustRequires) {
  const std::string messages = "error: #error Thrust requires at least C++17. Define";
  const auto remedy = Find(messages, {"-std=c++14"});
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->options, ElementsAre("-std=c++17"));
  EXPECT_FALSE(Find(messages, {"-std=c++14", "-std=c++17"}));
}

TEST_F(NvccRemedies, NamesThatCudaNoLongerHas) {
  const auto remedy = Find("error: identifier \"cudaThreadSynchronize\" is undefined");
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->options,
              ElementsAre("-include=" + (dir_.path() / "ours/older_cuda.h").string()));
  EXPECT_FALSE(Find("error: identifier \"x\" is undefined"));
}

}  // namespace
}  // namespace atunner
