// The classifier on measured counters, which know thresholds only.
#include "atunner/evidence/classify.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace atunner::evidence {
namespace {

CounterSet Measured(const std::vector<std::pair<Counter, double>>& values) {
  CounterSet counters;
  for (const auto& [counter, value] : values) counters[counter] = {value, Origin::kMeasured};
  return counters;
}

struct Case {
  std::string label;
  std::vector<std::pair<Counter, double>> values;
};

TEST(Classify, NamesWhatMeasuredCountersShow) {
  using enum Counter;
  const std::vector<Case> cases = {
      {"uncoalesced", {{kLoadSectors, 32}, {kLoadBytes, 4}}},
      {"uncoalesced", {{kStoreSectors, 16}, {kStoreBytes, 8}}},
      {"bank-conflicts", {{kSharedRequests, 100}, {kBankConflicts, 300}}},
      {"float64", {{kFp64Share, 40}}},
      {"spills", {{kLocalRequests, 12}}},
      {"divergence", {{kThreadsPerInstruction, 9}, {kBlock, 256}}},
      {"small-grid", {{kWaves, 0.1}, {kGrid, 4}}},
      {"low-occupancy", {{kOccupancy, 25}}},
      {"atomics", {{kAtomics, 1000}, {kLoadRequests, 10}}},
      {"rereads", {{kL1Hits, 90}, {kL1Share, 80}}},
      {"memory-bound", {{kDramShare, 85}, {kIssueShare, 20}}},
      {"compute-bound", {{kDramShare, 10}, {kIssueShare, 90}}},
      {"latency-bound", {{kDramShare, 10}, {kIssueShare, 9}}},
  };
  for (const Case& one : cases) {
    const auto findings = Classify({Measured(one.values), "", nullptr});
    EXPECT_EQ(Name(findings.front().bottleneck), one.label);
    EXPECT_FALSE(findings.front().gain) << one.label << ": nobody predicted it";
    EXPECT_FALSE(findings.front().evidence.empty()) << one.label;
  }
}

TEST(Classify, NeedsMoreThanOneSignOfUncoalescedAccess) {
  using enum Counter;
  // 16 bytes a thread take 16 sectors and use all of them
  const auto findings = Classify(
      {Measured({{kLoadSectors, 16}, {kLoadBytes, 32}, {kDramShare, 90}}), "", nullptr});
  EXPECT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().bottleneck, Bottleneck::kMemory);
}

TEST(Classify, NamesTheLimitOfThePrediction) {
  const std::pair<const char*, Bottleneck> limits[] = {{"DRAM", Bottleneck::kMemory},
                                                       {"L2", Bottleneck::kMemory},
                                                       {"latency", Bottleneck::kLatency},
                                                       {"launch", Bottleneck::kLaunch},
                                                       {"arithmetic", Bottleneck::kCompute}};
  for (const auto& [limiter, bottleneck] : limits)
    EXPECT_EQ(Classify({{}, limiter, nullptr}).front().bottleneck, bottleneck) << limiter;
}

TEST(Thresholds, HaveMeaningsAndSources) {
  EXPECT_GE(Thresholds().size(), 10U);
  for (const Threshold& threshold : Thresholds()) {
    EXPECT_FALSE(threshold.meaning.empty()) << threshold.name;
    EXPECT_FALSE(threshold.source.empty()) << threshold.name;
  }
}

}  // namespace
}  // namespace atunner::evidence
