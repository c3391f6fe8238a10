#include "atunner/vgpu/memory/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace atunner::vgpu {
namespace {

TEST(VirtualMemory, OfTheHostIsAdoptedOnce) {
  Memory memory(1 << 20);
  memory.Track();
  alignas(256) static std::array<std::byte, 1024> bytes;
  const auto address = reinterpret_cast<uint64_t>(bytes.data());
  const auto base = memory.Adopt(address + 300, 300);
  EXPECT_EQ(base, address + 256);
  ASSERT_TRUE(memory.Find(address + 767));
  EXPECT_EQ(memory.Find(address + 767)->end, address + 768);
  EXPECT_FALSE(memory.Find(address + 255) || memory.Find(address + 768));
  EXPECT_FALSE(memory.Adopt(address + 700, 8));
  EXPECT_FALSE(memory.Adopt(address, 1024));
  memory.Free(*base);
  EXPECT_FALSE(memory.Find(address + 300));
  EXPECT_TRUE(memory.Adopt(address, 1024));
  EXPECT_FALSE(memory.Adopt(memory.Allocate(64).value(), 8));
}

TEST(VirtualMemory, WhatIsRetiredIsNoAllocationButStillThere) {
  Memory memory(uint64_t{1} << 30);
  const uint64_t address = memory.Allocate(64).value();
  std::memset(reinterpret_cast<void*>(address), 7, 64);
  const uint32_t before = memory.generation();
  memory.Retire(address);
  EXPECT_FALSE(memory.Find(address).has_value());
  EXPECT_NE(memory.generation(), before);
  EXPECT_EQ(memory.free_bytes(), uint64_t{1} << 30);
  // a kernel that uses it late does no harm
  EXPECT_EQ(*reinterpret_cast<const volatile unsigned char*>(address), 0);
}

TEST(VirtualMemory, RetiredSpaceIsUsedAgainAsIfNew) {
  Memory memory(uint64_t{1} << 34);
  memory.Track();
  std::vector<uint64_t> first;
  for (int i = 0; i < 1024; ++i) first.push_back(memory.AllocateAgain(64).value());
  for (uint64_t address : first) {
    memory.MarkDefined(address, 64);
    memory.Retire(address);
  }
  const uint64_t again = memory.AllocateAgain(48).value();
  EXPECT_EQ(again, first.front());
  const Range range = memory.Find(again).value();
  EXPECT_EQ(range.end - range.base, 48u);
  EXPECT_FALSE(range.shadow->complete);
  EXPECT_EQ(range.shadow->defined[0], 0);
}

TEST(VirtualMemory, LinesForgetWhatTheHostCallsUndefined) {
  Memory memory(uint64_t{1} << 20);
  memory.Track();
  const uint64_t address = memory.Allocate(384).value();
  memory.MarkDefined(address, 384);
  const GlobalShadow& shadow = *memory.Find(address)->shadow;
  for (int i = 0; i < 3; ++i) shadow.lines[i].defined = ~0u;  // as kernels leave them
  memory.MarkDefined(address + 100, 100, false);
  EXPECT_EQ(shadow.lines[0].defined, 0u);
  EXPECT_EQ(shadow.lines[1].defined, 0u);
  EXPECT_EQ(shadow.lines[2].defined, ~0u);
  memory.MarkDefined(address, 384);
  EXPECT_EQ(shadow.lines[2].defined, ~0u);
}

}  // namespace
}  // namespace atunner::vgpu
