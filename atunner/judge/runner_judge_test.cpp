// A runner that dies, hangs or babbles: the candidate's verdict, never the run's end. The runner is
// this same program with a judge that does what the candidate's PTX text says.
#include "atunner/judge/runner_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "atunner/model/json/json.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kScriptedRunner = "__scripted_runner";

JudgeAnswer FullAnswer() {
  JudgeAnswer answer;
  answer.verdict.kind = VerdictKind::kCorrect;
  answer.verdict.coverage = {0.25, 0.125};
  CheckRecord check{.check = "oracle", .family = "needle", .dims = {{"n", 7}}, .passed = true};
  check.error = 1.0 / 3.0;
  check.bound = 1e300;
  check.honest = 5e-324;
  check.detail = "\"quoted\" ünd \\ back";
  answer.verdict.checks = {check};
  answer.measurement.emplace();
  answer.measurement->median_ns = 0.1;
  answer.measurement->samples_ns = {0.1, 1e9};
  answer.measurement->seed = std::numeric_limits<uint64_t>::max();
  answer.measurement->throttle = "none";
  answer.estimate.emplace();
  answer.estimate->parts = {{"dram", 12.5, true}};
  answer.estimate->blocks_total = uint64_t{1} << 40;
  answer.note = "a note";
  return answer;
}

/// The judge in the runner.
class ScriptedJudge : public Judge {
 public:
  Status Begin(const JudgeTask& task) override {
    if (task.spec.name == "refuse") return Fail(ErrorCode::kUnavailable, "no memory for this task");
    if (task.spec.name == "die") {
      std::fprintf(stderr, "driver not found\n");
      _exit(3);
    }
    task_ = task;
    return {};
  }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    const std::string& script = candidate.module.ptx;
    if (script == "segfault") {
      signal(SIGSEGV, SIG_DFL);  // sanitizers make an exit of it
      raise(SIGSEGV);
    }
    if (script == "killed") raise(SIGKILL);
    if (script == "exit") _exit(0);
    if (script == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    if (script == "throw") throw std::runtime_error("out of everything");
    if (script == "device lost") return Fail(ErrorCode::kInternal, "context is gone");
    if (script == "user error") return Invalid("the task names no reference kernel");
    if (script == "full") return FullAnswer();
    JudgeAnswer answer;
    if (script == "crash verdict") answer.verdict.kind = VerdictKind::kCrash;
    // The note repeats the request, so that tests can compare it.
    answer.note = task_.spec.name + " " + std::to_string(task_.seed) + " " +
                  std::to_string(order.seed) + (order.time ? " time" : "") +
                  (order.thorough ? " thorough" : "") +
                  (order.incumbent_ns ? " against " + std::to_string(*order.incumbent_ns) : "") +
                  (order.time_limit_seconds ? " for " + std::to_string(*order.time_limit_seconds)
                                            : "") +
                  " " + std::to_string(candidate.module.cubin.size()) + " " +
                  std::to_string(candidate.check_dims.size()) + " pid " + std::to_string(getpid());
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel& baseline, const CandidateKernel& candidate,
                             int pairs, uint64_t) override {
    if (candidate.module.ptx == "killed") raise(SIGKILL);
    return Comparison{static_cast<double>(baseline.module.ptx.size()), 1, 2, pairs};
  }
  Result<Baseline> CompareVendor(const std::string& name, const CandidateKernel&, int,
                                 uint64_t) override {
    Baseline baseline;
    baseline.name = name;
    baseline.note = "has no library";
    return baseline;
  }
  Result<std::vector<LaunchMetrics>> Count(const CandidateKernel& candidate,
                                           std::span<const std::string> metrics,
                                           uint64_t seed) override {
    const std::string& script = candidate.module.ptx;
    if (script == "killed") raise(SIGKILL);
    if (script == "denied") return Fail(ErrorCode::kUnavailable, "no permission", "", "ask");
    std::vector<LaunchMetrics> launches(2);
    for (const std::string& metric : metrics) launches[1][metric] = static_cast<double>(seed) / 3;
    return launches;
  }

 private:
  JudgeTask task_;
};

/// A runner that answers with a fixed text whatever it is asked, but the first message (begin)
/// properly.
int Babble(const char* text) {
  WorkerChannel channel;
  const char* reply = "{}";
  while (channel.Receive()) {
    if (!channel.Send(reply)) return 0;
    reply = text;
  }
  return 0;
}

class RunnerJudgeTest : public testing::Test {
 protected:
  static RunnerOptions Options(std::vector<std::string> words = {}) {
    RunnerOptions options;
    options.worker.arguments = {kScriptedRunner};
    options.worker.arguments.insert(options.worker.arguments.end(), words.begin(), words.end());
    options.begin_timeout_seconds = 30;
    options.examine_timeout_seconds = 30;
    return options;
  }
  static JudgeTask Task(const std::string& name = "task") {
    JudgeTask task;
    task.spec.name = name;
    task.seed = 41;
    return task;
  }
  static CandidateKernel Script(const std::string& text) {
    CandidateKernel candidate;
    candidate.module.ptx = text;
    return candidate;
  }
  static JudgeOrder Order() {
    return {.time = true, .thorough = false, .incumbent_ns = {}, .seed = 1};
  }
};

TEST_F(RunnerJudgeTest, OrderAndCandidateArriveWhole) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  CandidateKernel candidate = Script("echo");
  for (int i = 0; i < 256; ++i) candidate.module.cubin += static_cast<char>(i);
  candidate.module.log = "a Latin-1 comment: na\xefve";
  candidate.check_dims = {{{"n", 1}}, {{"n", 2}}};
  const auto answer = judge.Examine(candidate, {.time = true,
                                                .thorough = true,
                                                .incumbent_ns = 2.5,
                                                .seed = std::numeric_limits<uint64_t>::max(),
                                                .time_limit_seconds = 1.5});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_THAT(
      answer->note,
      HasSubstr(
          "task 41 18446744073709551615 time thorough against 2.500000 for 1.500000 256 2 pid"));
}

TEST_F(RunnerJudgeTest, TheAnswerArrivesWhole) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  const auto answer = judge.Examine(Script("full"), Order());
  ASSERT_TRUE(answer) << answer.error().ToString();
  const JudgeAnswer want = FullAnswer();
  EXPECT_EQ(ToJson(answer->verdict).dump(), ToJson(want.verdict).dump());
  EXPECT_EQ(ToJson(*answer->measurement).dump(), ToJson(*want.measurement).dump());
  EXPECT_EQ(ToJson(*answer->estimate).dump(), ToJson(*want.estimate).dump());
  EXPECT_EQ(answer->verdict.checks[0].error, 1.0 / 3.0) << "to the last bit";
  EXPECT_EQ(answer->note, want.note);
}

TEST_F(RunnerJudgeTest, ADeathIsTheCandidatesVerdictAndTheNextOneIsJudged) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  int restarts = 0;
  for (const char* script : {"segfault", "killed", "exit", "throw"}) {
    const auto answer = judge.Examine(Script(script), Order());
    ASSERT_TRUE(answer) << script << ": " << answer.error().ToString();
    EXPECT_EQ(answer->verdict.kind, VerdictKind::kCrash) << script;
    EXPECT_FALSE(answer->verdict.reason.empty());
    const auto next = judge.Examine(Script("echo"), Order());
    ASSERT_TRUE(next) << next.error().ToString();
    EXPECT_EQ(next->verdict.kind, VerdictKind::kCorrect);
    EXPECT_THAT(next->note, HasSubstr("task 41")) << "the new runner was told the task";
    EXPECT_EQ(judge.restarts(), ++restarts);
  }
}

TEST_F(RunnerJudgeTest, TheSignalIsNamed) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  EXPECT_THAT(judge.Examine(Script("killed"), Order())->verdict.reason, HasSubstr("signal 9"));
}

TEST_F(RunnerJudgeTest, AHangIsATimeout) {
  RunnerOptions options = Options();
  options.examine_timeout_seconds = 0.3;
  RunnerJudge judge(options);
  ASSERT_TRUE(judge.Begin(Task()));
  const auto answer = judge.Examine(Script("hang"), Order());
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->verdict.kind, VerdictKind::kTimeout);
  EXPECT_EQ(judge.restarts(), 0) << "only when it is needed again";
  EXPECT_TRUE(judge.Begin(Task()));
}

TEST_F(RunnerJudgeTest, ALostDeviceOrAPoisonedContextMeansANewProcess) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  const auto pid = [&] {
    const std::string note = judge.Examine(Script("echo"), Order())->note;
    return note.substr(note.find("pid"));
  };
  const std::string first = pid();
  EXPECT_EQ(pid(), first) << "a healthy runner stays";
  const auto lost = judge.Examine(Script("device lost"), Order());
  ASSERT_TRUE(lost) << lost.error().ToString();
  EXPECT_EQ(lost->verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(lost->verdict.reason, HasSubstr("context is gone"));
  const std::string second = pid();
  EXPECT_NE(second, first);
  EXPECT_EQ(judge.Examine(Script("crash verdict"), Order())->verdict.kind, VerdictKind::kCrash);
  EXPECT_NE(pid(), second) << "after a fault the context cannot be trusted";
}

TEST_F(RunnerJudgeTest, TheUsersErrorStaysAnError) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  const auto answer = judge.Examine(Script("user error"), Order());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(answer.error().what, HasSubstr("reference kernel"));
}

TEST_F(RunnerJudgeTest, TasksBeginInOneProcessWhereThatIsAskedFor) {
  for (const bool one : {false, true}) {
    RunnerOptions options = Options();
    options.one_for_all_tasks = one;
    RunnerJudge judge(options);
    const auto process_of = [&](const std::string& task) {
      EXPECT_TRUE(judge.Begin(Task(task)));
      const std::string note = judge.Examine(Script("pid"), Order()).value().note;
      EXPECT_THAT(note, HasSubstr(task + " 41")) << "its last task is over";
      return note.substr(note.find("pid"));
    };
    const std::string first = process_of("first");
    const std::string second = process_of("second");
    EXPECT_EQ(first == second, one);
    EXPECT_FALSE(judge.Begin(Task("die")));
    EXPECT_NE(process_of("third"), second) << "what has died is started again";
  }
}

TEST_F(RunnerJudgeTest, ABeginThatFailsSaysWhy) {
  RunnerJudge refused(Options());
  const Status status = refused.Begin(Task("refuse"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().what, HasSubstr("no memory"));
  RunnerJudge dead(Options());
  const Status died = dead.Begin(Task("die"));
  ASSERT_FALSE(died);
  EXPECT_THAT(died.error().what, HasSubstr("driver not found")) << "its last words";
  RunnerOptions nothing = Options();
  nothing.worker.executable = "/nonexistent/atunner";
  EXPECT_FALSE(RunnerJudge(nothing).Begin(Task()));
}

TEST_F(RunnerJudgeTest, GarbageFromTheRunnerIsACrash) {
  for (const char* text :
       {"", "no JSON", "[]", "3", "\"text\"", "null", "{}", "{\"verdict\": {}}", "{\"verdict\": 5}",
        "{\"verdict\": {\"kind\": \"splendid\"}}", "{\"verdict\": {\"checks\": 7}}",
        "{\"verdict\": {}, \"note\": 5}", "{\"verdict\": {}, \"measurement\": [1]}",
        "{\"error\": 5}", "{\"error\": {}}",
        "{\"error\": {\"code\": 99, \"what\": \"\", \"where\": \"\", \"hint\": \"\"}}",
        "{\"error\": {\"code\": \"x\", \"what\": 1, \"where\": 2, \"hint\": 3}}"}) {
    RunnerJudge judge(Options({"babble", text}));
    ASSERT_TRUE(judge.Begin(Task())) << text;
    const auto answer = judge.Examine(Script("echo"), Order());
    ASSERT_TRUE(answer) << text << ": " << answer.error().ToString();
    EXPECT_EQ(answer->verdict.kind, VerdictKind::kCrash) << text;
    EXPECT_FALSE(judge.Compare(Script("a"), Script("b"), 3, 1)) << text;
    EXPECT_FALSE(judge.CompareVendor("cuBLAS", Script("b"), 3, 1)) << text;
  }
}

TEST_F(RunnerJudgeTest, ComparisonsTravelAndADeathInOneIsAnError) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  const auto comparison = judge.Compare(Script("four"), Script("candidate"), 11, 1);
  ASSERT_TRUE(comparison) << comparison.error().ToString();
  EXPECT_EQ(comparison->ratio, 4);
  EXPECT_EQ(comparison->pairs, 11);
  EXPECT_EQ(judge.CompareVendor("cuDNN", Script(""), 1, 1)->note, "has no library");
  EXPECT_FALSE(judge.Compare(Script("a"), Script("killed"), 1, 1));
  EXPECT_TRUE(judge.Examine(Script("echo"), Order())) << "and the session goes on";
}

TEST_F(RunnerJudgeTest, CountersTravelLaunchByLaunch) {
  RunnerJudge judge(Options());
  ASSERT_TRUE(judge.Begin(Task()));
  const std::vector<std::string> metrics = {"dram__bytes.sum", "smsp__inst_executed.sum"};
  const auto launches = judge.Count(Script("count"), metrics, 7);
  ASSERT_TRUE(launches) << launches.error().ToString();
  ASSERT_EQ(launches->size(), 2U);
  EXPECT_TRUE(launches->front().empty());
  EXPECT_EQ(launches->back().at("dram__bytes.sum"), 7.0 / 3);
  EXPECT_EQ(launches->back().size(), 2U);
  EXPECT_EQ(judge.Count(Script("denied"), metrics, 7).error().hint, "ask");
  const auto killed = judge.Count(Script("killed"), metrics, 7);
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(judge.Count(Script("count"), metrics, 7)) << "and the session goes on";
}

TEST(ServeJudge, AnswersGarbageWithAnErrorAndGoesOn) {
  WorkerOptions options;
  options.arguments = {kScriptedRunner};
  WorkerProcess worker = WorkerProcess::Start(options).value();
  for (const char* request :
       {"", "nonsense", "[]", "7", "{}", "{\"op\": 3}", "{\"op\": \"examine\"}",
        "{\"op\": \"dance\", \"candidate\": {}}",
        "{\"op\": \"examine\", \"candidate\": {\"module\": {}, \"plan\": {}, \"check_dims\": {}}}",
        "{\"op\": \"begin\", \"spec\": []}"}) {
    const auto reply = worker.Call(request, 10);
    ASSERT_TRUE(reply) << request << ": " << reply.error().ToString();
    const auto json = ParseJson(*reply);
    ASSERT_TRUE(json) << *reply;
    EXPECT_TRUE(json->contains("error")) << request << " was answered " << *reply;
  }
  const Json module{{"module", ToJson(CompiledModule{})},
                    {"plan", ToJson(LaunchPlan{})},
                    {"check_dims", Json::array()}};
  const std::string whole = Json{{"op", "examine"}, {"candidate", module}}.dump();
  const std::string cut_off("\0\x09\0\0\0\0\0\0\0four", 13);
  for (const std::string& cubins : {std::string(), std::string(1, '\0'), cut_off})
    EXPECT_THAT(worker.Call(whole + cubins, 10).value(), HasSubstr("cubin"));
  const std::string deep(100000, '[');
  EXPECT_THAT(worker.Call(deep, 10).value(), HasSubstr("error"));
  const Json begin{{"op", "begin"},
                   {"spec", ToJson(KernelSpec{})},
                   {"seed", 1},
                   {"launch_timeout", 1.0},
                   {"reproducible", false}};
  EXPECT_EQ(worker.Call(begin.dump(), 10).value(), "{}");
}

}  // namespace
}  // namespace atunner

int main(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], atunner::kScriptedRunner) == 0) {
    if (argc >= 4) return atunner::Babble(argv[3]);
    atunner::ScriptedJudge judge;
    return atunner::ServeJudge(judge);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
