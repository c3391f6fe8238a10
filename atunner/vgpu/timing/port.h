// A unit that serves one request after the other: a tensor core, or the path from L2 into an SM.
// Warps are simulated one after the other, so that a later request may have an earlier time: it
// takes the first free interval after that time.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace atunner::vgpu {

/// Cycles in the two runs of a timeline: with loads that miss L1 served by L2, and by DRAM.
using Moment = std::array<double, 2>;

class Port {
 public:
  /// When `cycles` of work that may begin at `from` are done.
  Moment Take(const Moment& from, double cycles) {
    return {Take(busy_[0], from[0], cycles), Take(busy_[1], from[1], cycles)};
  }

  /// Cycles of work that are still to be done then.
  Moment Backlog(const Moment& at) const {
    return {Backlog(busy_[0], at[0]), Backlog(busy_[1], at[1])};
  }

 private:
  using Intervals = std::vector<std::pair<double, double>>;  ///< busy intervals of time, in order

  static double Take(Intervals& busy, double from, double cycles) {
    auto first = busy.end();  // first interval that the new one touches
    while (first != busy.begin() && std::prev(first)->second >= from) --first;
    auto last = first;
    std::pair<double, double> all{from, from};
    for (; last != busy.end() && last->first < all.second + cycles; ++last) {
      cycles -= std::max(0.0, last->first - all.second);
      all = {std::min(all.first, last->first), std::max(all.second, last->second)};
    }
    all.second += cycles;
    busy.insert(busy.erase(first, last), all);
    return all.second;
  }

  static double Backlog(const Intervals& busy, double at) {
    double work = 0;
    for (auto interval = busy.rbegin(); interval != busy.rend() && interval->second > at;
         ++interval)
      work += interval->second - std::max(at, interval->first);
    return work;
  }

  std::array<Intervals, 2> busy_;
};

}  // namespace atunner::vgpu
