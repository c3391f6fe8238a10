// Times launches by events in the program's stream, without waiting for them.
//
// If the stream is empty, the time between the two events holds several microseconds in which the
// GPU waits for the host. Occupy prevents that.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "atunner/capture/recording.h"
#include "faces/recorder/driver.h"

namespace atunner::recorder {

class LaunchTimer {
 public:
  explicit LaunchTimer(const Driver& driver) : driver_(driver) {}

  /// If the stream has no work: fills 16 MiB of its own for some twenty microseconds, so that what
  /// follows is there before the GPU gets to it.
  void Occupy(Stream stream);
  /// Index of a pair of events whose first one is recorded; nullopt if all are in use.
  std::optional<size_t> Begin(Stream stream);
  /// Records the second one. `facts` come back from Collect; nullptr: they do not.
  void End(size_t pair, Stream stream, const capture::LaunchFacts* facts);
  /// Seconds of a pair whose launch has ended; 0 if it is not known. The pair is free again.
  double Take(size_t pair);
  /// Calls `add` for every timed launch that has ended.
  void Collect(const std::function<void(const capture::LaunchFacts&, double)>& add);
  /// The events are gone: the program has reset the device.
  void Forget() {
    pairs_ = {};
    scratch_ = 0;
  }

 private:
  enum class State { kFree, kBegun, kEnded };
  struct Pair {
    State state = State::kFree;
    Event begin = nullptr, end = nullptr;
    std::optional<capture::LaunchFacts> facts;
  };

  const Driver& driver_;
  std::array<Pair, 64> pairs_;
  DevicePointer scratch_ = 0;
};

}  // namespace atunner::recorder
