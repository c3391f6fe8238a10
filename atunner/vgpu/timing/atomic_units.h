// Where the atomic updates of a launch meet in global memory.
//
// L2 makes the updates of one address one after another. A warp's updates of a sector are one pass
// if its lanes have different addresses, and as many passes as the most lanes that share one. The
// passes of a sector wait for each other, and so do those of a unit of 512 bytes, of which a pass
// of floats takes no longer than one of integers. Other units do not wait. Measured on an H200 with
// 2^20 updates: random ones of 8, 16, 32, 64 and 256 adjacent integers take 170, 196, 237, 305 and
// 272 us (of floats 409, 272, 240, 306 and 272), of one integer 773 us and of one float 1843 us.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace atunner::vgpu {

inline constexpr uint64_t kAtomicUnitBytes = 512;

/// The updates of some blocks, by sector and unit of memory.
class AtomicUnits {
 public:
  /// Passes of a block that runs.
  void Add(uint64_t unit, double passes) {
    const auto known = units_.find(unit);
    if (known == units_.end() && units_.size() >= kMostUnits) return;
    Unit& at = known == units_.end() ? units_[unit] : known->second;
    if (at.last != blocks_) ++at.blocks;
    at.last = blocks_;
    at.own += passes;
    at.scaled += passes;
  }
  void EndBlock() { ++blocks_; }

  AtomicUnits& operator+=(const AtomicUnits& other) {
    for (const auto& [unit, more] : other.units_) {
      Unit& at = units_[unit];
      at.blocks += more.blocks;
      at.own += more.own;
      at.scaled += more.scaled;
    }
    return *this;
  }
  /// The blocks stand for so many times as many.
  void Scale(double times) {
    for (auto& [unit, at] : units_) at.scaled *= times;
  }

  /// The most passes of a unit: those that several blocks share count `scale` times, others once.
  double MostPasses(double scale) const {
    double most = 0;
    for (const auto& [unit, at] : units_)
      most = std::max(most, at.blocks > 1 ? scale * at.scaled : at.own);
    return most;
  }

 private:
  static constexpr size_t kMostUnits = 4096;  // spread over so many, updates hardly meet
  struct Unit {
    double own = 0;     ///< passes of the blocks that were executed
    double scaled = 0;  ///< passes of the blocks that they stand for
    uint32_t blocks = 0;
    uint64_t last = ~uint64_t{0};  ///< the latest block
  };
  std::unordered_map<uint64_t, Unit> units_;
  uint64_t blocks_ = 0;
};

}  // namespace atunner::vgpu
