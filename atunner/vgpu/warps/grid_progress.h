// Threads of the host that run the blocks of one cooperative grid, each a part of them. Blocks wait
// for those of other threads by looking at memory; a thread whose blocks all do nothing else sleeps
// until another one gets on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace atunner::vgpu {

class GridProgress {
 public:
  explicit GridProgress(uint32_t members) : running_(members) {}

  /// A member has run something that others may wait for.
  void GetOn() {
    const std::lock_guard lock(mutex_);
    vain_rounds_ = 0;
    Wake();
  }
  uint64_t steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  /// Sleeps until somebody got on since `steps`. Where all sleep nobody will: then they all look
  /// once more.
  void Sleep(uint64_t steps) {
    std::unique_lock lock(mutex_);
    if (steps_ != steps) return;
    if (++sleeping_ >= running_) {
      ++vain_rounds_;
      return Wake();
    }
    changed_.wait(lock, [&] { return steps_ != steps; });
  }
  /// All have looked in vain for so long that they wait for ever.
  bool hopeless() const {
    const std::lock_guard lock(mutex_);
    return vain_rounds_ > kMostVainRounds;
  }
  /// A member's blocks have ended. `completed`: as they should; otherwise the others end as well.
  void Leave(bool completed) {
    const std::lock_guard lock(mutex_);
    stopped_ |= !completed;
    --running_;
    Wake();
  }
  bool stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

 private:
  static constexpr uint64_t kMostVainRounds = 1u << 14;

  void Wake() {
    ++steps_;
    sleeping_ = 0;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t running_;
  uint32_t sleeping_ = 0;
  uint64_t steps_ = 0;
  uint64_t vain_rounds_ = 0;
  bool stopped_ = false;
};

}  // namespace atunner::vgpu
