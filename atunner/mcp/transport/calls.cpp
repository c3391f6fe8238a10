#include "atunner/mcp/transport/calls.h"

#include <chrono>
#include <utility>

namespace atunner::mcp {

void Calls::ForgetEnded() {
  std::erase_if(running_, [](const std::future<void>& one) {
    return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

bool Calls::TryStart(std::function<void()> work) {
  const std::scoped_lock lock(mutex_);
  ForgetEnded();
  if (running_.size() >= most_) return false;
  running_.push_back(std::async(std::launch::async, std::move(work)));
  return true;
}

void Calls::Start(std::function<void()> work) {
  const std::scoped_lock lock(mutex_);
  ForgetEnded();
  if (running_.size() >= most_) {
    running_.front().wait();
    running_.erase(running_.begin());
  }
  running_.push_back(std::async(std::launch::async, std::move(work)));
}

}  // namespace atunner::mcp
