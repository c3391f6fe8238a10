#include "atunner/planning/memory/order_search.h"

#include <algorithm>

#include "atunner/base/random.h"
#include "atunner/planning/memory/greedy_placement.h"

namespace atunner::planning {
namespace {

/// Positions in the order of buffers that end at the peak.
std::vector<size_t> Blamed(const std::vector<Buffer>& buffers, const std::vector<uint32_t>& order,
                           const Placement& placement) {
  std::vector<size_t> blamed;
  for (size_t at = 0; at < order.size(); ++at)
    if (placement.offsets[order[at]] + buffers[order[at]].size == placement.peak)
      blamed.push_back(at);
  return blamed;
}

void MoveForward(std::vector<uint32_t>& order, size_t from, size_t to) {
  std::rotate(order.begin() + static_cast<ptrdiff_t>(to),
              order.begin() + static_cast<ptrdiff_t>(from),
              order.begin() + static_cast<ptrdiff_t>(from) + 1);
}

}  // namespace

Placement ImproveOrder(const std::vector<Buffer>& buffers, std::vector<uint32_t> order,
                       int64_t bound, uint64_t rounds, uint64_t seed, const StopFunction& stop) {
  Random random(seed);
  Placement best = PlaceInOrder(buffers, order, Fit::kBest);
  for (uint64_t round = 0; round < rounds && best.peak > bound && !stop(); ++round) {
    std::vector<uint32_t> next = order;
    const std::vector<size_t> blamed = Blamed(buffers, order, best);
    if (blamed.empty()) break;
    const size_t from = blamed[random.Below(blamed.size())];
    MoveForward(next, from, random.Below(from + 1));
    if (random.Below(4) == 0)
      std::swap(next[random.Below(next.size())], next[random.Below(next.size())]);
    const Fit fit = random.Below(4) == 0 ? Fit::kFirst : Fit::kBest;
    Placement placement = PlaceInOrder(buffers, next, fit);
    if (placement.peak > best.peak) continue;
    best = std::move(placement);
    order = std::move(next);
  }
  return best;
}

}  // namespace atunner::planning
