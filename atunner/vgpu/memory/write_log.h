// Which bytes of global memory a launch wrote. A block adds its writes in the order in which they
// happen; neighbours are joined, so that dense stores cost one entry for many warps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace atunner::vgpu {

class WriteLog {
 public:
  /// The bytes from address `begin` to before `end`.
  void Add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    if (!ranges_.empty()) {
      auto& [last_begin, last_end] = ranges_.back();
      if (begin == last_end) {
        last_end = end;
        return;
      }
      if (begin >= last_begin && end <= last_end) return;
    }
    if (ranges_.size() >= join_at_) Join();
    ranges_.emplace_back(begin, end);
  }

  void Add(const WriteLog& other) {
    for (const auto& [begin, end] : other.ranges_) Add(begin, end);
  }

  /// All bytes in ascending order, with gaps between the ranges.
  const std::vector<std::pair<uint64_t, uint64_t>>& Merged() {
    Join();
    return ranges_;
  }

 private:
  static constexpr size_t kLeast = 4096;

  /// Sorts the ranges and unites those that touch. The next time is when their number has doubled.
  void Join() {
    std::ranges::sort(ranges_);
    size_t kept = 0;
    for (const auto& range : ranges_) {
      if (kept > 0 && range.first <= ranges_[kept - 1].second)
        ranges_[kept - 1].second = std::max(ranges_[kept - 1].second, range.second);
      else
        ranges_[kept++] = range;
    }
    ranges_.resize(kept);
    join_at_ = std::max(kLeast, 2 * kept);
  }

  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  size_t join_at_ = kLeast;
};

}  // namespace atunner::vgpu
