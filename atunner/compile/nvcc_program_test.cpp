#include "atunner/compile/nvcc_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NvccProgram, OptionsAreSplitAsAShellDoes) {
  EXPECT_THAT(SplitOptions("-std=c++17  -I 'my include' -DX=\"a b\""),
              ElementsAre("-std=c++17", "-I", "my include", "-DX=a b"));
  EXPECT_THAT(SplitOptions("  "), IsEmpty());
  EXPECT_THAT(SplitOptions("''"), ElementsAre(""));
}

/// A script in the place of nvcc.
class FakeNvcc : public testing::Test {
 protected:
  void Install(const std::string& script) {
    const Path nvcc = dir_.path() / "bin" / "nvcc";
    ASSERT_TRUE(WriteFileAtomic(nvcc, "#!/bin/sh\n" + script));
    ASSERT_EQ(chmod(nvcc.c_str(), 0755), 0);
    setenv("CUDA_HOME", dir_.path().c_str(), 1);
  }
  ~FakeNvcc() override { unsetenv("CUDA_HOME"); }
  TemporaryDirectory dir_;
};

TEST_F(FakeNvcc, GetsTheOptionsAndTheArchitecture) {
  Install("echo \"$@\" > " + (dir_.path() / "arguments").string() + "\n");
  ASSERT_TRUE(BuildProgram({"/src/a.cu", {"-DX=1"}, 90, dir_.path() / "a"}));
  const std::string arguments = ReadFile(dir_.path() / "arguments").value();
  EXPECT_THAT(arguments, HasSubstr("-lineinfo"));
  EXPECT_THAT(arguments, HasSubstr("code=compute_90"));
  EXPECT_THAT(arguments, HasSubstr("-DX=1"));
  EXPECT_THAT(arguments, HasSubstr("/src/a.cu"));
}

TEST_F(FakeNvcc, ItsMessagesAreShown) {
  Install("echo 'a.cu(3): error: no such thing' >&2; exit 2\n");
  const auto built = BuildProgram({"a.cu", {}, 80, dir_.path() / "a"});
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(built.error().ToString(), HasSubstr("a.cu(3): error: no such thing"));
}

}  // namespace
}  // namespace atunner
