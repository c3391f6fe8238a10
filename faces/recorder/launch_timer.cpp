#include "faces/recorder/launch_timer.h"

#include <utility>

namespace atunner::recorder {

void LaunchTimer::Occupy(Stream stream) {
  constexpr size_t kBytes = size_t{16} << 20;  // about five microseconds on an H100
  constexpr int kTimes = 4;
  if (driver_.cuMemAlloc_v2 == nullptr || driver_.cuMemsetD8Async == nullptr ||
      driver_.cuStreamQuery == nullptr || driver_.cuStreamQuery(stream) != cuda::kSuccess)
    return;
  if (scratch_ == 0 && driver_.cuMemAlloc_v2(&scratch_, kBytes) != cuda::kSuccess) {
    scratch_ = 0;
    return;
  }
  for (int i = 0; i < kTimes; ++i) driver_.cuMemsetD8Async(scratch_, 0, kBytes, stream);
}

std::optional<size_t> LaunchTimer::Begin(Stream stream) {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    Pair& pair = pairs_[i];
    if (pair.state != State::kFree) continue;
    if (pair.begin == nullptr && (driver_.cuEventCreate(&pair.begin, 0) != cuda::kSuccess ||
                                  driver_.cuEventCreate(&pair.end, 0) != cuda::kSuccess)) {
      pair = {};
      return std::nullopt;
    }
    if (driver_.cuEventRecord(pair.begin, stream) != cuda::kSuccess) return std::nullopt;
    pair.state = State::kBegun;
    return i;
  }
  return std::nullopt;
}

void LaunchTimer::End(size_t index, Stream stream, const capture::LaunchFacts* facts) {
  Pair& pair = pairs_[index];
  if (driver_.cuEventRecord(pair.end, stream) != cuda::kSuccess) {
    pair.state = State::kFree;
    return;
  }
  pair.state = State::kEnded;
  if (facts != nullptr) pair.facts = *facts;
}

double LaunchTimer::Take(size_t index) {
  Pair& pair = pairs_[index];
  float milliseconds = 0;
  const bool known = pair.state == State::kEnded &&
                     driver_.cuEventElapsedTime(&milliseconds, pair.begin, pair.end) ==
                         cuda::kSuccess;
  pair.state = State::kFree;
  pair.facts.reset();
  return known ? static_cast<double>(milliseconds) / 1e3 : 0;
}

void LaunchTimer::Collect(const std::function<void(const capture::LaunchFacts&, double)>& add) {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    Pair& pair = pairs_[i];
    if (!pair.facts || driver_.cuEventQuery(pair.end) != cuda::kSuccess) continue;
    const capture::LaunchFacts facts = *std::move(pair.facts);
    if (const double seconds = Take(i); seconds > 0) add(facts, seconds);
  }
}

}  // namespace atunner::recorder
