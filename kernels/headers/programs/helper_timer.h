// Stop watches of CUDA's sample programs, in milliseconds.
#pragma once
#include <chrono>

class StopWatchInterface {
 public:
  void start() { begun_ = Clock::now(), running_ = true; }
  void stop() { total_ += Elapsed(), ++sessions_, running_ = false; }
  void reset() { total_ = 0, sessions_ = 0, begun_ = Clock::now(); }
  float getTime() const { return total_ + (running_ ? Elapsed() : 0.f); }
  float getAverageTime() const { return sessions_ > 0 ? total_ / sessions_ : 0.f; }

 private:
  using Clock = std::chrono::steady_clock;
  float Elapsed() const {
    return std::chrono::duration<float, std::milli>(Clock::now() - begun_).count();
  }
  Clock::time_point begun_ = Clock::now();
  float total_ = 0;
  int sessions_ = 0;
  bool running_ = false;
};

inline bool sdkCreateTimer(StopWatchInterface** timer) {
  *timer = new StopWatchInterface;
  return true;
}
inline bool sdkDeleteTimer(StopWatchInterface** timer) {
  delete *timer;
  *timer = nullptr;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface** timer) { return (*timer)->start(), true; }
inline bool sdkStopTimer(StopWatchInterface** timer) { return (*timer)->stop(), true; }
inline bool sdkResetTimer(StopWatchInterface** timer) { return (*timer)->reset(), true; }
inline float sdkGetTimerValue(StopWatchInterface** timer) { return (*timer)->getTime(); }
inline float sdkGetAverageTimerValue(StopWatchInterface** timer) {
  return (*timer)->getAverageTime();
}
