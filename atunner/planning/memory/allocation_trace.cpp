#include "atunner/planning/memory/allocation_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace atunner::planning {
namespace {

constexpr int64_t kMost = int64_t{1} << 45;  // bytes of one block; larger numbers are damage

}  // namespace

void AllocationTrace::Allocate(uint64_t address, int64_t bytes) {
  if (bytes <= 0 || bytes > kMost) return;
  Release(address, 0);  // its release was not recorded
  open_[address] = {time_++, 0, bytes};
  live_ += bytes;
}

void AllocationTrace::Release(uint64_t address, int64_t bytes) {
  const auto found = open_.find(address);
  if (found != open_.end()) {
    found->second.end = ++time_;
    live_ -= found->second.size;
    Close(found->second);
    open_.erase(found);
  } else if (bytes > 0 && bytes <= kMost) {
    Close({-1, ++time_, bytes});
    early_ += bytes;
  }
}

void AllocationTrace::Reserved(int64_t bytes) {
  if (bytes <= reserved_) return;
  reserved_ = bytes;
  live_at_reserved_ = live_;
  early_at_reserved_ = early_;
}

void AllocationTrace::Close(const Buffer& buffer) {
  problem_.ids.push_back(std::to_string(problem_.buffers.size()));
  problem_.buffers.push_back(buffer);
}

MemoryProblem AllocationTrace::Finish(const std::string& allocator, int64_t in_use) {
  const int64_t unseen = std::clamp<int64_t>(in_use - live_, 0, kMost);
  std::vector<Buffer> open;
  for (const auto& [address, buffer] : open_) open.push_back(buffer);
  std::ranges::sort(open, {}, &Buffer::begin);
  for (Buffer& buffer : open) {
    buffer.end = time_ + 1;
    Close(buffer);
  }
  if (!open.empty())
    problem_.notes.push_back(
        fmt::format("{} buffers are not released in the trace and live to its end", open.size()));
  if (unseen > 0) {
    Close({-1, time_ + 1, unseen});
    problem_.notes.push_back(fmt::format(
        "{} bytes were allocated before the trace and stay: they are planned as one buffer",
        unseen));
  }
  // Blocks from before the trace are live until their release.
  const int64_t live = live_at_reserved_ + early_ - early_at_reserved_ + unseen;
  problem_.observed = {reserved_, std::min(live, reserved_), allocator};
  return std::move(problem_);
}

}  // namespace atunner::planning
