// The only place that times. Order of every sample: fresh inputs, poisoned outputs, L2 emptied by
// writes, start event, the kernel's steps, end event, fingerprint of the outputs. Nothing but the
// steps lies between the events.
//
// Afterwards a burst of launches follows on the same module and workspaces, and one more sample,
// untimed. A fresh module with renewed workspaces must reproduce that sample and some of the timed
// ones, drawn at random.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atunner/base/clock.h"
#include "atunner/device/device.h"
#include "atunner/device/range_profiler.h"
#include "atunner/measure/statistics.h"
#include "atunner/model/trial/performance.h"
#include "atunner/model/trial/verdict.h"
#include "atunner/verify/launch/poison.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// A kernel under test: something that can be enqueued into the stream, either a verified candidate
/// or a vendor library's call.
class TimedKernel {
 public:
  virtual ~TimedKernel() = default;
  /// Work before each run that is not timed.
  virtual Status Prepare(const TaskBuffers&) { return {}; }
  virtual LaunchOutcome Enqueue(const TaskBuffers& buffers) = 0;
  /// Kernels that Enqueue starts. kUnsupported where that is not known.
  virtual Result<size_t> Launches(const TaskBuffers&) {
    return Fail(ErrorCode::kUnsupported, "the launches of a library are not known");
  }
  /// Loads a fresh module and renews workspaces, so that nothing computed earlier can be
  /// remembered.
  virtual Status Renew() = 0;
};

/// The launches of a candidate. Only a VerifiedKernel, i.e. a proof, can be timed.
Result<std::unique_ptr<TimedKernel>> MakeTimedKernel(TimedDevice& device, Verifier& verifier,
                                                     const VerifiedKernel& verified);

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

  Result<TimingResult> Time(TimedKernel& kernel, const HarnessOptions& options);
  /// Joules of one run of a kernel that takes about `time_ns`, the whole board's: from NVML's
  /// counter while the kernel runs back to back for 0.4 s and more, inputs as drawn once, caches
  /// as the run before left them. kUnsupported where nothing is counted.
  Result<double> EnergyOfRun(TimedKernel& kernel, double time_ns, uint64_t seed);
  /// The GPU's counters of each launch of a run. Each pass gets the same fresh inputs, poisoned
  /// outputs and an empty L2, as a timed sample does.
  Result<MetricValues> Count(TimedKernel& kernel, std::span<const std::string> metrics,
                             uint64_t seed);
  /// A B B A …: `pairs` pairs of samples on equal inputs; after 3 s no further one, once there are
  /// five.
  Result<Comparison> Compare(TimedKernel& baseline, TimedKernel& candidate, int pairs,
                             uint64_t seed);

 private:
  Harness(TimedDevice& device, Verifier& verifier, Clock& clock, double wake_seconds)
      : device_(device), verifier_(verifier), clock_(clock), wake_seconds_(wake_seconds) {}
  struct Sample {
    double ns = 0;
    std::vector<uint64_t> fingerprint;
    LaunchOutcome outcome;
    Poison poison;  ///< of the outputs before the run
  };
  /// Runs until the energy counter moves on; adds to `launches`. The counter's new value.
  Result<double> RunToTick(TimedKernel& kernel, const TaskBuffers& buffers, double time_ns,
                           int64_t& launches);
  /// Inputs, outputs and L2 of a sample, as it finds them.
  Status PrepareRun(TimedKernel& kernel, const TaskBuffers& buffers, const InputInstance& instance,
                    const Poison& poison);
  Result<Sample> TakeSample(TimedKernel& kernel, const InputInstance& instance, uint32_t slot,
                            const Poison& poison);
  struct WarmUp {
    int samples = 0;
    LaunchOutcome outcome;
  };
  /// `least` samples that are not counted, and more while the device wakes up.
  Result<WarmUp> Warm(TimedKernel& kernel, int least, uint64_t seed);
  Result<std::vector<uint64_t>> ReadFingerprints(const TaskBuffers& buffers);
  /// Enqueues the fingerprint kernel of every output; the partial sums go to slots_.
  Status EnqueueFingerprints(const TaskBuffers& buffers);
  /// Samples until the stop rule (whose time counts from `begin`, s) or the race ends them. The
  /// reason to stop; empty if a run failed, and `result` then has the verdict.
  Result<std::string> TakeSamples(TimedKernel& kernel, const HarnessOptions& options, double begin,
                                  std::vector<Sample>& samples, TimingResult& result);
  /// Launches the kernel many times without a pause, then takes the sample with number `i`.
  Result<Sample> SampleAfterBurst(TimedKernel& kernel, double time_ns, uint64_t seed, size_t i);
  /// The fingerprint of outputs that hold the poison and nothing else.
  Result<std::vector<uint64_t>> FingerprintOfPoison(TimedKernel& kernel,
                                                    const InputInstance& instance, uint32_t slot,
                                                    const Poison& poison);
  /// Repeats the last sample and some others on a fresh module. kStaleResult if an output differs:
  /// the earlier run replayed a result, or stopped working after so many launches.
  Result<Verdict> CheckFresh(TimedKernel& kernel, const std::vector<Sample>& samples,
                             uint64_t seed);
  /// Time of one run on the i-th inputs, ns.
  Result<double> PairedNs(TimedKernel& kernel, uint64_t seed, size_t i);
  Measurement Summarise(const std::vector<Sample>& samples, uint64_t seed,
                        const std::string& reason);

  TimedDevice& device_;
  Verifier& verifier_;
  Clock& clock_;  ///< for time limits; kernels are timed by the device's events
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
