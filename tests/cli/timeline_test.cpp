// Timelines and memory plans from the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "atunner/base/files.h"
#include "atunner/model/json/json.h"
#include "tests/cli/process.h"

namespace atunner {
namespace {

using testing::HasSubstr;

class TimelineVerb : public testing::Test {
 protected:
  Outcome Run(const std::string& shell) {
    return RunShell(dir_.path().string(), "D=" ATUNNER_SOURCE_DIR "/atunner; " + shell);
  }
  TemporaryDirectory dir_;
};

TEST_F(TimelineVerb, PrintsTextJsonAndAPage) {
  const Outcome text = Run("$A timeline $D/trace/testdata/step.json --html page.html");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* part :
       {"GPU 0: busy 51.2 %", "idle: data loading", "critical path", "advice", "page: page.html"})
    EXPECT_THAT(text.out, HasSubstr(part));
  const Outcome json = Run("$A timeline $D/trace/testdata/step.sqlite --json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto parsed = ParseJson(json.out);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)["traces"][0]["devices"][0]["busy"], 900750);
}

TEST_F(TimelineVerb, ComparesWithAnExitStatus) {
  const std::string slower =
      "sed 's/\"dur\": 560/\"dur\": 600/' $D/trace/testdata/step.json > slower.json; ";
  const Outcome equal = Run(
      "$A timeline $D/trace/testdata/step.json --compare $D/trace/testdata/step.json");
  EXPECT_EQ(equal.exit_code, 0) << equal.err;
  EXPECT_THAT(equal.out, HasSubstr("compared with before: equal"));
  const Outcome worse = Run(slower +
                            "$A timeline slower.json --compare $D/trace/testdata/step.json");
  EXPECT_EQ(worse.exit_code, 1) << worse.err;
  EXPECT_THAT(worse.out, HasSubstr("compared with before: slower"));
}

TEST_F(TimelineVerb, SaysWhatIsWrong) {
  const Outcome none = Run("$A timeline none.json");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("none.json"));
  const Outcome text = Run("echo hello > hello.json; $A timeline hello.json --html page.html; ls");
  EXPECT_THAT(text.err, HasSubstr("no JSON from byte 0"));
  EXPECT_THAT(text.out, testing::Not(HasSubstr("page.html")));
}

TEST_F(TimelineVerb, PlansMemory) {
  const std::string csv = "printf 'id,lower,upper,size\\na,0,2,4\\nb,1,3,2\\nc,2,3,4\\n' > b.csv; ";
  const Outcome plan = Run(csv + "$A memory plan b.csv --capacity 6B --out placement.csv");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("(optimal)"));
  EXPECT_THAT(plan.out, HasSubstr("6 bytes: fits"));
  EXPECT_THAT(ReadFile(dir_.path() / "placement.csv").value_or(""), HasSubstr("id,lower,upper"));
  EXPECT_EQ(Run(csv + "$A memory plan b.csv --capacity 5B --time 100ms").exit_code, 1);
  const Outcome wrong = Run(csv + "$A memory plan b.csv --capacity 5parsecs");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--capacity"));
}

/// A torch that keeps what it is told.
constexpr char kTorch[] = R"(
import types
told = []
class Allocator:
    def __init__(self, *names): told.append(names[1:])
    def allocator(self): return self
memory = types.SimpleNamespace(CUDAPluggableAllocator=Allocator,
                               change_current_allocator=lambda allocator: told.append("changed"))
cuda = types.SimpleNamespace(memory=memory, is_initialized=lambda: False, device_count=lambda: 1,
                             current_device=lambda: 0)
)";

TEST_F(TimelineVerb, MemoryServeHandsTheAllocatorToTheProgram) {
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "torch.py", kTorch));
  const Outcome run = Run(
      "PYTHONPATH=. $A memory serve -- python3 -c 'import sys, torch; print(torch.told); "
      "sys.exit(3)'");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "[('atunner_alloc', 'atunner_free'), 'changed']\n") << run.err;
  const Outcome other = Run("$A memory serve -- python3 -c 'print(1)'");
  EXPECT_EQ(other.out, "1\n") << other.err;
  EXPECT_EQ(Run("$A memory serve --out served && ls served").exit_code, 0);
  const Outcome nothing = Run("$A memory serve");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("no program is given"));
}

}  // namespace
}  // namespace atunner
