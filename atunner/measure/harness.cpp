#include "atunner/measure/harness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "atunner/base/random.h"

namespace atunner {
namespace {

// between two looks at the energy counter, which take some milliseconds
constexpr double kEnergyBatchNs = 1e7;
// the counter moves every tenth of a second: a batch too many matters little
constexpr double kEnergyLeastNs = 4e8;
constexpr double kEnergyPatienceNs = 1e9;  // in which a counter that counts has moved
constexpr double kLongNs = 1e8;            // one such warm-up is enough
constexpr double kIdleSeconds = 0.1;       // a device that has not worked for longer is asleep
// also of kernels for which kPairingSeconds are too short
constexpr int kLeastPairs = 5;
constexpr double kPairingSeconds = 3;
constexpr size_t kReplayedSamples = 4;  // timed outputs that a fresh module must reproduce

/// The steps of a verified kernel, bound once per set of buffers.
class KernelSubject : public Subject {
 public:
  KernelSubject(TimedDevice& device, Verifier& verifier,
                std::shared_ptr<const CandidateKernel> kernel)
      : device_(device), verifier_(verifier), kernel_(std::move(kernel)) {}

  LaunchOutcome Enqueue(const TaskBuffers& buffers) override {
    auto plan = PlanFor(buffers);
    if (!plan) return {LaunchOutcome::Kind::kRefused, plan.error().ToString(), {}, 0};
    for (const BoundStep& step : (*plan)->steps) {
      LaunchOutcome outcome = device_.Enqueue(*module_, step.entry, step.shape, step.args);
      if (!outcome.completed()) return outcome;
    }
    return {};
  }

  /// Symbols take their contents from the buffers just drawn.
  Status Prepare(const TaskBuffers& buffers) override {
    ATUNNER_TRY(const BoundPlan* plan, PlanFor(buffers));
    return CopySymbols(device_, *module_, *plan);
  }

  Status Renew() override {
    ATUNNER_TRY(module_, device_.Load(kernel_->module));
    return {};
  }

 private:
  Result<const BoundPlan*> PlanFor(const TaskBuffers& buffers) {
    const auto found = plans_.find(&buffers);
    if (found == plans_.end()) {
      ATUNNER_TRY(BoundPlan plan, BindPlan(device_, kernel_->plan, verifier_.spec(), buffers));
      plans_[&buffers] = std::move(plan);
    }
    return &plans_[&buffers];
  }

  TimedDevice& device_;
  Verifier& verifier_;
  std::shared_ptr<const CandidateKernel> kernel_;
  std::unique_ptr<LoadedModule> module_;
  std::map<const TaskBuffers*, BoundPlan> plans_;
};

}  // namespace

Result<std::unique_ptr<Subject>> MakeSubject(TimedDevice& device, Verifier& verifier,
                                             const VerifiedKernel& kernel) {
  auto subject = std::make_unique<KernelSubject>(
      device, verifier, std::make_shared<CandidateKernel>(kernel.kernel()));
  ATUNNER_RETURN_IF_ERROR(subject->Renew());
  return subject;
}

Result<std::unique_ptr<Harness>> Harness::Make(TimedDevice& device, Verifier& verifier,
                                               Clock& clock, double wake_seconds) {
  std::unique_ptr<Harness> harness(new Harness(device, verifier, clock, wake_seconds));
  const uint64_t flush_bytes = 2 * static_cast<uint64_t>(
                                       std::max<int64_t>(device.profile().l2_bytes, 4 << 20));
  ATUNNER_TRY(harness->flush_, device.Allocate(flush_bytes));
  const size_t outputs = verifier.spec().args.size();
  ATUNNER_TRY(harness->slots_,
              device.Allocate(std::max<size_t>(outputs, 1) * JudgeKernels::kFingerprintBlocks *
                              sizeof(uint64_t)));
  ATUNNER_TRY(harness->start_, device.CreateEvent());
  ATUNNER_TRY(harness->end_, device.CreateEvent());
  return harness;
}

Result<std::vector<uint64_t>> Harness::ReadFingerprints(const TaskBuffers& buffers) {
  const auto outputs = std::ranges::count_if(buffers.tensors(), &TaskBuffers::Tensor::is_output);
  std::vector<uint64_t> partial(static_cast<size_t>(outputs) * JudgeKernels::kFingerprintBlocks);
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(partial)), slots_->address()));
  std::vector<uint64_t> prints;
  for (auto part = partial.begin(); part != partial.end(); part += JudgeKernels::kFingerprintBlocks)
    prints.push_back(std::accumulate(part, part + JudgeKernels::kFingerprintBlocks, uint64_t{0}));
  return prints;
}

Result<Harness::Sample> Harness::TakeSample(Subject& subject, const InputInstance& instance,
                                            uint32_t slot) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, slot));
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(verifier_.kernels(), instance));
  ATUNNER_RETURN_IF_ERROR(buffers->PoisonOutputs());
  ATUNNER_RETURN_IF_ERROR(subject.Prepare(*buffers));
  ATUNNER_RETURN_IF_ERROR(device_.ResetPersistingL2());
  ATUNNER_RETURN_IF_ERROR(device_.EnqueueFill(flush_->address(), 0x5a, flush_->bytes()));
  Sample sample;
  ATUNNER_RETURN_IF_ERROR(device_.Record(*start_));
  sample.outcome = subject.Enqueue(*buffers);
  ATUNNER_RETURN_IF_ERROR(device_.Record(*end_));
  if (!sample.outcome.completed()) return sample;
  size_t index = 0;
  for (const TaskBuffers::Tensor& tensor : buffers->tensors()) {
    if (!tensor.is_output()) continue;
    const DeviceAddress at = slots_->address() +
                             index++ * JudgeKernels::kFingerprintBlocks * sizeof(uint64_t);
    ATUNNER_RETURN_IF_ERROR(verifier_.kernels().EnqueueFingerprint(
        device_, tensor.address, static_cast<uint64_t>(tensor.shape.bytes), at));
  }
  sample.outcome = device_.Synchronize();
  if (!sample.outcome.completed()) return sample;
  ATUNNER_TRY(sample.ns, device_.ElapsedNs(*start_, *end_));
  ATUNNER_TRY(sample.fingerprint, ReadFingerprints(*buffers));
  worked_at_ = clock_.Now();
  return sample;
}

Result<Harness::WarmUp> Harness::Warm(Subject& subject, int least, uint64_t seed) {
  const double begin = clock_.Now(), wake = begin - worked_at_ > kIdleSeconds ? wake_seconds_ : 0;
  WarmUp warm_up;
  for (double longest_ns = 0;
       longest_ns < kLongNs && (warm_up.samples < least || clock_.Now() - begin < wake);
       ++warm_up.samples) {
    const auto i = static_cast<uint32_t>(warm_up.samples);
    const InputInstance instance{InputFamily::kNormal, Mix64(seed + 1000000 + i), false};
    ATUNNER_TRY(const Sample sample, TakeSample(subject, instance, i % 2));
    warm_up.outcome = sample.outcome;
    if (!sample.outcome.completed()) break;
    longest_ns = std::max(longest_ns, sample.ns);
  }
  return warm_up;
}

Result<TimingResult> Harness::Time(Subject& subject, const HarnessOptions& options) {
  const double begin = clock_.Now();
  TimingResult result;
  std::vector<Sample> samples;
  std::vector<double> times;
  std::string reason;
  const auto instance_of = [&](size_t i) {
    return InputInstance{InputFamily::kNormal, Mix64(options.seed + i), false};
  };
  ATUNNER_TRY(const WarmUp warm_up, Warm(subject, options.warmups, options.seed));
  if (!warm_up.outcome.completed()) {
    result.verdict = {
        VerdictKind::kCrash, "failed while timed: " + warm_up.outcome.message, {}, false};
    return result;
  }
  while (reason.empty()) {
    const size_t i = samples.size();
    ATUNNER_TRY(Sample sample, TakeSample(subject, instance_of(i), i % 2));
    if (!sample.outcome.completed()) {
      result.verdict = {
          VerdictKind::kCrash, "failed while timed: " + sample.outcome.message, {}, false};
      return result;
    }
    times.push_back(sample.ns);
    samples.push_back(std::move(sample));
    const bool raced = options.incumbent_ns && IsRacedOut(times, *options.incumbent_ns);
    result.raced_out = raced;
    reason = raced ? "raced out" : options.stop.Decide(times, clock_.Now() - begin);
  }
  if (options.check_stale) {
    ATUNNER_TRY(result.verdict, CheckFresh(subject, samples, options.seed));
  }
  if (result.verdict.correct()) {
    result.measurement = Summarise(samples, options.seed, reason);
    result.measurement->warmups = warm_up.samples;
  }
  return result;
}

Result<Verdict> Harness::CheckFresh(Subject& subject, const std::vector<Sample>& samples,
                                    uint64_t seed) {
  Verdict verdict;
  if (verifier_.spec().tolerance.allow_nondeterminism) return verdict;
  ATUNNER_RETURN_IF_ERROR(subject.Renew());
  // From the last backwards: whatever was remembered by order of calls does not fit.
  const size_t replayed = std::min(kReplayedSamples, samples.size());
  for (size_t k = 0; k < replayed; ++k) {
    const size_t i = samples.size() - 1 -
                     k * (samples.size() - 1) / std::max<size_t>(replayed - 1, 1);
    const InputInstance instance{InputFamily::kNormal, Mix64(seed + i), false};
    ATUNNER_TRY(const Sample again, TakeSample(subject, instance, i % 2));
    const bool equal = again.outcome.completed() && again.fingerprint == samples[i].fingerprint;
    CheckRecord record{.check = "fresh module",
                       .family = "normal",
                       .dims = verifier_.spec().dims,
                       .passed = equal};
    record.detail = fmt::format("timed output {} against a fresh module's", i + 1);
    verdict.checks.push_back(record);
    if (equal) continue;
    verdict.kind = again.outcome.completed() ? VerdictKind::kStaleResult : VerdictKind::kCrash;
    verdict.reason = again.outcome.completed()
                         ? fmt::format(
                               "the output of timed run {} is not what a fresh module computes "
                               "from the same inputs",
                               i + 1)
                         : "failed on a fresh module: " + again.outcome.message;
    return verdict;
  }
  return verdict;
}

Measurement Harness::Summarise(const std::vector<Sample>& samples, uint64_t seed,
                               const std::string& reason) {
  Measurement measurement;
  for (const Sample& sample : samples) measurement.samples_ns.push_back(sample.ns);
  measurement.median_ns = Median(measurement.samples_ns);
  const Interval interval = MedianInterval(measurement.samples_ns);
  measurement.low_ns = interval.low;
  measurement.high_ns = interval.high;
  measurement.minimum_ns = *std::ranges::min_element(measurement.samples_ns);
  measurement.stop_reason = reason;
  measurement.flush = fmt::format("{} MiB written, persisting lines reset", flush_->bytes() >> 20);
  measurement.device = device_.profile().full_name.empty() ? device_.profile().name
                                                           : device_.profile().full_name;
  measurement.driver = device_.DriverVersion();
  const ClockState clocks = device_.Clocks();
  measurement.sm_mhz = clocks.sm_mhz;
  measurement.memory_mhz = clocks.memory_mhz;
  measurement.power_watts = clocks.power_watts;
  measurement.throttle = clocks.throttle;
  measurement.seed = seed;
  return measurement;
}

Result<double> Harness::RunToTick(Subject& subject, const TaskBuffers& buffers, double time_ns,
                                  int64_t& launches) {
  const auto batch = static_cast<int64_t>(std::clamp(kEnergyBatchNs / time_ns, 1.0, 1000.0));
  ATUNNER_TRY(const double before, device_.EnergyJoules());
  for (double spent_ns = 0; spent_ns < kEnergyPatienceNs;
       spent_ns += static_cast<double>(batch) * time_ns) {
    for (int64_t i = 0; i < batch; ++i) {
      if (const LaunchOutcome outcome = subject.Enqueue(buffers); !outcome.completed())
        return Fail(ErrorCode::kUnavailable,
                    "failed while its energy was measured: " + outcome.message);
    }
    ATUNNER_TRY(const double now, device_.EnergyJoules());  // while the device works
    if (const LaunchOutcome outcome = device_.Synchronize(); !outcome.completed())
      return Fail(ErrorCode::kUnavailable,
                  "failed while its energy was measured: " + outcome.message);
    launches += batch;
    if (now > before) return now;
  }
  return Fail(ErrorCode::kUnsupported, "this GPU's energy counter stands still",
              device_.profile().full_name, "leave energy out of --objective");
}

Result<double> Harness::EnergyOfRun(Subject& subject, double time_ns, uint64_t seed) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, 0));
  ATUNNER_RETURN_IF_ERROR(
      buffers->DrawInputs(verifier_.kernels(), {InputFamily::kNormal, Mix64(seed), false}));
  ATUNNER_RETURN_IF_ERROR(subject.Prepare(*buffers));
  int64_t launches = 0;
  ATUNNER_TRY(const double first, RunToTick(subject, *buffers, time_ns, launches));
  launches = 0;
  double last = first;
  while (static_cast<double>(launches) * time_ns < kEnergyLeastNs) {
    ATUNNER_TRY(last, RunToTick(subject, *buffers, time_ns, launches));
  }
  return (last - first) / static_cast<double>(launches);
}

Result<Comparison> Harness::Compare(Subject& baseline, Subject& candidate, int pairs,
                                    uint64_t seed) {
  std::vector<double> baseline_ns;
  std::vector<double> candidate_ns;
  const auto take = [&](Subject& subject, std::vector<double>& into, size_t i) -> Status {
    ATUNNER_TRY(const Sample sample,
                TakeSample(subject, {InputFamily::kNormal, Mix64(seed + i), false}, i % 2));
    if (!sample.outcome.completed())
      return Fail(ErrorCode::kUnavailable, "failed while compared: " + sample.outcome.message);
    into.push_back(sample.ns);
    return {};
  };
  for (Subject* subject : {&baseline, &candidate}) {
    ATUNNER_TRY(const WarmUp warm_up, Warm(*subject, 1, seed));
    if (!warm_up.outcome.completed())
      return Fail(ErrorCode::kUnavailable, "failed while compared: " + warm_up.outcome.message);
  }
  const double begin = clock_.Now();
  for (int pair = 0; pair < pairs; ++pair) {
    if (pair >= kLeastPairs && clock_.Now() - begin > kPairingSeconds) break;
    const bool baseline_first = pair % 2 == 0;  // A B B A
    const auto i = static_cast<size_t>(pair) + 1;
    ATUNNER_RETURN_IF_ERROR(baseline_first ? take(baseline, baseline_ns, i)
                                           : take(candidate, candidate_ns, i));
    ATUNNER_RETURN_IF_ERROR(baseline_first ? take(candidate, candidate_ns, i)
                                           : take(baseline, baseline_ns, i));
  }
  return ComparePairs(baseline_ns, candidate_ns, seed);
}

double PhysicalFloorNs(const KernelSpec& spec, const DeviceProfile& profile) {
  double reads = 0;
  double writes = 0;
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    const auto shape = ShapeOf(arg, spec, spec.dims);
    if (!shape) continue;
    if (arg.role != Role::kOutput) reads += static_cast<double>(shape->bytes);
    if (arg.role != Role::kInput) writes += static_cast<double>(shape->bytes);
  }
  // What is written may still lie in L2 when the kernel ends.
  double traffic = reads + std::max(0.0, writes - static_cast<double>(profile.l2_bytes));
  if (spec.bytes) traffic = std::min(traffic, MinimumBytes(spec, spec.dims).value_or(traffic));
  const double memory_ns = profile.dram_gbps > 0 ? traffic / profile.dram_gbps : 0;
  const double flops = FlopCount(spec, spec.dims).value_or(0);
  // Tensor cores bound what any kernel can do; a task that forbids them is not bounded lower by
  // that.
  const double rate = profile.PeakFlops(spec.compute_dtype, true);
  return std::max(memory_ns, rate > 0 ? flops / rate * 1e9 : 0.0);
}

}  // namespace atunner
