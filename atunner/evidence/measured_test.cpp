#include "atunner/evidence/measured.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "atunner/device/cupti.h"
#include "atunner/device/metric_host.h"

namespace atunner::evidence {
namespace {

TEST(MetricExpression, AddsAndDivides) {
  const Metrics metrics = {{"a.sum", 6}, {"b.sum", 2}, {"c.sum", 0}};
  EXPECT_EQ(Evaluate("a.sum", metrics), 6);
  EXPECT_EQ(Evaluate("a.sum+b.sum", metrics), 8);
  EXPECT_EQ(Evaluate("a.sum/b.sum", metrics), 3);
  EXPECT_EQ(Evaluate("a.sum+b.sum/b.sum+b.sum", metrics), 2);
  EXPECT_EQ(Evaluate("a.sum/c.sum", metrics), std::nullopt) << "no accesses, no ratio";
  EXPECT_EQ(Evaluate("d.sum+a.sum|b.sum", metrics), 2);
  EXPECT_EQ(Evaluate("d.sum", metrics), std::nullopt);
  EXPECT_EQ(Evaluate("", metrics), std::nullopt);
}

TEST(MetricExpression, NamesTheMetricsOfTheFirstAlternative) {
  EXPECT_EQ(MetricsIn("a+b/c|d"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(MetricsIn("").empty());
}

TEST(MeasuredCounters, AreThoseWhoseMetricsAreKnown) {
  const CounterSet counters = MeasuredCounters({{"dram__bytes.sum", 4096},
                                                {"smsp__inst_executed_op_local_ld.sum", 3},
                                                {"smsp__sass_inst_executed_op_shared.sum", 7}});
  EXPECT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters.at(Counter::kDramBytes).value, 4096);
  EXPECT_EQ(counters.at(Counter::kSharedRequests).value, 7);
  for (const auto& [counter, value] : counters) EXPECT_EQ(value.origin, Origin::kMeasured);
  const CounterSet counted = {{Counter::kDramBytes, {1, Origin::kCounted}},
                              {Counter::kTime, {2, Origin::kCounted}}};
  const CounterSet merged = Merged(counters, counted);
  EXPECT_EQ(merged.at(Counter::kDramBytes).origin, Origin::kMeasured);
  EXPECT_EQ(merged.at(Counter::kTime).origin, Origin::kCounted);
}

/// A chip of each compute capability of the profile table, and the passes of its counters there.
struct Chip {
  const char* name;
  size_t first, all;
};
constexpr Chip kChips[] = {{"GV100", 2, 9}, {"TU102", 2, 7}, {"TU104", 2, 7}, {"GA100", 1, 7},
                           {"GA102", 1, 7}, {"GA104", 1, 7}, {"AD102", 1, 7}, {"AD104", 1, 7},
                           {"GH100", 1, 7}, {"GB100", 1, 7}, {"GB202", 1, 7}};

size_t Passes(const Chip& chip, ReadSet set) {
  const auto host = MetricHost::Open(chip.name);
  EXPECT_TRUE(host) << host.error().ToString();
  if (!host) return 0;
  const auto config = (*host)->Configure(MetricsOf(set));
  EXPECT_TRUE(config) << chip.name << " lacks a metric: " << config.error().ToString();
  return config ? config->passes : 0;
}

/// What CUPTI knows needs no GPU.
TEST(CounterMetrics, ExistOnEveryChip) {
  if (!SharedCupti()) GTEST_SKIP() << SharedCupti().error().ToString();
  const auto chips = ChipsOfCupti();
  ASSERT_TRUE(chips) << chips.error().ToString();
  const std::set<std::string> known(chips->begin(), chips->end());
  size_t asked = 0;
  for (const Chip& chip : kChips) {
    if (!known.contains(chip.name)) continue;  // of a later or an earlier CUPTI
    ++asked;
    EXPECT_LE(Passes(chip, ReadSet::kFirst), chip.first) << chip.name;
    EXPECT_LE(Passes(chip, ReadSet::kRest), chip.all) << chip.name;
  }
  EXPECT_GE(asked, 5U);
}

}  // namespace
}  // namespace atunner::evidence
