// Which accesses of a block happen before a point of its execution, by the PTX memory model.
//
// Epochs number the events of a block (RaceShadow::epoch); Warp::sync_epoch numbers the intervals
// between warp-level synchronisations of a warp. A barrier of the whole block orders everything
// before it, for which one number is enough. Other synchronisation orders the events of single
// warps, and of single lanes: a lane that arrives at an mbarrier or sets a flag releases its own
// accesses, and those of its warp before the warp's last __syncwarp().
//
//     epoch 5   warp 1 reads s[], lane 0 arrives at an mbarrier        released: lane 0 of warp 1,
//                                                                      epochs < 6
//     epoch 6   warp 0 waits for the mbarrier, and overwrites s[]      what lane 7 of warp 1 read
//     in
//                                                                      epoch 5 is not before that
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace atunner::vgpu {

class HappensBefore {
 public:
  /// Accesses of one warp: those of `lanes` in epochs before `epoch`, and those of all its lanes in
  /// earlier intervals than `sync`.
  struct OfWarp {
    uint32_t warp = 0;
    uint32_t epoch = 0;
    uint32_t sync = 0;
    uint32_t lanes = 0;
  };

  /// All accesses of the block in earlier epochs are included.
  uint32_t all() const { return all_; }
  /// Forgets single warps: a barrier of the whole block.
  void Reset(uint32_t epoch) {
    all_ = epoch;
    warps_.clear();
  }
  void Include(uint32_t epoch) { all_ = std::max(all_, epoch); }
  void Include(const OfWarp& released) {
    const auto old = std::ranges::find(warps_, released.warp, &OfWarp::warp);
    if (old == warps_.end()) {
      warps_.push_back(released);
    } else if (released.sync == old->sync) {
      old->epoch = std::max(old->epoch, released.epoch);
      old->lanes |= released.lanes;
    } else if (released.epoch > old->epoch) {
      *old = released;
    }
  }
  void Include(const HappensBefore& other) {
    Include(other.all_);
    for (const OfWarp& warp : other.warps_) Include(warp);
  }

  bool Has(uint32_t thread, uint32_t epoch, uint32_t sync) const {
    return epoch < all_ || HasPart(thread, epoch, sync);
  }
  /// The same for epochs that are not before all().
  bool HasPart(uint32_t thread, uint32_t epoch, uint32_t sync) const {
    for (const OfWarp& warp : warps_) {
      if (warp.warp == thread / 32)
        return epoch < warp.epoch && (sync != warp.sync || (warp.lanes >> thread % 32 & 1u) != 0);
    }
    return false;
  }
  bool knows_single_warps() const { return !warps_.empty(); }
  /// True if some lanes' accesses of that epoch are included, where the lane is not known.
  bool HasSome(uint32_t warp, uint32_t epoch) const {
    return epoch < all_ ||
           std::ranges::any_of(
               warps_,
               [&](const OfWarp& known) { return known.warp == warp && epoch < known.epoch; });
  }

 private:
  uint32_t all_ = 0;
  std::vector<OfWarp> warps_;
};

}  // namespace atunner::vgpu
