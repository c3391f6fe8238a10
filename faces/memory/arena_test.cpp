// The arena over a driver that keeps books: which page is mapped where, and what was waited for.
#include "faces/memory/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace atunner::memory {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
Stream const kMain = reinterpret_cast<Stream>(1), kSide = reinterpret_cast<Stream>(2);

struct FakeGpu {
  size_t total = 4096 * kMiB;
  size_t created = 0;  ///< bytes
  PageHandle next = 1;
  std::map<Address, PageHandle> mapped;
  std::set<Address> accessible;
  std::vector<std::pair<Stream, Stream>> waits;  ///< who waits, for whom
  std::map<Event, Stream> recorded;
  int synchronizations = 0, errors = 0;
};

FakeGpu* g_gpu = nullptr;

Driver FakeDriver() {
  Driver driver;
  driver.init = [](unsigned) { return 0; };
  driver.retain_context = [](CudaContext* context, int) {
    *context = g_gpu;
    return 0;
  };
  driver.push_context = [](CudaContext) { return 0; };
  driver.pop_context = [](CudaContext*) { return 0; };
  driver.synchronize = [] {
    ++g_gpu->synchronizations;
    return 0;
  };
  driver.memory_info = [](size_t* free, size_t* total) {
    *total = g_gpu->total;
    *free = g_gpu->total - g_gpu->created;
    return 0;
  };
  driver.reserve = [](Address* at, size_t, size_t, Address, uint64_t) {
    *at = Address{1} << 40;
    return 0;
  };
  driver.create = [](PageHandle* page, size_t bytes, const AllocationProperties*, uint64_t) {
    if (g_gpu->created + bytes > g_gpu->total) return kOutOfMemory;
    g_gpu->created += bytes;
    *page = g_gpu->next++;
    return 0;
  };
  driver.release = [](PageHandle) {
    g_gpu->created -= kPage;
    return 0;
  };
  driver.map = [](Address at, size_t bytes, size_t, PageHandle page, uint64_t) {
    const bool fresh = at % kPage == 0 && bytes == kPage && g_gpu->mapped.emplace(at, page).second;
    g_gpu->errors += fresh ? 0 : 1;
    return fresh ? 0 : 1;
  };
  driver.unmap = [](Address at, size_t bytes) {
    for (Address page = at; page < at + bytes; page += kPage)
      g_gpu->errors += g_gpu->mapped.erase(page) == 1 ? 0 : 1;
    return 0;
  };
  driver.set_access = [](Address, size_t, const AccessDescription*, size_t) { return 0; };
  driver.create_event = [](Event* event, unsigned) {
    *event = &g_gpu->waits;
    return 0;
  };
  driver.destroy_event = [](Event) { return 0; };
  driver.record = [](Event event, Stream stream) {
    g_gpu->recorded[event] = stream;
    return 0;
  };
  driver.wait = [](Stream stream, Event event, unsigned) {
    g_gpu->waits.emplace_back(stream, g_gpu->recorded[event]);
    return 0;
  };
  return driver;
}

class ArenaTest : public testing::Test {
 protected:
  ArenaTest() { g_gpu = &gpu_; }

  std::unique_ptr<Arena> Open() {
    std::string reason;
    auto arena = Arena::Open(driver_, 0, reason);
    EXPECT_NE(arena, nullptr) << reason;
    return arena;
  }

  /// Allocates, and checks that physical pages are behind it that no other live block has.
  void* Allocate(Arena& arena, size_t bytes, Stream stream = kMain) {
    void* const at = arena.Allocate(bytes, stream);
    if (at == nullptr) return at;
    const auto begin = reinterpret_cast<Address>(at);
    for (Address page = begin / kPage * kPage; page < begin + bytes; page += kPage) {
      const auto found = gpu_.mapped.find(page);
      if (found == gpu_.mapped.end()) {
        ADD_FAILURE() << "nothing is behind a block of " << bytes;
        return at;
      }
      const Address from = std::max(page, begin) - page;
      const Address to = std::min<Address>(page + kPage, begin + bytes) - page;
      for (const auto& [other, range] : live_[found->second]) {
        EXPECT_TRUE(range.second <= from || to <= range.first) << "two live blocks share memory";
      }
      live_[found->second][begin] = {from, to};
    }
    sizes_[at] = bytes;
    return at;
  }

  void Free(Arena& arena, void* at) {
    const auto begin = reinterpret_cast<Address>(at);
    for (auto& [page, blocks] : live_) blocks.erase(begin);
    sizes_.erase(at);
    EXPECT_TRUE(arena.Free(at));
  }

  FakeGpu gpu_;
  Driver driver_ = FakeDriver();
  std::map<PageHandle, std::map<Address, std::pair<Address, Address>>> live_;
  std::map<void*, size_t> sizes_;
};

TEST_F(ArenaTest, FreedMemoryServesTheNextBlockOfItsStream) {
  const auto arena = Open();
  void* const first = Allocate(*arena, 10 * kMiB);
  Free(*arena, first);
  EXPECT_EQ(Allocate(*arena, 10 * kMiB), first);
  EXPECT_EQ(arena->stats().reserved, static_cast<int64_t>(10 * kMiB));
  EXPECT_EQ(arena->stats().live, static_cast<int64_t>(10 * kMiB));
}

TEST_F(ArenaTest, AnotherStreamGetsOtherMemory) {
  const auto arena = Open();
  void* const first = Allocate(*arena, 10 * kMiB, kMain);
  Free(*arena, first);
  EXPECT_NE(Allocate(*arena, 10 * kMiB, kSide), first);
  EXPECT_EQ(gpu_.synchronizations, 0);
}

TEST_F(ArenaTest, ScatteredFreePagesServeALargeBlockWithoutWaiting) {
  const auto arena = Open();
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(Allocate(*arena, 10 * kMiB));
  for (size_t i = 0; i < blocks.size(); i += 2) Free(*arena, blocks[i]);
  ASSERT_NE(Allocate(*arena, 200 * kMiB), nullptr);
  EXPECT_LE(arena->stats().peak_reserved, static_cast<int64_t>(410 * kMiB));
  EXPECT_GE(arena->stats().moved_pages, 90);
  EXPECT_EQ(gpu_.synchronizations, 0);
  EXPECT_EQ(gpu_.errors, 0);
}

TEST_F(ArenaTest, MemoryOfOtherStreamsServesBeforeThereIsNone) {
  const auto arena = Open();
  Free(*arena, Allocate(*arena, 3000 * kMiB, kMain));
  EXPECT_NE(Allocate(*arena, 3500 * kMiB, kSide), nullptr);
  EXPECT_EQ(gpu_.synchronizations, 1);
  EXPECT_EQ(Allocate(*arena, 1000 * kMiB, kSide), nullptr);
  EXPECT_EQ(arena->stats().live, static_cast<int64_t>(3500 * kMiB));
  EXPECT_EQ(gpu_.errors, 0);
}

TEST_F(ArenaTest, AStreamThatUsedABlockIsWaitedForOnTheGpu) {
  const auto arena = Open();
  void* const block = Allocate(*arena, kMiB, kMain);
  EXPECT_TRUE(arena->Use(block, kSide));
  EXPECT_TRUE(arena->Use(block, kSide));
  EXPECT_TRUE(arena->Use(block, kMain));
  Free(*arena, block);
  EXPECT_EQ(gpu_.waits, (std::vector<std::pair<Stream, Stream>>{{kMain, kSide}}));
}

TEST_F(ArenaTest, EmptyGivesFreePagesBack) {
  const auto arena = Open();
  void* const kept = Allocate(*arena, 4 * kMiB);
  void* const small = Allocate(*arena, 1000);
  Free(*arena, Allocate(*arena, 100 * kMiB));
  arena->Empty();
  EXPECT_EQ(gpu_.created, 6 * kMiB);
  EXPECT_EQ(arena->stats().reserved, static_cast<int64_t>(6 * kMiB));
  EXPECT_NE(Allocate(*arena, 50 * kMiB), nullptr);
  Free(*arena, kept);
  Free(*arena, small);
  EXPECT_EQ(gpu_.errors, 0);
}

TEST_F(ArenaTest, WhatWasNotAllocatedIsNotFreed) {
  const auto arena = Open();
  void* const block = Allocate(*arena, kMiB);
  EXPECT_FALSE(arena->Free(static_cast<char*>(block) + 512));
  EXPECT_FALSE(arena->Free(nullptr));
  Free(*arena, block);
  EXPECT_FALSE(arena->Free(block));
}

TEST_F(ArenaTest, TheTraceIsATableForThePlanner) {
  const auto arena = Open();
  arena->BeginTrace();
  void* const first = Allocate(*arena, 1000);
  (void)Allocate(*arena, 2 * kMiB);
  Free(*arena, first);
  EXPECT_EQ(arena->TraceText(), "id,lower,upper,size\n0,0,2,1024\n1,1,3,2097152\n");
}

TEST_F(ArenaTest, RandomProgramsNeverShareMemory) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    gpu_ = FakeGpu{.total = 600 * kMiB};
    live_.clear();
    sizes_.clear();
    const auto arena = Open();
    std::mt19937 random(seed);
    for (int i = 0; i < 6000; ++i) {
      const auto draw = [&](size_t below) { return random() % below; };
      if (!sizes_.empty() && draw(100) < 50) {
        Free(*arena, std::next(sizes_.begin(), static_cast<long>(draw(sizes_.size())))->first);
        continue;
      }
      const size_t bytes = draw(3) == 0 ? 1 + draw(kMiB) : 1 + draw(20 * kMiB);
      if (Allocate(*arena, bytes, draw(4) == 0 ? kSide : kMain) == nullptr) {
        size_t live = bytes;
        for (const auto& [at, size] : sizes_) live += size;
        EXPECT_GT(live, 400 * kMiB) << "refused too early";
      }
      if (draw(500) == 0) arena->Empty();
    }
    EXPECT_EQ(gpu_.errors, 0);
  }
}

/// Training with sequences of different lengths: weights and states stay, activations of each
/// layer are freed in the opposite order, and gradients live until the update.
class Training {
 public:
  Training(Arena& arena, std::mt19937& random) : arena_(arena), random_(random) {
    for (int i = 0; i < 3 * kLayers; ++i) Weights();
  }

  void Step() {
    const size_t tokens = 64 * (16 + random_() % 112);
    std::vector<std::vector<void*>> saved(kLayers);
    for (auto& layer : saved) {
      for (const size_t width : {2, 6, 2, 2, 8, 8, 2})
        layer.push_back(arena_.Allocate(tokens * width * 768, kMain));
      arena_.Free(arena_.Allocate(tokens * 768 * 4, kMain));
    }
    std::vector<void*> gradients;
    for (auto layer = saved.rbegin(); layer != saved.rend(); ++layer) {
      void* const flowing = arena_.Allocate(tokens * 768 * 8, kMain);
      for (const size_t numbers : {7, 3, 9, 9})
        gradients.push_back(arena_.Allocate(numbers * 768 * 1024, kMain));
      for (void* const each : *layer) arena_.Free(each);
      arena_.Free(flowing);
    }
    for (void* const each : gradients) arena_.Free(each);
  }

 private:
  static constexpr int kLayers = 12;

  void Weights() {
    for (const size_t numbers : {7, 3, 9, 9}) (void)arena_.Allocate(numbers * 768 * 1024, kMain);
  }

  Arena& arena_;
  std::mt19937& random_;
};

TEST_F(ArenaTest, TrainingWithChangingLengthsReservesLittleMoreThanItUses) {
  gpu_.total = size_t{80} << 30;
  const auto arena = Open();
  std::mt19937 random(7);
  Training training(*arena, random);
  for (int i = 0; i < 200; ++i) training.Step();
  const Stats stats = arena->stats();
  EXPECT_LT(static_cast<double>(stats.peak_reserved), 1.12 * static_cast<double>(stats.peak_live));
  EXPECT_EQ(gpu_.errors, 0);
  RecordProperty("peak_reserved", std::to_string(stats.peak_reserved));
  RecordProperty("peak_live", std::to_string(stats.peak_live));
  RecordProperty("moves", std::to_string(stats.moves));
  RecordProperty("moved_pages", std::to_string(stats.moved_pages));
  RecordProperty("allocations", std::to_string(stats.allocations));
}

}  // namespace
}  // namespace atunner::memory
