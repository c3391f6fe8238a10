// Threads of the host that run the blocks of one cooperative grid, each a part of them. Blocks wait for those of other
// threads by looking at memory; a thread whose blocks all do nothing else sleeps until another one gets on.
#pragma once

#include <atomic>
#include <cstdint>

namespace atunner::vgpu {

class Company {
 public:
  explicit Company(uint32_t members) : running_(members) {}

  /// A member has run something that others may wait for.
  void GetOn() {
    steps_.fetch_add(1);
    steps_.notify_all();
  }
  uint32_t steps() const { return steps_.load(); }
  /// Sleeps until somebody got on since `steps`. Where all sleep nobody will: then they all go round once more, so that
  /// endless waiting uses up its budget.
  void Sleep(uint32_t steps) {
    if (sleeping_.fetch_add(1) + 1 >= running_.load())
      GetOn();
    else
      steps_.wait(steps);
    sleeping_.fetch_sub(1);
  }
  /// A member's blocks have ended. `completed`: as they should; otherwise the others end as well.
  void Leave(bool completed) {
    if (!completed) stopped_ = true;
    running_.fetch_sub(1);
    GetOn();
  }
  bool stopped() const { return stopped_; }

 private:
  std::atomic<uint32_t> running_;
  std::atomic<uint32_t> sleeping_{0};
  std::atomic<uint32_t> steps_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace atunner::vgpu
