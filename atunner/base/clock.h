// The only source of time. Durations are seconds (double) at this level; device times elsewhere are
// nanoseconds and say so.
#pragma once

#include <atomic>
#include <string>

namespace atunner {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since an arbitrary fixed point; never goes back.
  virtual double Now() const = 0;
  virtual void Sleep(double seconds) = 0;
};

/// The machine's monotonic clock.
Clock& SystemClock();

/// A clock that tests move by hand, from any thread; Sleep advances it.
class ManualClock : public Clock {
 public:
  double Now() const override { return now_; }
  void Sleep(double seconds) override { now_ += seconds; }
  void Advance(double seconds) { now_ += seconds; }

 private:
  std::atomic<double> now_ = 0;
};

/// Wall-clock time as "2026-11-21T01:12:03Z".
std::string UtcTimestamp();

}  // namespace atunner
