// What serves one request after the other: a tensor core, the way from L2 into an SM. Warps run in
// the host's order, so that a later request may come from an earlier time: it takes what is free
// then.
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
  using Stretches = std::vector<std::pair<double, double>>;  ///< of time, in order

  static double Take(Stretches& busy, double from, double cycles) {
    auto first = busy.end();  // of the stretches that the work touches
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

  static double Backlog(const Stretches& busy, double at) {
    double work = 0;
    for (auto stretch = busy.rbegin(); stretch != busy.rend() && stretch->second > at; ++stretch)
      work += stretch->second - std::max(at, stretch->first);
    return work;
  }

  std::array<Stretches, 2> busy_;
};

}  // namespace atunner::vgpu
