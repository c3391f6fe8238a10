// The second examination: which verdicts it changes, and which it keeps.
#include "atunner/tune/virtual_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <optional>

namespace atunner {
namespace {

using testing::HasSubstr;

/// Answers by the candidate's text.
class VirtualJudge : public Judge {
 public:
  explicit VirtualJudge(ManualClock& clock) : clock_(clock) {}
  Status Begin(const JudgeTask& task) override {
    begun.push_back(task.seed);
    if (gate) gate->get_future().wait();
    if (!works) return Fail(ErrorCode::kUnavailable, "no compiler");
    return {};
  }
  Result<JudgeAnswer> Examine(const CandidateKernel& candidate, const JudgeOrder& order) override {
    examined.push_back(candidate.module.ptx);
    clock_.Advance(seconds);
    EXPECT_FALSE(order.time) << "what it would predict is of no use beside measurements";
    EXPECT_LT(order.time_limit_seconds.value(), 10)
        << "who takes longer is ended, and has not been examined";
    if (candidate.module.ptx == "broken") return Fail(ErrorCode::kInternal, "the pipe broke");
    JudgeAnswer answer;
    answer.verdict.kind = kinds.contains(candidate.module.ptx) ? kinds[candidate.module.ptx]
                                                               : VerdictKind::kCorrect;
    if (!answer.verdict.correct()) {
      const auto reason = reasons.find(candidate.module.ptx);
      answer.verdict.reason = reason == reasons.end() ? "was seen" : reason->second;
    }
    answer.verdict.checks.push_back(
        {.check = "run", .family = "normal", .dims = {{"n", 64}}, .passed = true});
    return answer;
  }
  Result<Comparison> Compare(const CandidateKernel&, const CandidateKernel&, int,
                             uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "");
  }
  Result<Baseline> CompareVendor(const std::string&, const CandidateKernel&, int,
                                 uint64_t) override {
    return Fail(ErrorCode::kUnsupported, "");
  }

  bool works = true;
  std::map<std::string, VerdictKind> kinds;
  std::map<std::string, std::string> reasons;
  std::vector<uint64_t> begun;
  std::vector<std::string> examined;
  double seconds = 1;
  std::optional<std::promise<void>> gate;  ///< the task is begun once it opens

 private:
  ManualClock& clock_;
};

CandidateKernel Candidate(const std::string& text) {
  CandidateKernel candidate;
  candidate.module.ptx = text;
  candidate.check_dims = {{{"n", 64}}};
  return candidate;
}

class VirtualCheckTest : public testing::Test {
 protected:
  /// The verdict of a kernel that the GPU found correct, and why it is undecided.
  std::pair<Verdict, std::string> Examine(const std::string& text,
                                          const std::optional<CandidateKernel>& plain = {}) {
    VirtualCheck check(&judge_, clock_);
    check.Begin({}, 7, plain);
    Verdict verdict;
    const std::string undecided = check.Examine(Candidate(text), verdict);
    return {verdict, undecided};
  }
  ManualClock clock_;
  VirtualJudge judge_{clock_};
};

TEST_F(VirtualCheckTest, HazardsAreRefusedAndChecksAreEvidence) {
  judge_.kinds = {{"racy", VerdictKind::kRace}, {"outside", VerdictKind::kOutOfBounds}};
  EXPECT_EQ(Examine("racy").first.kind, VerdictKind::kRace);
  EXPECT_EQ(Examine("racy").first.reason, "on the virtual GPU: was seen");
  EXPECT_EQ(Examine("outside").first.kind, VerdictKind::kOutOfBounds);
  const auto [verdict, undecided] = Examine("sound");
  EXPECT_TRUE(verdict.correct());
  EXPECT_EQ(undecided, "");
  ASSERT_EQ(verdict.checks.size(), 1u);
  EXPECT_EQ(verdict.checks[0].check, "virtual GPU, run");
  EXPECT_EQ(judge_.begun.back(), 7u);
}

TEST_F(VirtualCheckTest, WhatItCannotExecuteStands) {
  judge_.kinds = {{"new", VerdictKind::kUnsupported},
                  {"long", VerdictKind::kTimeout},
                  {"other", VerdictKind::kWrongResult}};
  for (const char* text : {"new", "long", "other"}) {
    const auto [verdict, undecided] = Examine(text);
    EXPECT_TRUE(verdict.correct()) << text;
    EXPECT_TRUE(verdict.checks.empty()) << "they were not passed";
    EXPECT_THAT(undecided, HasSubstr("was seen"));
  }
  EXPECT_THAT(Examine("broken").second, HasSubstr("the pipe broke"));
  judge_.works = false;
  EXPECT_THAT(Examine("sound").second, HasSubstr("no compiler"));
}

TEST_F(VirtualCheckTest, WrongResultsOfUsersKernelsAreRefused) {
  judge_.kinds = {{"other", VerdictKind::kWrongResult},
                  {"waits", VerdictKind::kDeadlock},
                  {"large", VerdictKind::kResourceLimit}};
  KernelSpec spec;
  spec.oracle.kind = Oracle::Kind::kKernel;
  const auto examined = [&](const char* text, const std::optional<CandidateKernel>& plain = {}) {
    VirtualCheck check(&judge_, clock_);
    check.Begin(spec, 7, plain);
    Verdict verdict;
    check.Examine(Candidate(text), verdict);
    return verdict.kind;
  };
  EXPECT_EQ(examined("other"), VerdictKind::kWrongResult);
  EXPECT_EQ(examined("waits"), VerdictKind::kDeadlock);
  EXPECT_EQ(examined("large"), VerdictKind::kCorrect);
  judge_.kinds["plain"] = VerdictKind::kRace;
  judge_.reasons["plain"] = "race: uninitialised global memory";
  EXPECT_EQ(examined("other", Candidate("plain")), VerdictKind::kCorrect)
      << "the reference is no better there";
}

TEST_F(VirtualCheckTest, HazardsOfThePlainKernelAreTheTasks) {
  judge_.kinds = {{"plain", VerdictKind::kRace}, {"racy", VerdictKind::kRace}};
  const auto [verdict, undecided] = Examine("racy", Candidate("plain"));
  EXPECT_TRUE(verdict.correct());
  EXPECT_THAT(undecided, HasSubstr("the kernel to beat does not pass there either"));
  EXPECT_THAT(judge_.examined, testing::ElementsAre("plain"));
}

// A program may clear a flag before the launch. A kernel that exchanges data by it must do so in
// order all the same.
TEST_F(VirtualCheckTest, UnwrittenMemoryOfThePlainKernelExcusesNoRace) {
  const std::string unwritten =
      "run (normal inputs): k.cu:13: uninitialised global memory: block 1";
  judge_.kinds = {
      {"plain", VerdictKind::kRace}, {"racy", VerdictKind::kRace}, {"alike", VerdictKind::kRace}};
  judge_.reasons = {{"plain", unwritten}, {"alike", unwritten}, {"racy", "k.cu:17: race: block 1"}};
  EXPECT_EQ(Examine("racy", Candidate("plain")).first.kind, VerdictKind::kRace);
  const auto [verdict, undecided] = Examine("alike", Candidate("plain"));
  EXPECT_TRUE(verdict.correct());
  EXPECT_THAT(undecided, HasSubstr("reads unwritten memory there, too"));
}

TEST_F(VirtualCheckTest, PatienceEnds) {
  judge_.seconds = 11;
  VirtualCheck check(&judge_, clock_);
  check.Begin({}, 7, std::nullopt);
  Verdict verdict;
  EXPECT_EQ(check.Examine(Candidate("slow"), verdict), "");
  EXPECT_THAT(check.Examine(Candidate("next"), verdict), HasSubstr("took all the time"));
  EXPECT_THAT(judge_.examined, testing::ElementsAre("slow"));
}

TEST_F(VirtualCheckTest, ThePlainKernelIsExaminedMeanwhile) {
  judge_.gate.emplace();
  VirtualCheck check(&judge_, clock_);
  check.Begin({}, 7, Candidate("plain"));  // returns although the judge is busy
  EXPECT_TRUE(judge_.examined.empty());
  judge_.gate->set_value();
  Verdict verdict;
  EXPECT_EQ(check.Examine(Candidate("sound"), verdict), "");
  EXPECT_THAT(judge_.examined, testing::ElementsAre("plain", "sound"));
}

TEST_F(VirtualCheckTest, OnlySmallSizesAreExecuted) {
  VirtualCheck check(&judge_, clock_);
  KernelSpec spec;
  spec.dims["n"] = int64_t{1} << 24;
  ArgSpec x;
  x.name = "x";
  x.shape = {Expr::MustParse("n")};
  spec.args = {x};
  check.Begin(spec, 1, std::nullopt);
  CandidateKernel large = Candidate("large");
  large.check_dims.clear();
  Verdict verdict;
  EXPECT_THAT(check.Examine(large, verdict), HasSubstr("no smaller size"));
  EXPECT_TRUE(judge_.examined.empty());
  spec.dims["n"] = 1000;
  VirtualCheck small(&judge_, clock_);
  small.Begin(spec, 1, std::nullopt);
  EXPECT_EQ(small.Examine(large, verdict), "");
  EXPECT_EQ(judge_.examined.size(), 1u) << "at its own size";
  VirtualCheck none(nullptr, clock_);
  none.Begin({}, 1, std::nullopt);
  EXPECT_EQ(none.Examine(Candidate("any"), verdict), "");
}

}  // namespace
}  // namespace atunner
