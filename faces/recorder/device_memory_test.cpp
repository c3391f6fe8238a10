#include "faces/recorder/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "faces/recorder/launch_timer.h"
#include "faces/recorder/testing/fake_driver.h"

namespace atunner::recorder {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBase = 0x700000000;

class Memories : public testing::Test {
 protected:
  Memories() : driver_(FakeDriver()), memory_(driver_) {
    Fake().memory[kBase] = "device";
    memory_.Add(kBase, 6, false);
  }
  Driver driver_;
  DeviceMemory memory_;
};

TEST_F(Memories, AllocationsAreFoundByAnyAddress) {
  memory_.Add(kBase + 100, 50, false);
  EXPECT_EQ(memory_.Find(kBase + 5)->base, kBase);
  EXPECT_FALSE(memory_.Find(kBase + 6));
  EXPECT_FALSE(memory_.Find(kBase - 1));
  EXPECT_EQ(memory_.Bounds(), std::pair(kBase, kBase + 150));
  memory_.Remove(kBase + 100);
  EXPECT_FALSE(memory_.Find(kBase + 100));
}

TEST_F(Memories, ReadingWaitsOnceForEachLaunch) {
  std::string text(3, ' ');
  for (int launch = 1; launch <= 2; ++launch) {
    memory_.OnLaunch();
    ASSERT_TRUE(memory_.Read(kBase + 1, text));
    ASSERT_TRUE(memory_.Read(kBase + 1, text));
    EXPECT_EQ(text, "evi");
    EXPECT_EQ(Fake().waits, launch);
  }
}

TEST_F(Memories, HostMemoryIsReadWhereItIs) {
  std::string host = "host";
  memory_.Add(reinterpret_cast<uint64_t>(host.data()), host.size(), true);
  std::string text(4, ' ');
  ASSERT_TRUE(memory_.Read(reinterpret_cast<uint64_t>(host.data()), text));
  EXPECT_EQ(text, "host");
  ASSERT_TRUE(memory_.Write(reinterpret_cast<uint64_t>(host.data()) + 1, std::string("xy")));
  EXPECT_EQ(host, "hxyt");
  EXPECT_EQ(Fake().waits, 1);
}

TEST_F(Memories, WhatWasNotSeenIsDiscoveredForOneLaunch) {
  Fake().memory[kBase + 1000] = std::string(10, 'x');
  memory_.Discover(kBase + 1004);
  EXPECT_EQ(memory_.Find(kBase + 1009)->base, kBase + 1000);
  memory_.Discover(kBase + 5000);
  memory_.Discover(3);
  memory_.ForgetDiscovered();
  EXPECT_FALSE(memory_.Find(kBase + 1004));
  EXPECT_TRUE(memory_.Find(kBase));
}

TEST_F(Memories, AResetLeavesHostMemory) {
  memory_.Add(0x1000, 16, true);
  memory_.RemoveDeviceMemory();
  EXPECT_FALSE(memory_.Find(kBase));
  EXPECT_TRUE(memory_.Find(0x1000));
}

TEST_F(Memories, AnErrorOfTheDriverIsNamed) {
  Fake().copy_result = 700;
  std::string text(3, ' ');
  EXPECT_THAT(memory_.Read(kBase, text).error().ToString(), HasSubstr("cuMemcpyDtoH failed"));
}

TEST_F(Memories, TimesComeWhenTheLaunchHasEnded) {
  LaunchTimer timer(driver_);
  const capture::LaunchFacts facts{.kernel = 3, .configuration = {}};
  const auto pair = timer.Begin(nullptr);
  ASSERT_TRUE(pair);
  timer.End(*pair, nullptr, &facts);
  std::vector<double> seconds;
  const auto add = [&](const capture::LaunchFacts& of, double time) {
    EXPECT_EQ(of.kernel, 3u);
    seconds.push_back(time);
  };
  timer.Collect(add);
  EXPECT_TRUE(seconds.empty());
  Fake().events_ended = true;
  Fake().milliseconds = 2;
  timer.Collect(add);
  timer.Collect(add);
  ASSERT_EQ(seconds.size(), 1u);
  EXPECT_NEAR(seconds[0], 2e-3, 1e-9);
}

TEST_F(Memories, WithoutAFreePairNothingIsTimed) {
  LaunchTimer timer(driver_);
  const capture::LaunchFacts facts;
  int pairs = 0;
  for (auto pair = timer.Begin(nullptr); pair; pair = timer.Begin(nullptr), ++pairs)
    timer.End(*pair, nullptr, &facts);
  EXPECT_EQ(pairs, 64);
  EXPECT_EQ(timer.Take(5), 0) << "a time of zero is not known";
  EXPECT_TRUE(timer.Begin(nullptr));
}

}  // namespace
}  // namespace atunner::recorder
