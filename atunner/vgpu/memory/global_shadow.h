// Shadow of global memory for the checks: which bytes were written, and the latest accesses to each
// word. An allocation's shadow is reserved with it and takes memory only where the allocation is
// accessed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "atunner/vgpu/memory/happens_before.h"

namespace atunner::vgpu {

/// The last writer of a 32-bit word. Blocks are known by serials, which differ from launch to
/// launch.
struct WordWriter {
  uint32_t serial = 0;  ///< 0 = no writer, or several that wrote the same value
  uint32_t epoch = 0;   ///< RaceShadow::epoch of the block
  uint32_t sync = 0;    ///< Warp::sync_epoch
  uint32_t thread : 10 = 0;
  /// Which bytes of the word it wrote; 0 = what was there already, which races with atomics only
  uint32_t bytes : 4 = 0;
  uint32_t op : 18 = 0;  ///< index of the operation, kUnknownOp = beyond
};
constexpr uint32_t kUnknownOp = (1u << 18) - 1;
static_assert(sizeof(WordWriter) == 16);

/// The last strong write of a 32-bit word: by an atomic, or by a volatile, relaxed or releasing
/// store.
struct StrongWriter {
  uint32_t serial = 0;
  uint32_t epoch = 0;
  uint32_t sync = 0;
  uint32_t observer = 0;  ///< the last block that read it by a strong access; 0 = none
  uint64_t released = 0;  ///< RaceClock time up to which a thread that reads it acquires
  uint32_t thread : 10 = 0;
  uint32_t several : 1 = 0;   ///< threads of the block, and not known to each other
  uint32_t of_block : 1 = 0;  ///< of block scope (.cta)
  uint32_t op : 18 = 0;       ///< as WordWriter::op
};
static_assert(sizeof(StrongWriter) == 32);

/// One instruction of a warp on words of a 128-byte line.
struct LineAccess {
  static constexpr int16_t kIrregular = INT16_MIN;
  uint32_t serial = 0;
  uint32_t epoch = 0;
  uint32_t sync = 0;
  uint32_t words = 0;  ///< one bit per word of the line
  uint32_t op = 0;
  /// Word of the line that lane 0 accesses; kIrregular = lanes are not side by side
  int16_t origin = kIrregular;
  uint8_t warp = 0;
  uint8_t words_per_lane = 0;  ///< as a power of two

  bool SameThreads(const LineAccess& other) const {
    return warp == other.warp && origin == other.origin && words_per_lane == other.words_per_lane &&
           origin != kIrregular;
  }
};

/// The part of a line's shadow that every access reads. It is small, because it shares the host's
/// caches with the data.
struct ShadowLine {
  LineAccess last;            ///< read
  uint32_t write_serial = 0;  ///< the last block that wrote to the line
  /// Words that are known to be written completely; for others see GlobalShadow::defined
  uint32_t defined = 0;
};
static_assert(sizeof(ShadowLine) == 32);

/// The part of a line's shadow that is read only if the line was written in this launch.
struct LineWrites {
  LineAccess writer;  ///< the common writer of its words, in place of their WordWriters
  uint32_t epoch = 0;
  uint32_t several = 0;  ///< first serial of the launch in which several blocks wrote to the line
  uint32_t words = 0;    ///< that ShadowLine::write_serial wrote since the block's last barrier
  uint32_t strong = 0;   ///< first serial of the launch in which strong writes changed the line
};

constexpr uint64_t kShadowLineBytes = 128;

/// The shadow of one allocation.
struct GlobalShadow {
  uint64_t base = 0;
  uint8_t* defined = nullptr;  ///< one per byte: 0 = never written
  WordWriter* writers = nullptr;
  StrongWriter* strong = nullptr;  ///< per word
  ShadowLine* lines = nullptr;
  LineWrites* writes = nullptr;  ///< per line
  /// Per line: the last read of another block than ShadowLine::last
  LineAccess* foreign = nullptr;
  mutable bool complete = false;  ///< the host has written all of it: no check is needed
};

/// Logical time of a launch, which orders its blocks. A fence of device scope releases what happens
/// before it. A flag that is written after the fence carries its time: a block that reads the flag
/// is ordered after what fences up to that time released.
class RaceClock {
 public:
  /// A fence of a block by a thread, which executed it in `epoch` and `sync`; kWholeBlock = by a
  /// barrier.
  struct Fence {
    uint64_t time = 0;
    uint32_t thread = 0;
    uint32_t epoch = 0;
    uint32_t sync = 0;
    HappensBefore released;
  };
  static constexpr uint32_t kWholeBlock = ~uint32_t{0};

  void Add(uint32_t serial, Fence fence) {
    const std::lock_guard lock(mutex_);
    fence.time = ++now_;
    fences_[serial].push_back(std::move(fence));
  }
  uint64_t Now() const { return now_.load(std::memory_order_relaxed); }
  /// True if a fence of the block up to `time` releases an access by a thread.
  bool Ordered(uint32_t serial, uint32_t thread, uint32_t epoch, uint32_t sync,
               uint64_t time) const;
  /// The time of the block's last fence that is before a point of one of its warps; 0 = none.
  uint64_t LastFence(uint32_t serial, uint32_t warp, const HappensBefore& before) const;

 private:
  mutable std::mutex mutex_;
  std::atomic<uint64_t> now_{1};
  std::unordered_map<uint32_t, std::vector<Fence>> fences_;  ///< by serial, in order of time
};

/// Guards the shadow where blocks run on several threads of the host: one lock for many lines.
class ShadowLocks {
 public:
  std::atomic_flag& Of(uint64_t address) { return flags_[address / 4096 % flags_.size()]; }

 private:
  std::array<std::atomic_flag, 1024> flags_{};
};

}  // namespace atunner::vgpu
