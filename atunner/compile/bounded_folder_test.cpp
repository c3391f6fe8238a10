#include "atunner/compile/bounded_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace atunner {
namespace {

constexpr size_t kSize = 8192;

/// Makes `count` files in two sub-folders, the oldest one first.
std::vector<Path> Filled(const Path& folder, int count) {
  std::vector<Path> files;
  for (int i = 0; i < count; ++i) {
    files.push_back(folder / std::to_string(i % 2) / ("file" + std::to_string(i)));
    EXPECT_TRUE(WriteFileAtomic(files.back(), std::string(kSize, 'x')));
    std::filesystem::last_write_time(files.back(), std::filesystem::file_time_type::clock::now() -
                                                       std::chrono::hours(count - i));
  }
  return files;
}

size_t Left(const std::vector<Path>& files) {
  return static_cast<size_t>(
      std::ranges::count_if(files, [](const Path& file) { return std::filesystem::exists(file); }));
}

TEST(BoundedFolder, WhatWasNotUsedForLongestGoesFirst) {
  const TemporaryDirectory folder;
  const auto files = Filled(folder.path(), 10);
  KeepBelow(folder.path(), 10 * kSize);
  EXPECT_EQ(Left(files), 10u) << "it fits";
  Renew(files[0]);
  KeepBelow(folder.path(), 10 * kSize - 1);
  EXPECT_EQ(Left(files), 7u) << "a fifth below, so that the next files fit";
  EXPECT_TRUE(std::filesystem::exists(files[0])) << "used since";
  for (size_t i = 1; i < 4; ++i) EXPECT_FALSE(std::filesystem::exists(files[i])) << i;
}

TEST(BoundedFolder, IsLookedAtOnceAnHour) {
  const TemporaryDirectory folder;
  const auto files = Filled(folder.path(), 4);
  KeepBelowNowAndThen(folder.path(), 4 * kSize);
  KeepBelowNowAndThen(folder.path(), 0);
  EXPECT_EQ(Left(files), 4u);
  std::filesystem::last_write_time(
      folder.path() / ".looked",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  KeepBelowNowAndThen(folder.path(), 0);
  EXPECT_EQ(Left(files), 0u);
  KeepBelowNowAndThen(folder.path() / "none", 0);  // made, and empty
}

TEST(BoundedFolder, ManyMayPruneAndWriteAtOnce) {
  const TemporaryDirectory folder;
  Filled(folder.path(), 200);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { KeepBelow(folder.path(), 50 * kSize); });
  for (int i = 0; i < 50; ++i)
    (void)WriteFileAtomic(folder.path() / "new" / std::to_string(i), std::string(kSize, 'y'));
  threads.clear();
  KeepBelow(folder.path(), 50 * kSize);
  size_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file()) bytes += entry.file_size();
  EXPECT_LE(bytes, 50 * kSize);
  EXPECT_GE(bytes, 40 * kSize) << "no more than needed";
}

TEST(CacheLimit, IsASetting) {
  ::unsetenv("ATUNNER_CACHE_GB");
  EXPECT_EQ(CacheLimitBytes(), 2'000'000'000u);
  ::setenv("ATUNNER_CACHE_GB", "0.5", 1);
  EXPECT_EQ(CacheLimitBytes(), 500'000'000u);
  for (const char* wrong : {"", "much", "-1", "nan"}) {
    ::setenv("ATUNNER_CACHE_GB", wrong, 1);
    EXPECT_EQ(CacheLimitBytes(), 2'000'000'000u) << wrong;
  }
  ::unsetenv("ATUNNER_CACHE_GB");
}

}  // namespace
}  // namespace atunner
