#include "faces/serve/rate_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace atunner::serve {
namespace {

TEST(RateLimits, ABurstAndThenTheRate) {
  RateLimits limits;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.Take("a", 2, 3, 10));
  EXPECT_FALSE(limits.Take("a", 2, 3, 10));
  EXPECT_FALSE(limits.Take("a", 2, 3, 10.4));
  EXPECT_TRUE(limits.Take("b", 2, 3, 10)) << "others are not concerned";
  EXPECT_TRUE(limits.Take("a", 2, 3, 10.5));
  EXPECT_FALSE(limits.Take("a", 2, 3, 10.5));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.Take("a", 2, 3, 100)) << "no more than a burst";
  EXPECT_FALSE(limits.Take("a", 2, 3, 100));
}

TEST(RateLimits, ManyNamesAreForgottenInTime) {
  RateLimits limits;
  for (int i = 0; i < 30000; ++i) {
    const double now = i * 0.01;  // 6000 names a minute
    EXPECT_TRUE(limits.Take(std::to_string(i), 0.2, 1, now));
  }
  EXPECT_FALSE(limits.Take("29999", 0.2, 1, 300)) << "a recent one is remembered";
}

}  // namespace
}  // namespace atunner::serve
