#include "faces/memory/page_pool.h"

#include <algorithm>

namespace atunner::memory {
namespace {

/// Chosen by replaying the allocations of training steps (arena_test.cpp): more slack saves moves,
/// less of it saves memory.
constexpr double kFirstSlack = 0.02, kMostSlack = 0.08, kSlackOfMove = 0.0002;

}  // namespace

void PagePool::Create(size_t count, std::vector<PageHandle>& pages) {
  const AllocationProperties properties{.location_id = device_};
  for (size_t i = 0; i < count; ++i) {
    PageHandle page = 0;
    if (driver_.create(&page, kPage, &properties, 0) != 0) break;
    pages.push_back(page);
    stats_.reserved += static_cast<int64_t>(kPage);
  }
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
}

void PagePool::Release(const std::vector<PageHandle>& pages) {
  for (const PageHandle page : pages) {
    (void)driver_.release(page);
    stats_.reserved -= static_cast<int64_t>(kPage);
  }
}

bool PagePool::Map(Address at, const std::vector<PageHandle>& pages) {
  for (size_t i = 0; i < pages.size(); ++i) {
    if (driver_.map(at + i * kPage, kPage, 0, pages[i], 0) == 0) continue;
    if (i > 0) (void)driver_.unmap(at, i * kPage);
    return false;
  }
  const AccessDescription access{.location_id = device_};
  if (driver_.set_access(at, pages.size() * kPage, &access, 1) == 0) return true;
  (void)driver_.unmap(at, pages.size() * kPage);
  return false;
}

bool PagePool::Synchronize() {
  ++stats_.synchronizations;
  return driver_.synchronize() == 0;
}

int64_t PagePool::Allowed() const {
  const double slack = std::min(kMostSlack,
                                kFirstSlack + kSlackOfMove * static_cast<double>(stats_.moves));
  return static_cast<int64_t>(static_cast<double>(stats_.peak_live) * (1 + slack));
}

void PagePool::AddLive(int64_t bytes) {
  stats_.live += bytes;
  stats_.peak_live = std::max(stats_.peak_live, stats_.live);
}

}  // namespace atunner::memory
