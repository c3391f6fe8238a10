#include "atunner/tune/compile_ahead.h"

#include <algorithm>
#include <chrono>

namespace atunner {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kPoll{0.001};

bool IsReady(const std::future<Compiled>& one) {
  return one.wait_for(Seconds(0)) == std::future_status::ready;
}

}  // namespace

CompileAhead::~CompileAhead() { stop_.request_stop(); }

void CompileAhead::Submit(Candidate candidate) {
  ahead_.push_back(std::async(
      std::launch::async,
      [this, one = std::move(candidate), stop = stop_.get_token()] { return work_(one, stop); }));
}

size_t CompileAhead::ready() const {
  return static_cast<size_t>(std::ranges::count_if(ahead_, IsReady));
}

std::optional<Compiled> CompileAhead::Take(const std::function<bool()>& give_up,
                                           double timeout_seconds) {
  const auto deadline = std::chrono::steady_clock::now() + Seconds(timeout_seconds);
  auto ready = ahead_.begin();
  while (!IsReady(*ready)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      ready = std::ranges::find_if(ahead_, IsReady);
      if (ready != ahead_.end()) break;
      ready = ahead_.begin();
    }
    if (give_up()) return std::nullopt;
    ready->wait_for(kPoll);
  }
  Compiled compiled = ready->get();
  ahead_.erase(ready);
  return compiled;
}

}  // namespace atunner
