#include "atunner/verify/oracle/reference_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace atunner {
namespace {

class NoBuffer : public Buffer {
 public:
  DeviceAddress address() const override { return 0; }
  uint64_t bytes() const override { return 100; }
};

Reference Make() {
  Reference reference;
  reference.bytes = 100;
  reference.outputs.emplace_back();
  reference.outputs.back().masked = std::make_unique<NoBuffer>();
  return reference;
}

InputInstance Instance(uint64_t seed) { return {InputFamily::kNormal, seed, false, {}}; }

// There are five references with room for three. A candidate that needs all in order finds the
// first two. If the oldest were dropped, it would find none, and every candidate would compute all
// five.
TEST(ReferenceCache, TheFirstReferencesStay) {
  ReferenceCache cache(300);
  for (uint64_t seed = 1; seed <= 5; ++seed) cache.Keep({}, Instance(seed), Make());
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Reference* known = cache.Find({}, Instance(seed));
    ASSERT_NE(known, nullptr) << "budgets stay";
    EXPECT_EQ(known->HasValues(), seed <= 2 || seed == 5) << seed;
  }
  // The values of the third are computed again.
  cache.Renew({}, Instance(3));
  cache.Find({}, Instance(3))->outputs[0].masked = std::make_unique<NoBuffer>();
  EXPECT_TRUE(cache.Find({}, Instance(1))->HasValues());
  EXPECT_TRUE(cache.Find({}, Instance(3))->HasValues());
  EXPECT_FALSE(cache.Find({}, Instance(5))->HasValues());
}

// The values of two references of a 15 GB task are not in memory at once.
TEST(ReferenceCache, RoomIsMadeBeforeAReferenceIsComputed) {
  ReferenceCache cache(150);
  cache.Keep({}, Instance(1), Make());
  cache.MakeRoom(50);
  EXPECT_TRUE(cache.Find({}, Instance(1))->HasValues());
  cache.MakeRoom(100);
  EXPECT_FALSE(cache.Find({}, Instance(1))->HasValues());
}

TEST(ReferenceCache, TheNewestStaysThoughItIsTooLarge) {
  ReferenceCache cache(50);
  EXPECT_TRUE(cache.Keep({}, Instance(1), Make())->HasValues());
  EXPECT_TRUE(cache.Keep({}, Instance(2), Make())->HasValues());
  EXPECT_FALSE(cache.Find({}, Instance(1))->HasValues());
}

}  // namespace
}  // namespace atunner
