#include "atunner/vgpu/sectors.h"

#include <gtest/gtest.h>

#include <set>

#include "atunner/base/random.h"

namespace atunner::vgpu {
namespace {

TEST(Sectors, AgreeWithASetOverManyTouches) {
  SectorTable table;
  Random random(3);
  for (int block = 0; block < 3; ++block) {
    std::set<uint64_t> expected;
    for (int i = 0; i < 20000; ++i) {
      const uint64_t sector = random.Below(3000) * (random.Below(2) ? 1 : 7919);
      uint32_t age = 0;
      ASSERT_EQ(table.Touch(sector, age), expected.insert(sector).second);
    }
    EXPECT_EQ(table.size(), expected.size());
    table.Clear();
    EXPECT_EQ(table.size(), 0u);
  }
}

TEST(Sectors, CommonOnesAreThoseOfAllBlocks) {
  uint32_t age = 0;
  const auto block = [&](uint64_t own) {
    SectorTable table;
    for (uint64_t sector = 0; sector < 6; ++sector) table.Touch(sector, age);
    for (uint64_t sector = 0; sector < 100; ++sector) table.Touch(1000 * own + sector, age);
    return table;
  };
  CommonSectors one, other, none;
  EXPECT_EQ(one.size(), 0u);
  one.Meet(block(1));
  EXPECT_EQ(one.size(), 106u);
  one.Meet(block(2));
  EXPECT_EQ(one.size(), 6u);
  other.Meet(block(3));
  other.Meet(none);
  EXPECT_EQ(other.size(), 106u) << "who ran no block has no say";
  none.Meet(other);
  EXPECT_EQ(none.size(), 106u);
  none.Meet(one);
  EXPECT_EQ(none.size(), 6u);
  one.Meet(SectorTable());
  EXPECT_EQ(one.size(), 0u);
}

TEST(Sectors, AgesAreHowMuchWasTouchedSince) {
  SectorTable table;
  uint32_t age = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (uint64_t sector = 0; sector < 2000; ++sector) {
      ASSERT_EQ(table.Touch(sector, age), pass == 0);
      if (pass > 0) ASSERT_NEAR(age, 2000, 1) << "every pass finds the others between";
    }
  }
  for (int i = 0; i < 5000; ++i) table.Touch(7, age);
  EXPECT_LE(age, 1u) << "one place again and again";
  table.Touch(1999, age);
  EXPECT_LE(age, 2u);
}

TEST(Sectors, StretchesAreTouchedAsOneByOne) {
  SectorTable one, all;
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t first = random.Below(900);
    const uint64_t end = first + random.Below(20);
    uint64_t expected = first;
    all.TouchAll(first, end, [&](bool fresh, uint32_t age) {
      uint32_t expected_age = 0;
      ASSERT_EQ(fresh, one.Touch(expected++, expected_age));
      if (!fresh) ASSERT_EQ(age, expected_age);
    });
    ASSERT_EQ(expected, end);
  }
  EXPECT_EQ(all.size(), one.size());
}

}  // namespace
}  // namespace atunner::vgpu
