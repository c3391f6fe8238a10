// Time spent in a scope.
#pragma once

#include "atunner/base/clock.h"

namespace atunner {

/// Adds its lifetime to `seconds`.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), start_(clock.Now()) {}
  ~Stopwatch() { seconds_ += clock_.Now() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  double& seconds_;
  double start_;
};

}  // namespace atunner
