// Progress of a cooperative grid whose blocks several host threads run. Blocks wait for blocks of
// other threads by polling memory. A host thread whose blocks only poll sleeps until another thread
// makes progress.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace atunner::vgpu {

class GridProgress {
 public:
  explicit GridProgress(uint32_t members) : running_(members) {}

  /// A thread has executed something for which others may wait.
  void NoteProgress() {
    const std::lock_guard lock(mutex_);
    idle_rounds_ = 0;
    Wake();
  }
  uint64_t steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  /// Sleeps until another thread has made progress since `steps`. If all threads sleep, all are
  /// woken to poll once more.
  void Sleep(uint64_t steps) {
    std::unique_lock lock(mutex_);
    if (steps_ != steps) return;
    if (++sleeping_ >= running_) {
      ++idle_rounds_;
      return Wake();
    }
    changed_.wait(lock, [&] { return steps_ != steps; });
  }
  /// True if all threads have polled without progress for so long that they wait for ever.
  bool deadlocked() const {
    const std::lock_guard lock(mutex_);
    return idle_rounds_ > kMaxIdleRounds;
  }
  /// A thread's blocks have ended. If not `completed`, the other threads stop as well.
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
  static constexpr uint64_t kMaxIdleRounds = 1u << 14;

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
  uint64_t idle_rounds_ = 0;
  bool stopped_ = false;
};

}  // namespace atunner::vgpu
