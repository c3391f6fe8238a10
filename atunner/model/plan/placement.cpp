#include "atunner/model/plan/placement.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

namespace atunner {
namespace {

constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool LiveTogether(const BufferLifetime& a, const BufferLifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// A placed buffer: [begin, end).
struct Placed {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t buffer = 0;
};

/// The lowest offset with room for `bytes`, given the buffers that live at the same time, which are
/// in the order of their offsets.
uint64_t LowestGap(const std::vector<Placed>& neighbours, uint64_t bytes) {
  uint64_t offset = 0;
  for (const Placed& each : neighbours) {
    if (each.begin >= offset && each.begin - offset >= bytes) break;
    offset = std::max(offset, each.end);
  }
  return offset;
}

}  // namespace

Placement PlaceBuffers(std::span<const BufferLifetime> buffers, uint64_t alignment) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t buffer) { return buffers[buffer].bytes; });
  std::vector<Placed> placed;  // in the order of offsets
  Placement result{std::vector<uint64_t>(buffers.size()), 0};
  for (const size_t buffer : order) {
    std::vector<Placed> neighbours;
    std::ranges::copy_if(placed, std::back_inserter(neighbours), [&](const Placed& other) {
      return LiveTogether(buffers[buffer], buffers[other.buffer]);
    });
    const uint64_t bytes = RoundUp(buffers[buffer].bytes, alignment);
    const uint64_t begin = LowestGap(neighbours, bytes);
    const Placed made{begin, begin + bytes, buffer};
    placed.insert(std::ranges::upper_bound(placed, begin, {}, &Placed::begin), made);
    result.offsets[buffer] = begin;
    result.bytes = std::max(result.bytes, made.end);
  }
  return result;
}

uint64_t LeastBytes(std::span<const BufferLifetime> buffers, uint64_t alignment) {
  uint64_t most = 0;
  for (const BufferLifetime& at : buffers) {  // the maximum is reached where some buffer begins
    uint64_t live = 0;
    for (const BufferLifetime& other : buffers) {
      if (other.first <= at.first && at.first <= other.last)
        live += RoundUp(other.bytes, alignment);
    }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace atunner
