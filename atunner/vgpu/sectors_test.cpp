#include "atunner/vgpu/sectors.h"

#include <gtest/gtest.h>

#include <map>

#include "atunner/base/random.h"

namespace atunner::vgpu {
namespace {

TEST(Sectors, AgreeWithAMapOverManyTouches) {
  SectorTable table;
  Random random(3);
  for (int block = 0; block < 3; ++block) {
    std::map<uint64_t, uint32_t> expected;
    for (int i = 0; i < 20000; ++i) {
      const uint64_t sector = random.Below(3000) * (random.Below(2) ? 1 : 7919);
      const auto now = static_cast<uint32_t>(expected.size());
      const auto [at, fresh] = expected.emplace(sector, now);
      uint32_t age = 0;
      ASSERT_EQ(table.Touch(sector, age), fresh);
      if (!fresh) ASSERT_EQ(age, now - at->second);
      at->second = now;
    }
    EXPECT_EQ(table.size(), expected.size());
    table.Clear();
    EXPECT_EQ(table.size(), 0u);
  }
}

}  // namespace
}  // namespace atunner::vgpu
