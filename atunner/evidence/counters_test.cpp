#include "atunner/evidence/counters.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "atunner/base/files.h"

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
    if (!info.metric.empty()) {
      EXPECT_EQ(CounterOfMetric(info.metric), static_cast<Counter>(i));
    }
  }
  EXPECT_EQ(CounterOfMetric(""), std::nullopt);
  EXPECT_EQ(CounterOfName("cycles"), std::nullopt);
}

TEST(Counters, DocumentListsEachOfThem) {
  const auto text = ReadFile(Path(ATUNNER_SOURCE_DIR) / "docs/counters.md", 1 << 20);
  ASSERT_TRUE(text);
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    const CounterInfo& info = InfoOf(static_cast<Counter>(i));
    const std::string begin = "| `" + std::string(info.name) + "` | " + std::string(info.unit);
    EXPECT_NE(text->find(begin), std::string::npos) << begin;
    if (!info.metric.empty()) {
      EXPECT_NE(text->find("`" + std::string(info.metric) + "`"), std::string::npos) << info.metric;
    }
  }
}

}  // namespace
}  // namespace atunner::evidence
