#include "atunner/tune/leaders.h"

#include <gtest/gtest.h>

#include "atunner/tune/objectives.h"

namespace atunner {
namespace {

Trial Timed(int64_t number, double ns, double relative_error) {
  Trial trial;
  trial.number = number;
  trial.measurement.emplace();
  trial.measurement->median_ns = ns;
  trial.measurement->low_ns = ns * (1 - 1.96 * relative_error);
  trial.measurement->high_ns = ns * (1 + 1.96 * relative_error);
  trial.measurement->samples_ns.assign(8, ns);
  return trial;
}

class LeadersTest : public testing::Test {
 protected:
  void Add(double ns, double relative_error) {
    trials_.push_back(Timed(static_cast<int64_t>(trials_.size()) + 1, ns, relative_error));
    leaders_.Keep(trials_.back(), std::make_shared<CandidateKernel>());
  }
  std::vector<Trial> trials_;
  Leaders leaders_;
};

TEST_F(LeadersTest, TheLeastKnownOfThoseThatMayBeTheBestIsNext) {
  EXPECT_FALSE(leaders_.WorthMeasuring(trials_));
  Add(100, 0.01);
  Add(101, 0.02);
  Add(150, 0.05);  // known worse, but out of reach
  EXPECT_EQ(leaders_.WorthMeasuring(trials_), 2);
  trials_[1] = Timed(2, 101, 0.001);
  EXPECT_EQ(leaders_.WorthMeasuring(trials_), 1);
  trials_[0] = Timed(1, 100, 0.001);
  EXPECT_FALSE(leaders_.WorthMeasuring(trials_)) << "all that matters is known well";
}

TEST_F(LeadersTest, WhoFailedTheSecondTimeIsNoLeader) {
  Add(100, 0.01);
  Add(100.5, 0.01);
  trials_[0].verdict.kind = VerdictKind::kNondeterministic;
  trials_[0].measurement.reset();
  EXPECT_EQ(leaders_.WorthMeasuring(trials_), 2);
}

TEST_F(LeadersTest, TheFastestAreKept) {
  for (int i = 0; i < 40; ++i) Add(100 + i % 20, 0.3);
  for (int64_t number : {1, 2, 3, 21, 22, 23})
    EXPECT_NE(leaders_.KernelOf(number), nullptr) << number;
  EXPECT_ANY_THROW((void)leaders_.KernelOf(20)) << "the slowest is gone";
}

TEST(Joined, HasTheSamplesOfBoth) {
  Measurement first;
  first.samples_ns = {10, 12, 11};
  first.median_ns = 11;
  first.minimum_ns = 10;
  first.energy_joules = 2;
  Measurement second;
  second.samples_ns = {20, 21};
  second.minimum_ns = 20;
  second.sm_mhz = 1500;
  const Measurement both = Joined(first, second);
  EXPECT_EQ(both.samples_ns, (std::vector<double>{10, 12, 11, 20, 21}));
  EXPECT_EQ(both.median_ns, 12);
  EXPECT_EQ(both.minimum_ns, 10);
  EXPECT_EQ(both.high_ns, 21);
  EXPECT_EQ(both.sm_mhz, 1500);
  EXPECT_EQ(both.energy_joules, 2);
}

}  // namespace
}  // namespace atunner
