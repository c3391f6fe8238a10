#include "atunner/vgpu/memory/sectors.h"

#include <gtest/gtest.h>

#include <set>

#include "atunner/base/random.h"

namespace atunner::vgpu {
namespace {

SectorTable::Met TouchOne(SectorTable& table, uint64_t sector, uint64_t kept = 0) {
  return table.Touch(1, kept, [sector](size_t) { return sector; });
}

TEST(Sectors, AgreeWithASetOverManyTouches) {
  SectorTable table;
  Random random(3);
  for (int block = 0; block < 3; ++block) {
    std::set<uint64_t> expected;
    for (int i = 0; i < 20000; ++i) {
      const uint64_t sector = random.Below(3000) * (random.Below(2) ? 1 : 7919);
      ASSERT_EQ(TouchOne(table, sector).fresh, expected.insert(sector).second);
    }
    EXPECT_EQ(table.size(), expected.size());
    table.Clear();
    EXPECT_EQ(table.size(), 0u);
  }
}

TEST(Sectors, WhatIsStoredPushesOthersOut) {
  SectorTable table;
  const uint64_t kept = 200;
  TouchOne(table, 7, kept);
  table.Pass(100);
  EXPECT_EQ(TouchOne(table, 7, kept).lost, 0u);
  table.Pass(201);
  EXPECT_EQ(TouchOne(table, 7, kept).lost, 1u);
}

TEST(Sectors, CommonOnesAreThoseOfAllBlocks) {
  const auto block = [&](uint64_t own) {
    SectorTable table;
    for (uint64_t sector = 0; sector < 6; ++sector) TouchOne(table, sector);
    for (uint64_t sector = 0; sector < 100; ++sector) TouchOne(table, 1000 * own + sector);
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

TEST(Sectors, DistancesAreHowMuchWasTouchedSince) {
  SectorTable table;
  for (int pass = 0; pass < 3; ++pass) {
    for (uint64_t sector = 0; sector < 2000; ++sector) {
      const SectorTable::Met met = TouchOne(table, sector, sector % 2 ? 1990 : 2010);
      ASSERT_EQ(met.fresh, pass == 0);
      if (pass > 0)
        ASSERT_NEAR(static_cast<double>(met.distance), 2000, 1)
            << "every pass finds the others between";
      ASSERT_EQ(met.lost, pass > 0 && sector % 2);
    }
  }
  for (int i = 0; i < 5000; ++i) TouchOne(table, 7);
  EXPECT_LE(TouchOne(table, 7).distance, 1u) << "one place again and again";
  EXPECT_LE(TouchOne(table, 1999).distance, 2u);
}

TEST(Sectors, StretchesAreTouchedAsOneByOne) {
  constexpr uint64_t kKept = 300;
  SectorTable one, all;
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t first = random.Below(900);
    const uint64_t sectors = random.Below(20);
    const uint64_t step = random.Below(4);
    const SectorTable::Met met = all.Touch(sectors, kKept,
                                           [&](size_t k) { return first + k * step; });
    SectorTable::Met expected;
    for (uint64_t k = 0; k < sectors; ++k) {
      const SectorTable::Met each = TouchOne(one, first + k * step, kKept);
      expected.fresh += each.fresh;
      expected.distance += each.distance;
      expected.lost += each.lost;
    }
    ASSERT_EQ(met.fresh, expected.fresh);
    ASSERT_EQ(met.distance, expected.distance);
    ASSERT_EQ(met.lost, expected.lost);
  }
  EXPECT_EQ(all.size(), one.size());
}

}  // namespace
}  // namespace atunner::vgpu
