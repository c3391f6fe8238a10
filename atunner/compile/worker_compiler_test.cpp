// Sources that hang or kill the compiler must give an outcome and not end the run. The worker is
// this same program with a compiler that obeys commands in the source.
#include "atunner/compile/worker_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "atunner/base/clock.h"
#include "atunner/model/json/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kScriptedCompiler = "__scripted_compiler";

class ScriptedCompiler : public Compiler {
 public:
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& = {}) override {
    const std::string& text = request.source.text;
    if (text == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    if (text == "segfault") {
      signal(SIGSEGV, SIG_DFL);  // sanitizers make an exit of it
      raise(SIGSEGV);
    }
    if (text == "abort") {
      std::fprintf(stderr, "out of memory");
      std::abort();
    }
    if (text == "bomb") {
      for (;;) {
        void* some = std::malloc(size_t{64} << 20);
        if (some == nullptr) std::abort();
        std::memset(some, 1, size_t{64} << 20);
      }
    }
    if (text == "babble") WorkerChannel().Send("no answer");
    if (text == "half an answer") WorkerChannel().Send("{\"module\": 3}");
    if (text == "no compiler") return Fail(ErrorCode::kUnavailable, "NVRTC went away");
    CompileOutcome outcome;
    if (text == "wrong") {
      outcome.error = "mine.cu(3): error";
      return outcome;
    }
    outcome.module.emplace();
    outcome.module->ptx = Base64Encode(text);
    outcome.module->arch = request.arch;
    outcome.module->compiler = std::to_string(getpid());
    for (const std::string& entry : request.entries) outcome.module->log += entry + ";";
    outcome.module->cubin = std::string(
        "\x7f"
        "ELF\0\xff",
        6);
    return outcome;
  }
  std::string Version() const override { return "scripted"; }
};

class WorkerCompilerTest : public testing::Test {
 protected:
  static CompileWorkerOptions Options(double timeout_seconds = 30) {
    CompileWorkerOptions options;
    options.worker.arguments = {kScriptedCompiler};
    options.timeout_seconds = timeout_seconds;
    return options;
  }
  static CompileRequest Request(const std::string& text) {
    CompileRequest request;
    request.source.name = "mine.cu";
    request.source.text = text;
    request.entries = {"a<1>", "b"};
    request.arch = "sm_90a";
    return request;
  }
};

TEST_F(WorkerCompilerTest, RequestAndModuleArriveWhole) {
  WorkerCompiler compiler(Options(), "scripted");
  const std::string bytes("// na\xefve\0\xff", 10);
  const auto outcome = compiler.Compile(Request(bytes));
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  ASSERT_TRUE(outcome->ok()) << outcome->error;
  EXPECT_EQ(outcome->module->ptx, Base64Encode(bytes));
  EXPECT_EQ(outcome->module->arch, "sm_90a");
  EXPECT_EQ(outcome->module->log, "a<1>;b;");
  EXPECT_EQ(outcome->module->cubin, std::string("\x7f"
                                                "ELF\0\xff",
                                                6));
}

TEST_F(WorkerCompilerTest, ARejectedSourceIsAnOutcome) {
  WorkerCompiler compiler(Options(), "scripted");
  const auto outcome = compiler.Compile(Request("wrong"));
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->ok());
  EXPECT_EQ(outcome->error, "mine.cu(3): error");
  EXPECT_FALSE(outcome->timed_out);
  EXPECT_FALSE(outcome->crashed);
}

TEST_F(WorkerCompilerTest, AWorkerServesManyRequests) {
  WorkerCompiler compiler(Options(), "scripted");
  const std::string first = compiler.Compile(Request("x"))->module->compiler;
  EXPECT_EQ(compiler.Compile(Request("wrong"))->error, "mine.cu(3): error");
  EXPECT_EQ(compiler.Compile(Request("y"))->module->compiler, first);
}

TEST_F(WorkerCompilerTest, WhatHangsIsStoppedAndTheNextCompiles) {
  WorkerCompiler compiler(Options(0.3), "scripted");
  const auto outcome = compiler.Compile(Request("hang"));
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_EQ(outcome->error, "did not compile within 0.3 s");
  EXPECT_TRUE(compiler.Compile(Request("x"))->ok());
}

TEST_F(WorkerCompilerTest, WhatKillsTheCompilerIsAnOutcome) {
  WorkerCompiler compiler(Options(), "scripted");
  for (const char* text : {"segfault", "abort"}) {
    const auto outcome = compiler.Compile(Request(text));
    ASSERT_TRUE(outcome) << text;
    EXPECT_TRUE(outcome->crashed) << text;
    EXPECT_FALSE(outcome->timed_out) << text;
    EXPECT_THAT(outcome->error, HasSubstr("died of signal")) << text;
  }
  EXPECT_THAT(compiler.Compile(Request("abort"))->error, HasSubstr("out of memory"));
  EXPECT_TRUE(compiler.Compile(Request("x"))->ok());
}

TEST_F(WorkerCompilerTest, NonsenseIsAnOutcomeAndTheNextCompiles) {
  WorkerCompiler compiler(Options(), "scripted");
  for (const char* text : {"babble", "half an answer"}) {
    const auto outcome = compiler.Compile(Request(text));
    ASSERT_TRUE(outcome) << outcome.error().ToString();
    EXPECT_TRUE(outcome->crashed) << text;
    EXPECT_THAT(outcome->error, HasSubstr("cannot be read")) << text;
    EXPECT_TRUE(compiler.Compile(Request("x"))->ok());
  }
}

TEST_F(WorkerCompilerTest, AMemoryBombReachesItsLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs more address space";
#endif
  CompileWorkerOptions options = Options();
  options.worker.address_space_bytes = uint64_t{1} << 30;
  WorkerCompiler compiler(options, "scripted");
  EXPECT_TRUE(compiler.Compile(Request("bomb"))->crashed);
}

TEST_F(WorkerCompilerTest, NoCompilerAtAllIsAnError) {
  WorkerCompiler compiler(Options(), "scripted");
  const auto outcome = compiler.Compile(Request("no compiler"));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, HasSubstr("NVRTC went away"));
}

TEST_F(WorkerCompilerTest, AStopEndsItAtOnce) {
  WorkerCompiler compiler(Options(600), "scripted");
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const double start = SystemClock().Now();
  const auto outcome = compiler.Compile(Request("hang"), stop.get_token());
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->timed_out) << "and is not cached";
  EXPECT_EQ(outcome->error, "compiling was stopped");
  EXPECT_LT(SystemClock().Now() - start, 60);
}

TEST_F(WorkerCompilerTest, SeveralAtATime) {
  WorkerCompiler compiler(Options(), "scripted");
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        const std::string text = "source " + std::to_string(i * 100 + k);
        const auto outcome = compiler.Compile(Request(text));
        if (outcome && outcome->ok() && outcome->module->ptx == Base64Encode(text)) ++right;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 160);
}

}  // namespace
}  // namespace atunner

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], atunner::kScriptedCompiler) == 0) {
    atunner::ScriptedCompiler compiler;
    return atunner::ServeCompiler(compiler);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
