#include "atunner/evidence/counters.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

namespace atunner::evidence {
namespace {

TEST(Counters, HaveDistinctNamesUnitsAndMeanings) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    const CounterInfo& info = InfoOf(static_cast<Counter>(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.unit.empty()) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
    EXPECT_TRUE(info.counted || !info.metric.empty()) << info.name << " has no source";
    EXPECT_EQ(CounterOfName(info.name), static_cast<Counter>(i));
  }
  EXPECT_EQ(CounterOfName("cycles"), std::nullopt);
}

}  // namespace
}  // namespace atunner::evidence
