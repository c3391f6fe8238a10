#include "atunner/measure/harness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "atunner/base/random.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

// Work between two reads of the energy counter, each of which takes some milliseconds.
constexpr double kEnergyBatchNs = 1e7;
// The counter moves every tenth of a second, so that over this time a batch too many matters
// little.
constexpr double kEnergyLeastNs = 4e8;
constexpr double kEnergyTimeoutNs = 1e9;  // a counter that works moves within this time
constexpr double kLongNs = 1e8;           // a kernel this long needs one warm-up
constexpr double kIdleSeconds = 0.1;      // after a longer pause the device is slow at first
constexpr int kLeastPairs = 5;            // even if they take longer than kPairingSeconds
constexpr double kPairingSeconds = 3;
constexpr size_t kReplayedSamples = 4;  // outputs that a fresh module must reproduce
// Launches after the timed ones: as many again, or what takes this time.
constexpr double kBurstLaunches = 64;
constexpr double kBurstNs = 2e6;

/// The numbers of the samples to replay, the last first and then random ones downwards: a kernel
/// that remembers results by the order of calls fails. No kernel can know which are drawn.
std::vector<size_t> DrawReplays(size_t samples) {
  std::vector<size_t> all(samples);
  std::iota(all.rbegin(), all.rend(), size_t{0});
  Random random(SecretBits());
  while (all.size() > kReplayedSamples)
    all.erase(all.begin() + 1 + static_cast<ptrdiff_t>(random.Below(all.size() - 1)));
  return all;
}

InputInstance NormalInputs(uint64_t seed) { return {InputFamily::kNormal, Mix64(seed), false}; }

Verdict FailedWhileTimed(const LaunchOutcome& outcome) {
  return {VerdictKind::kCrash, "failed while timed: " + outcome.message, {}, false};
}

/// The steps of a verified candidate, bound once per set of buffers.
class TimedCandidate : public TimedKernel {
 public:
  TimedCandidate(TimedDevice& device, Verifier& verifier,
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

  Result<size_t> Launches(const TaskBuffers& buffers) override {
    ATUNNER_TRY(const BoundPlan* plan, PlanFor(buffers));
    return plan->steps.size();
  }

  /// Copies the inputs just drawn into the module's symbols.
  Status Prepare(const TaskBuffers& buffers) override {
    ATUNNER_TRY(const BoundPlan* plan, PlanFor(buffers));
    return CopySymbols(device_, *module_, *plan);
  }

  Status Renew() override {
    plans_.clear();
    ATUNNER_TRY(module_, device_.Load(kernel_->module));
    return {};
  }

 private:
  Result<const BoundPlan*> PlanFor(const TaskBuffers& buffers) {
    const auto found = plans_.find(&buffers);
    if (found == plans_.end()) {
      // Workspaces of a large task are in memory once.
      if (verifier_.IsLarge(buffers.dims()) && HasWorkspaces()) plans_.clear();
      ATUNNER_TRY(BoundPlan plan,
                  BindPlan(device_, kernel_->plan, verifier_.spec(), buffers, Workspaces::kFresh));
      ATUNNER_RETURN_IF_ERROR(
          PoisonWorkspaces(device_, verifier_.kernels(), plan, Poison::Fresh()));
      plans_[&buffers] = std::move(plan);
    }
    return &plans_[&buffers];
  }

  bool HasWorkspaces() const {
    return std::ranges::any_of(plans_,
                               [](const auto& of) { return !of.second.workspaces.empty(); });
  }

  TimedDevice& device_;
  Verifier& verifier_;
  std::shared_ptr<const CandidateKernel> kernel_;
  std::unique_ptr<LoadedModule> module_;
  std::map<const TaskBuffers*, BoundPlan> plans_;
};

}  // namespace

Result<std::unique_ptr<TimedKernel>> MakeTimedKernel(TimedDevice& device, Verifier& verifier,
                                                     const VerifiedKernel& verified) {
  auto kernel = std::make_unique<TimedCandidate>(
      device, verifier, std::make_shared<CandidateKernel>(verified.kernel()));
  ATUNNER_RETURN_IF_ERROR(kernel->Renew());
  return kernel;
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

namespace {

/// Addresses in an output are others in other buffers.
bool HasFingerprint(const TaskBuffers::Tensor& tensor) {
  return tensor.is_output() && tensor.addresses.empty();
}

}  // namespace

Result<std::vector<uint64_t>> Harness::ReadFingerprints(const TaskBuffers& buffers) {
  const auto outputs = std::ranges::count_if(buffers.tensors(), HasFingerprint);
  std::vector<uint64_t> partial(static_cast<size_t>(outputs) * JudgeKernels::kFingerprintBlocks);
  ATUNNER_RETURN_IF_ERROR(
      device_.CopyOut(std::as_writable_bytes(std::span(partial)), slots_->address()));
  std::vector<uint64_t> prints;
  for (auto part = partial.begin(); part != partial.end(); part += JudgeKernels::kFingerprintBlocks)
    prints.push_back(std::accumulate(part, part + JudgeKernels::kFingerprintBlocks, uint64_t{0}));
  return prints;
}

Status Harness::EnqueueFingerprints(const TaskBuffers& buffers) {
  DeviceAddress slot = slots_->address();
  for (const TaskBuffers::Tensor& tensor : buffers.tensors()) {
    if (!HasFingerprint(tensor)) continue;
    ATUNNER_RETURN_IF_ERROR(verifier_.kernels().EnqueueFingerprint(
        device_, tensor.address, static_cast<uint64_t>(tensor.shape.bytes), slot));
    slot += JudgeKernels::kFingerprintBlocks * sizeof(uint64_t);
  }
  return {};
}

Status Harness::PrepareRun(TimedKernel& kernel, const TaskBuffers& buffers,
                           const InputInstance& instance, const Poison& poison) {
  ATUNNER_RETURN_IF_ERROR(buffers.DrawInputs(verifier_.kernels(), instance));
  ATUNNER_RETURN_IF_ERROR(buffers.PoisonOutputs(verifier_.kernels(), poison));
  ATUNNER_RETURN_IF_ERROR(kernel.Prepare(buffers));
  ATUNNER_RETURN_IF_ERROR(device_.ResetPersistingL2());
  return device_.EnqueueFill(flush_->address(), 0x5a, flush_->bytes());
}

Result<MetricValues> Harness::Count(TimedKernel& kernel, std::span<const std::string> metrics,
                                    uint64_t seed) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, 0));
  const auto ended = [](const LaunchOutcome& outcome) -> Status {
    if (outcome.completed()) return {};
    return Fail(ErrorCode::kUnavailable, "failed while it was counted: " + outcome.message);
  };
  CountedRun run;
  ATUNNER_TRY(run.launches, kernel.Launches(*buffers));
  run.prepare = [&]() -> Status {
    ATUNNER_RETURN_IF_ERROR(PrepareRun(kernel, *buffers, NormalInputs(seed), Poison::Fresh()));
    return ended(device_.Synchronize());
  };
  run.launch = [&]() -> Status {
    ATUNNER_RETURN_IF_ERROR(ended(kernel.Enqueue(*buffers)));
    return ended(device_.Synchronize());
  };
  return CountMetrics(metrics, run);
}

Result<Harness::Sample> Harness::TakeSample(TimedKernel& kernel, const InputInstance& instance,
                                            uint32_t slot, const Poison& poison) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, slot));
  ATUNNER_RETURN_IF_ERROR(PrepareRun(kernel, *buffers, instance, poison));
  Sample sample;
  sample.poison = poison;
  ATUNNER_RETURN_IF_ERROR(device_.Record(*start_));
  sample.outcome = kernel.Enqueue(*buffers);
  ATUNNER_RETURN_IF_ERROR(device_.Record(*end_));
  if (!sample.outcome.completed()) return sample;
  ATUNNER_RETURN_IF_ERROR(EnqueueFingerprints(*buffers));
  sample.outcome = device_.Synchronize();
  if (!sample.outcome.completed()) return sample;
  ATUNNER_TRY(sample.ns, device_.ElapsedNs(*start_, *end_));
  ATUNNER_TRY(sample.fingerprint, ReadFingerprints(*buffers));
  worked_at_ = clock_.Now();
  return sample;
}

Result<Harness::WarmUp> Harness::Warm(TimedKernel& kernel, int least, uint64_t seed) {
  const double begin = clock_.Now(), wake = begin - worked_at_ > kIdleSeconds ? wake_seconds_ : 0;
  WarmUp warm_up;
  for (double longest_ns = 0;
       longest_ns < kLongNs && (warm_up.samples < least || clock_.Now() - begin < wake);
       ++warm_up.samples) {
    const auto i = static_cast<uint32_t>(warm_up.samples);
    ATUNNER_TRY(const Sample sample,
                TakeSample(kernel, NormalInputs(seed + 1000000 + i), i % 2, Poison::Fresh()));
    warm_up.outcome = sample.outcome;
    if (!sample.outcome.completed()) break;
    longest_ns = std::max(longest_ns, sample.ns);
  }
  return warm_up;
}

Result<std::string> Harness::TakeSamples(TimedKernel& kernel, const HarnessOptions& options,
                                         double begin, std::vector<Sample>& samples,
                                         TimingResult& result) {
  std::vector<double> times;
  std::string reason;
  while (reason.empty()) {
    const size_t i = samples.size();
    ATUNNER_TRY(Sample sample,
                TakeSample(kernel, NormalInputs(options.seed + i), i % 2, Poison::Fresh()));
    if (!sample.outcome.completed()) {
      result.verdict = FailedWhileTimed(sample.outcome);
      return "";
    }
    times.push_back(sample.ns);
    samples.push_back(std::move(sample));
    result.raced_out = options.incumbent_ns && IsRacedOut(times, *options.incumbent_ns);
    reason = result.raced_out ? "raced out" : options.stop.Decide(times, clock_.Now() - begin);
  }
  return reason;
}

Result<TimingResult> Harness::Time(TimedKernel& kernel, const HarnessOptions& options) {
  const double begin = clock_.Now();
  TimingResult result;
  std::vector<Sample> samples;
  ATUNNER_TRY(const WarmUp warm_up, Warm(kernel, options.warmups, options.seed));
  if (!warm_up.outcome.completed()) {
    result.verdict = FailedWhileTimed(warm_up.outcome);
    return result;
  }
  ATUNNER_TRY(const std::string reason, TakeSamples(kernel, options, begin, samples, result));
  if (reason.empty()) return result;
  Measurement measurement = Summarise(samples, options.seed, reason);
  measurement.warmups = warm_up.samples;
  if (options.check_stale) {
    ATUNNER_TRY(samples.emplace_back(),
                SampleAfterBurst(kernel, measurement.median_ns, options.seed, samples.size()));
    if (!samples.back().outcome.completed()) {
      result.verdict = FailedWhileTimed(samples.back().outcome);
      return result;
    }
    ATUNNER_TRY(result.verdict, CheckFresh(kernel, samples, options.seed));
  }
  if (result.verdict.correct()) result.measurement = std::move(measurement);
  return result;
}

Result<Harness::Sample> Harness::SampleAfterBurst(TimedKernel& kernel, double time_ns,
                                                  uint64_t seed, size_t i) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, i % 2));
  const auto launches = static_cast<int>(
      std::clamp(kBurstNs / std::max(time_ns, 1.0), 1.0, kBurstLaunches));
  // The inputs of both slots may be in the same memory, and hold those of the other slot.
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(verifier_.kernels(), NormalInputs(seed + i)));
  ATUNNER_RETURN_IF_ERROR(kernel.Prepare(*buffers));
  Sample sample;
  for (int launch = 0; launch < launches && sample.outcome.completed(); ++launch)
    sample.outcome = kernel.Enqueue(*buffers);
  if (!sample.outcome.completed()) return sample;
  return TakeSample(kernel, NormalInputs(seed + i), i % 2, Poison::Fresh());
}

Result<std::vector<uint64_t>> Harness::FingerprintOfPoison(TimedKernel& kernel,
                                                           const InputInstance& instance,
                                                           uint32_t slot, const Poison& poison) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, slot));
  ATUNNER_RETURN_IF_ERROR(PrepareRun(kernel, *buffers, instance, poison));
  ATUNNER_RETURN_IF_ERROR(EnqueueFingerprints(*buffers));
  const LaunchOutcome outcome = device_.Synchronize();
  if (!outcome.completed()) return Fail(ErrorCode::kUnavailable, outcome.message);
  return ReadFingerprints(*buffers);
}

Result<Verdict> Harness::CheckFresh(TimedKernel& kernel, const std::vector<Sample>& samples,
                                    uint64_t seed) {
  Verdict verdict;
  if (!verifier_.RequiresEqualBits()) return verdict;
  ATUNNER_RETURN_IF_ERROR(kernel.Renew());
  for (const size_t i : DrawReplays(samples.size())) {
    // Elements that no right kernel writes hold the poison: it must be the same, too. A kernel that
    // writes nothing while it is timed would agree with itself, but its outputs are the poison.
    const InputInstance instance = NormalInputs(seed + i);
    const bool keeps = verifier_.leaves_unwritten();
    const Poison poison = keeps ? samples[i].poison : Poison::Fresh();
    ATUNNER_TRY(const Sample again, TakeSample(kernel, instance, i % 2, poison));
    const bool ran = again.outcome.completed();
    bool equal = ran && again.fingerprint == samples[i].fingerprint;
    if (equal && keeps) {
      ATUNNER_TRY(const auto untouched, FingerprintOfPoison(kernel, instance, i % 2, poison));
      equal = untouched != samples[i].fingerprint;
    }
    verdict.checks.push_back(
        {.check = "fresh module",
         .family = "normal",
         .dims = verifier_.spec().dims,
         .passed = equal,
         .detail = fmt::format("timed output {} against a fresh module's", i + 1)});
    if (equal) continue;
    verdict.kind = ran ? VerdictKind::kStaleResult : VerdictKind::kCrash;
    verdict.reason = ran ? fmt::format(
                               "the output of timed run {} is not what a fresh module "
                               "computes from the same inputs",
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

Result<double> Harness::RunToTick(TimedKernel& kernel, const TaskBuffers& buffers, double time_ns,
                                  int64_t& launches) {
  const auto batch = static_cast<int64_t>(std::clamp(kEnergyBatchNs / time_ns, 1.0, 1000.0));
  ATUNNER_TRY(const double before, device_.EnergyJoules());
  for (double spent_ns = 0; spent_ns < kEnergyTimeoutNs;
       spent_ns += static_cast<double>(batch) * time_ns) {
    for (int64_t i = 0; i < batch; ++i) {
      if (const LaunchOutcome outcome = kernel.Enqueue(buffers); !outcome.completed())
        return Fail(ErrorCode::kUnavailable,
                    "failed while its energy was measured: " + outcome.message);
    }
    ATUNNER_TRY(const double now, device_.EnergyJoules());  // read while the device works
    if (const LaunchOutcome outcome = device_.Synchronize(); !outcome.completed())
      return Fail(ErrorCode::kUnavailable,
                  "failed while its energy was measured: " + outcome.message);
    launches += batch;
    if (now > before) return now;
  }
  return Fail(ErrorCode::kUnsupported, "this GPU's energy counter stands still",
              device_.profile().full_name, "leave energy out of request.objective");
}

Result<double> Harness::EnergyOfRun(TimedKernel& kernel, double time_ns, uint64_t seed) {
  ATUNNER_TRY(const TaskBuffers* buffers, verifier_.BuffersAt(verifier_.spec().dims, 0));
  ATUNNER_RETURN_IF_ERROR(buffers->DrawInputs(verifier_.kernels(), NormalInputs(seed)));
  ATUNNER_RETURN_IF_ERROR(kernel.Prepare(*buffers));
  int64_t launches = 0;
  ATUNNER_TRY(const double first, RunToTick(kernel, *buffers, time_ns, launches));
  launches = 0;
  double last = first;
  while (static_cast<double>(launches) * time_ns < kEnergyLeastNs) {
    ATUNNER_TRY(last, RunToTick(kernel, *buffers, time_ns, launches));
  }
  return (last - first) / static_cast<double>(launches);
}

Result<double> Harness::PairedNs(TimedKernel& kernel, uint64_t seed, size_t i) {
  ATUNNER_TRY(const Sample sample,
              TakeSample(kernel, NormalInputs(seed + i), i % 2, Poison::Fresh()));
  if (!sample.outcome.completed())
    return Fail(ErrorCode::kUnavailable, "failed while compared: " + sample.outcome.message);
  return sample.ns;
}

Result<Comparison> Harness::Compare(TimedKernel& baseline, TimedKernel& candidate, int pairs,
                                    uint64_t seed) {
  for (TimedKernel* kernel : {&baseline, &candidate}) {
    ATUNNER_TRY(const WarmUp warm_up, Warm(*kernel, 1, seed));
    if (!warm_up.outcome.completed())
      return Fail(ErrorCode::kUnavailable, "failed while compared: " + warm_up.outcome.message);
  }
  std::vector<double> baseline_ns;
  std::vector<double> candidate_ns;
  const double begin = clock_.Now();
  for (int pair = 0; pair < pairs; ++pair) {
    if (pair >= kLeastPairs && clock_.Now() - begin > kPairingSeconds) break;
    const bool baseline_first = pair % 2 == 0;  // A B B A
    const auto i = static_cast<size_t>(pair) + 1;
    ATUNNER_TRY(const double first, PairedNs(baseline_first ? baseline : candidate, seed, i));
    ATUNNER_TRY(const double second, PairedNs(baseline_first ? candidate : baseline, seed, i));
    baseline_ns.push_back(baseline_first ? first : second);
    candidate_ns.push_back(baseline_first ? second : first);
  }
  return ComparePairs(baseline_ns, candidate_ns, seed);
}

namespace {

/// The type of the fastest products that the accuracy of the task allows. A task that states its
/// own tolerance, or that asks for `fast`, may round the operands of float32 products to 16 bits.
DType FastestType(const KernelSpec& spec) {
  const bool stated = spec.tolerance.relative || spec.tolerance.absolute;
  const bool narrow = stated || AccuracyOf(spec) == Accuracy::kFast;
  if (!narrow) return spec.compute_dtype;
  if (spec.compute_dtype == DType::kFloat64) return DType::kFloat32;
  return spec.compute_dtype == DType::kFloat32 ? DType::kFloat16 : spec.compute_dtype;
}

}  // namespace

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
  // Written data may still be in L2 when the kernel ends.
  double traffic = reads + std::max(0.0, writes - static_cast<double>(profile.l2_bytes));
  if (spec.bytes) traffic = std::min(traffic, MinimumBytes(spec, spec.dims).value_or(traffic));
  const double memory_ns = profile.dram_gbps > 0 ? traffic / profile.dram_gbps : 0;
  const double flops = FlopCount(spec, spec.dims).value_or(0);
  // The peak of tensor cores, although the task may forbid them: the bound holds for every kernel.
  const double rate = profile.PeakFlops(FastestType(spec), true);
  return std::max(memory_ns, rate > 0 ? flops / rate * 1e9 : 0.0);
}

}  // namespace atunner
