#include "atunner/planning/memory/greedy_placement.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace atunner::planning {
namespace {

/// A placed buffer; kept in the order of offsets.
struct Placed {
  int64_t offset, end;
  int64_t begin_time, end_time;
};

int64_t OffsetFor(const Buffer& buffer, const std::vector<Placed>& placed, Fit fit) {
  int64_t free_from = 0, best = -1;
  int64_t best_size = std::numeric_limits<int64_t>::max();
  for (const Placed& other : placed) {
    if (other.begin_time >= buffer.end || other.end_time <= buffer.begin) continue;
    const int64_t gap = other.offset - free_from;
    if (gap >= buffer.size && gap < best_size) {
      if (fit == Fit::kFirst) return free_from;
      best = free_from;
      best_size = gap;
    }
    free_from = std::max(free_from, other.end);
  }
  return best >= 0 ? best : free_from;
}

std::vector<uint32_t> SortedBy(const std::vector<Buffer>& buffers,
                               const std::function<double(const Buffer&)>& key) {
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t i) { return key(buffers[i]); });
  return order;
}

}  // namespace

Placement PlaceInOrder(const std::vector<Buffer>& buffers, const std::vector<uint32_t>& order,
                       Fit fit) {
  Placement result{std::vector<int64_t>(buffers.size(), 0), 0};
  std::vector<Placed> placed;
  placed.reserve(buffers.size());
  for (const uint32_t i : order) {
    const Buffer& buffer = buffers[i];
    if (buffer.size == 0) continue;
    const int64_t offset = OffsetFor(buffer, placed, fit);
    const Placed one{offset, offset + buffer.size, buffer.begin, buffer.end};
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), one);
    result.offsets[i] = offset;
    result.peak = std::max(result.peak, one.end);
  }
  return result;
}

std::vector<std::vector<uint32_t>> GreedyOrders(const std::vector<Buffer>& buffers) {
  const auto size = [](const Buffer& b) { return static_cast<double>(b.size); };
  const auto length = [](const Buffer& b) {
    return static_cast<double>(b.end) - static_cast<double>(b.begin);
  };
  return {SortedBy(buffers, size),
          SortedBy(buffers, length),
          SortedBy(buffers, [&](const Buffer& b) { return size(b) * length(b); }),
          SortedBy(buffers, [&](const Buffer& b) { return size(b) * size(b) * length(b); }),
          SortedBy(buffers, [&](const Buffer& b) { return size(b) * length(b) * length(b); }),
          SortedBy(buffers, [](const Buffer& b) { return -static_cast<double>(b.begin); }),
          SortedBy(buffers, [](const Buffer& b) { return static_cast<double>(b.end); })};
}

}  // namespace atunner::planning
