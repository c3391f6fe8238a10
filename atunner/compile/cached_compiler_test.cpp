// The cache over a compiler that counts its calls: what is kept, what is not, damaged entries.
#include "atunner/compile/cached_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class CountingCompiler : public Compiler {
 public:
  explicit CountingCompiler(std::atomic<int>& calls, std::string version = "counting 1.0")
      : calls_(calls), version_(std::move(version)) {}
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& = {}) override {
    ++calls_;
    CompileOutcome outcome;
    if (request.source.text == "no compiler") return Fail(ErrorCode::kUnavailable, "gone");
    if (request.source.text == "slow") {
      outcome.timed_out = true;
      outcome.error = "took too long";
      return outcome;
    }
    if (request.source.text == "latin-1") {
      outcome.error = "mine.cu(1): error: na\xefve";
      return outcome;
    }
    if (request.source.text == "wrong") {
      outcome.error = "mine.cu(1): error: wrong";
      return outcome;
    }
    outcome.module.emplace();
    outcome.module->ptx = "ptx of " + request.source.text;
    outcome.module->cubin = std::string(
                                "\x7f"
                                "ELF\0\xff",
                                6) +
                            request.source.text;
    outcome.module->arch = request.arch;
    outcome.module->compile_seconds = 0.125;
    outcome.module->kernels.push_back(
        {.entry = "k<1>", .mangled = "_Z1kILi1EEvv", .registers = 77, .max_threads = 768});
    return outcome;
  }
  std::string Version() const override { return version_; }

 private:
  std::atomic<int>& calls_;
  std::string version_;
};

CompileRequest Request(const std::string& text) {
  CompileRequest request;
  request.source.text = text;
  request.entries = {"k<1>"};
  request.arch = "sm_80";
  return request;
}

class CacheTest : public testing::Test {
 protected:
  CachedCompiler Open(std::string version = "counting 1.0") {
    return {std::make_unique<CountingCompiler>(calls_, std::move(version)), folder_.path()};
  }
  std::vector<Path> Files() const {
    std::vector<Path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }
  TemporaryDirectory folder_;
  std::atomic<int> calls_ = 0;
};

TEST_F(CacheTest, GivesBackEveryField) {
  const CompileOutcome first = Open().Compile(Request("a")).value();
  CompileOutcome second = Open().Compile(Request("a")).value();
  EXPECT_EQ(calls_, 1);
  ASSERT_TRUE(second.module);
  EXPECT_FALSE(first.module->from_cache);
  EXPECT_TRUE(second.module->from_cache);
  second.module->from_cache = false;
  EXPECT_EQ(ToJson(*second.module).dump(), ToJson(*first.module).dump());
  EXPECT_EQ(second.module->cubin.size(), 7u) << "bytes and not text";
  EXPECT_EQ(second.module->source, CacheKey(Request("a"), "counting 1.0"));
}

TEST_F(CacheTest, KeepsRejectionsButNotTimeoutsOrErrors) {
  EXPECT_EQ(Open().Compile(Request("wrong"))->error, "mine.cu(1): error: wrong");
  EXPECT_EQ(Open().Compile(Request("wrong"))->error, "mine.cu(1): error: wrong");
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(Open().Compile(Request("slow"))->timed_out);
  EXPECT_TRUE(Open().Compile(Request("slow"))->timed_out);
  EXPECT_EQ(calls_, 3) << "a busy machine is no property of the source";
  EXPECT_FALSE(Open().Compile(Request("no compiler")));
  EXPECT_FALSE(Open().Compile(Request("no compiler")));
  EXPECT_EQ(calls_, 5);
}

TEST_F(CacheTest, MessagesNeedNotBeUtf8) {
  EXPECT_THAT(Open().Compile(Request("latin-1"))->error, HasSubstr("mine.cu(1)"));
  EXPECT_THAT(Open().Compile(Request("latin-1"))->error, HasSubstr("na\xef\xbf\xbdve"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(CacheTest, EverythingThatDecidesIsInTheKey) {
  const Digest base = CacheKey(Request("a"), "1").value();
  const auto changed = [&](auto change) {
    CompileRequest request = Request("a");
    change(request);
    return CacheKey(request, "1").value();
  };
  EXPECT_EQ(changed([](CompileRequest&) {}), base);
  EXPECT_NE(CacheKey(Request("a"), "2"), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.source.text = "b"; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.arch = "sm_90a"; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.entries = {"k<2>"}; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.source.options = {"-use_fast_math"}; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.source.defines = {{"N", "4"}}; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.source.language = Language::kPtx; }), base);
  EXPECT_NE(changed([](CompileRequest& r) { r.source.name = "other.cu"; }), base)
      << "messages name the file";
}

TEST_F(CacheTest, ATitleOfComments) {
  const auto key = [](const std::string& text, Language language = Language::kCudaCpp) {
    CompileRequest request = Request(text);
    request.source.language = language;
    return CacheKey(request, "1").value();
  };
  const Digest base = key("// a kernel\n// blocks=8\nint x;\n");
  EXPECT_EQ(key("// a kernel\n// blocks=16\nint x;\n"), base) << "one binary";
  EXPECT_NE(key("// a kernel\nint x;\n"), base) << "lines are numbered otherwise";
  EXPECT_NE(key("// a kernel\n// blocks=8\nint y;\n"), base);
  EXPECT_NE(key("// a \\\nint x;\nint y;\n"), key("// b\nint x;\nint y;\n"))
      << "the comment goes on";
  EXPECT_NE(key("int x;\n// a\n"), key("int x;\n// b\n")) << "it may lie in a text";
  EXPECT_NE(key("// a"), key("// b"));
  EXPECT_NE(key("// a\n.version 8.0\n", Language::kPtx),
            key("// b\n.version 8.0\n", Language::kPtx));
}

class SlowCompiler : public CountingCompiler {
 public:
  using CountingCompiler::CountingCompiler;
  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& stop) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return CountingCompiler::Compile(request, stop);
  }
};

TEST_F(CacheTest, ThreadsDoNotCompileTheSameAtOnce) {
  CachedCompiler compiler(std::make_unique<SlowCompiler>(calls_), folder_.path());
  std::atomic<int> right = 0;
  const auto work = [&](const std::string& text) {
    right += compiler.Compile(Request(text))->ok();
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back(work, "a");
    threads.emplace_back(work, "b");
  }
  EXPECT_EQ(calls_, 2);
  EXPECT_EQ(right, 5);
}

/// A compiler that waits some seconds for a second request before it answers.
class PatientCompiler : public Compiler {
 public:
  explicit PatientCompiler(std::atomic<int>& calls) : calls_(calls) {}
  Result<CompileOutcome> Compile(const CompileRequest&, const std::stop_token&) override {
    ++calls_;
    for (int i = 0; i < 500 && calls_ < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return CompileOutcome{.module = CompiledModule{}, .error = ""};
  }
  std::string Version() const override { return "patient"; }

 private:
  std::atomic<int>& calls_;
};

TEST_F(CacheTest, WhoeverIsStoppedDoesNotWait) {
  CachedCompiler compiler(std::make_unique<PatientCompiler>(calls_), folder_.path());
  const std::jthread first([&] { (void)compiler.Compile(Request("a")); });
  while (calls_ == 0) std::this_thread::yield();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(compiler.Compile(Request("a"), stop.get_token()));
  EXPECT_EQ(calls_, 2) << "the compiler itself was asked, and may say that it was stopped";
}

TEST_F(CacheTest, AnotherCompilerVersionDoesNotSeeIt) {
  (void)Open().Compile(Request("a"));
  (void)Open("counting 1.1").Compile(Request("a"));
  EXPECT_EQ(calls_, 2);
}

class Headers : public CacheTest {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(headers_.path() / name, text));
  }
  /// Compilations so far, after one more.
  int CallsFor(const std::string& text, std::vector<std::string> options = {}) {
    CompileRequest request = Request(text);
    request.source.include_folders = {headers_.path().string()};
    request.source.options = std::move(options);
    (void)Open().Compile(request);
    return calls_;
  }
  TemporaryDirectory headers_;
};

TEST_F(Headers, AreReadThroughOthersAndWhateverTheConditions) {
  const std::string text = "#if 0\n # include \"outer.h\"\n#endif\n#include <cuda_fp16.h>\n";
  EXPECT_EQ(CallsFor(text), 1);
  EXPECT_EQ(CallsFor(text), 1) << "a header that is nowhere is the compiler's own";
  Write("outer.h", "#include \"deep/inner.h\"\n");
  EXPECT_EQ(CallsFor(text), 2) << "it appeared";
  Write("deep/inner.h", "#include \"beside.h\"\n");
  EXPECT_EQ(CallsFor(text), 3);
  Write("deep/beside.h", "// first\n");
  EXPECT_EQ(CallsFor(text), 4) << "a quoted name is looked for beside the file that says it";
  Write("deep/beside.h", "#include \"../outer.h\"  // and in a circle\n");
  EXPECT_EQ(CallsFor(text), 5);
  EXPECT_EQ(CallsFor(text), 5);
}

TEST_F(Headers, OfOptionsAndQuestionsCount) {
  const std::string asks = "#if __has_include(<asked.h>)\n#endif\n";
  EXPECT_EQ(CallsFor(asks), 1);
  Write("asked.h", "");
  EXPECT_EQ(CallsFor(asks), 2);
  Write("more/extra.h", "one");
  const std::vector<std::string> options = {"-I" + (headers_.path() / "more").string()};
  const std::string text = "#include <extra.h>\n";
  EXPECT_EQ(CallsFor(text, options), 3);
  EXPECT_EQ(CallsFor(text, options), 3);
  Write("more/extra.h", "two");
  EXPECT_EQ(CallsFor(text, options), 4);
}

TEST_F(Headers, WhatOnlyTheCompilerCanTellIsNotKept) {
  EXPECT_EQ(CallsFor("#include CONFIGURATION\n"), 1);
  EXPECT_EQ(CallsFor("#include CONFIGURATION\n"), 2);
  EXPECT_EQ(CallsFor("a", {"-include", "forced.h"}), 3);
  EXPECT_EQ(CallsFor("a", {"-include", "forced.h"}), 4);
  EXPECT_EQ(CallsFor("// include nothing; #included"), 5);
  EXPECT_EQ(CallsFor("// include nothing; #included"), 5) << "words are no directives";
}

TEST_F(CacheTest, DamageIsAMissAndIsMended) {
  (void)Open().Compile(Request("a"));
  ASSERT_EQ(Files().size(), 1u);
  const Path file = Files()[0];
  const std::string good = ReadFile(file).value();
  std::vector<std::string> damaged = {"",
                                      "{",
                                      "null",
                                      "[]",
                                      "7",
                                      "\"text\"",
                                      "{}",
                                      "{\"format\": 5}",
                                      "{\"format\": \"atunner-compile-0\"}",
                                      "{\"format\": \"atunner-compile-1\"}"};
  for (const char* rest : {"\"error\": 5", "\"error\": \"\"", "\"error\": \"\", \"module\": 5",
                           "\"module\": {}", "\"error\": [], \"module\": null"})
    damaged.push_back(std::string("{\"format\": \"atunner-compile-1\", ") + rest + "}");
  for (size_t cut = 1; cut < good.size(); cut += 53) damaged.push_back(good.substr(0, cut));
  for (const std::string& bytes : damaged) {
    ASSERT_TRUE(WriteFileAtomic(file, bytes));
    calls_ = 0;
    const auto outcome = Open().Compile(Request("a"));
    ASSERT_TRUE(outcome) << bytes;
    EXPECT_TRUE(outcome->ok()) << bytes;
    EXPECT_EQ(calls_, 1) << "was believed: " << bytes;
    EXPECT_EQ(ReadFile(file).value(), good) << "was not mended: " << bytes;
  }
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenOnlySlowsDown) {
  const Path file = folder_.path() / "a file";
  ASSERT_TRUE(WriteFileAtomic(file, "x"));
  CachedCompiler compiler(std::make_unique<CountingCompiler>(calls_), file / "below");
  EXPECT_TRUE(compiler.Compile(Request("a"))->ok());
  EXPECT_TRUE(compiler.Compile(Request("a"))->ok());
  EXPECT_EQ(calls_, 2);
}

TEST_F(CacheTest, ThreadsAndProcessesShareAFolder) {
  const auto work = [&](uint64_t seed) {
    CachedCompiler compiler = Open();
    bool right = true;
    for (uint64_t i = 0; i < 60; ++i) {
      const std::string text = "source " + std::to_string((i * 7 + seed) % 20);
      const auto outcome = compiler.Compile(Request(text));
      right = right && outcome && outcome->ok() && outcome->module->ptx == "ptx of " + text;
    }
    return right;
  };
  std::vector<pid_t> children;
  for (uint64_t p = 0; p < 3; ++p) {
    const pid_t child = fork();
    if (child == 0) _exit(work(p) ? 0 : 1);
    children.push_back(child);
  }
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { wrong += !work(t); });
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Files().size(), 20u) << "no temporary files are left";
  calls_ = 0;
  EXPECT_TRUE(work(5));
  EXPECT_EQ(calls_, 0) << "each of them whole";
}

}  // namespace
}  // namespace atunner
