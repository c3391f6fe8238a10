// The only place that times. Order of every sample: fresh inputs, poisoned outputs, L2 emptied by
// writes, start event, the kernel's steps, end event, fingerprint of the outputs. Nothing but the
// steps lies between the events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/device/device.h"
#include "atunner/measure/statistics.h"
#include "atunner/model/trial/performance.h"
#include "atunner/model/trial/verdict.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// Something that can be put into the stream: a verified kernel, or a vendor library's call.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Whatever must happen before each run and outside the timed window.
  virtual Status Prepare(const TaskBuffers&) { return {}; }
  virtual LaunchOutcome Enqueue(const TaskBuffers& buffers) = 0;
  /// Back to a state in which nothing computed earlier can be remembered (a fresh module).
  virtual Status Renew() = 0;
};

/// A verified kernel's launches. The proof is the only way in.
Result<std::unique_ptr<Subject>> MakeSubject(TimedDevice& device, Verifier& verifier,
                                             const VerifiedKernel& kernel);

struct HarnessOptions {
  StopRule stop;
  int warmups = 2;
  uint64_t seed = 1;
  std::optional<double> incumbent_ns;  ///< race against this median
  /// Replay samples on a fresh module and compare fingerprints
  bool check_stale = true;
};

struct TimingResult {
  Verdict verdict;  ///< not correct when a timed output was not what a fresh module computes
  std::optional<Measurement> measurement;
  bool raced_out = false;
};

class Harness {
 public:
  /// A device that has idled is not at once as fast as it gets, whatever clocks it reports: on an
  /// H200 the rows of a cross-entropy took 236 us for 40 to 105 ms of samples and 210 from then on,
  /// also after pauses of 80 ms, and 236 again after one of 500. So it is kept at work for
  /// `wake_seconds` before samples count.
  static Result<std::unique_ptr<Harness>> Make(TimedDevice& device, Verifier& verifier,
                                               Clock& clock = SystemClock(),
                                               double wake_seconds = 0.15);

  Result<TimingResult> Time(Subject& subject, const HarnessOptions& options);
  /// Joules of one run of a subject that takes about `time_ns`, the whole board's: from NVML's
  /// counter while the subject runs back to back for 0.4 s and more, inputs as drawn once, caches
  /// as the run before left them. kUnsupported where nothing is counted.
  Result<double> EnergyOfRun(Subject& subject, double time_ns, uint64_t seed);
  /// A B B A …: `pairs` pairs of samples on equal inputs; after 3 s no further one, once there are
  /// five.
  Result<Comparison> Compare(Subject& baseline, Subject& candidate, int pairs, uint64_t seed);

 private:
  Harness(TimedDevice& device, Verifier& verifier, Clock& clock, double wake_seconds)
      : device_(device), verifier_(verifier), clock_(clock), wake_seconds_(wake_seconds) {}
  struct Sample {
    double ns = 0;
    std::vector<uint64_t> fingerprint;
    LaunchOutcome outcome;
  };
  /// Runs until the energy counter moves on; adds to `launches`. The counter's new value.
  Result<double> RunToTick(Subject& subject, const TaskBuffers& buffers, double time_ns,
                           int64_t& launches);
  Result<Sample> TakeSample(Subject& subject, const InputInstance& instance, uint32_t slot);
  struct WarmUp {
    int samples = 0;
    LaunchOutcome outcome;
  };
  /// `least` samples that are not counted, and more while the device wakes up.
  Result<WarmUp> Warm(Subject& subject, int least, uint64_t seed);
  Result<std::vector<uint64_t>> ReadFingerprints(const TaskBuffers& buffers);
  Result<Verdict> CheckFresh(Subject& subject, const std::vector<Sample>& samples, uint64_t seed);
  Measurement Summarise(const std::vector<Sample>& samples, uint64_t seed,
                        const std::string& reason);

  TimedDevice& device_;
  Verifier& verifier_;
  Clock& clock_;  ///< for how long there is patience; kernels are timed by the device's events
  double wake_seconds_;
  double worked_at_ = -1e9;  ///< when the last sample ended, s
  std::unique_ptr<Buffer> flush_;
  std::unique_ptr<Buffer> slots_;
  std::unique_ptr<Event> start_;
  std::unique_ptr<Event> end_;
};

/// Shortest time physics allows for the task on the device, ns: DRAM traffic that no cache can
/// absorb, or arithmetic at peak.
double PhysicalFloorNs(const KernelSpec& spec, const DeviceProfile& profile);

}  // namespace atunner
