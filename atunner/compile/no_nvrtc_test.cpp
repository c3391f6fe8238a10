// Simulates a machine without NVRTC: this program replaces dlopen by a function that does not find
// it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "atunner/compile/nvrtc_compiler.h"

namespace {
std::atomic<bool> hide_cuda = false;
}

extern "C" void* dlopen(const char* file, int mode) noexcept {
  if (hide_cuda && file != nullptr && std::strstr(file, "nvrtc") != nullptr) return nullptr;
  using Open = void* (*)(const char*, int);
  static const Open real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  return real(file, mode);
}

namespace atunner {
namespace {

using testing::HasSubstr;

TEST(WithoutNvrtc, TheMessageSaysWhatToInstall) {
  hide_cuda = true;
  const auto compiler = MakeNvrtcCompiler();
  hide_cuda = false;
  ASSERT_FALSE(compiler.has_value());
  EXPECT_EQ(compiler.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(compiler.error().what, HasSubstr("NVRTC"));
  EXPECT_THAT(compiler.error().what, HasSubstr("not installed"));
  EXPECT_THAT(compiler.error().hint, HasSubstr("apt install"));
  EXPECT_THAT(compiler.error().hint, HasSubstr("CUDA_HOME"));
}

}  // namespace
}  // namespace atunner
