// Calls that run, each on a thread of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <vector>

namespace atunner::mcp {

/// Thread-safe. Its destructor waits for every call.
class Calls {
 public:
  explicit Calls(size_t most) : most_(most) {}

  /// Runs `work`. False where as many as allowed are running already.
  bool TryStart(std::function<void()> work);
  /// Waits for one of the running calls first, where there are as many as allowed.
  void Start(std::function<void()> work);

 private:
  void ForgetEnded();

  size_t most_;
  std::mutex mutex_;
  std::vector<std::future<void>> running_;
};

}  // namespace atunner::mcp
