// The order of calls in every sample, on a device that records each call.
#include "atunner/measure/harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/measure/fake_timed_device_test.h"
#include "atunner/model/kernel/accuracy.h"

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kElements = 64;

/// A task y = 2 x + 1 whose reference is the kernel itself.
KernelSpec Spec() {
  KernelSpec spec;
  spec.name = "affine";
  spec.dims = {{"n", kElements}};
  spec.args = {
      {.name = "x", .role = Role::kInput, .shape = {Expr::MustParse("n")}, .value = {}, .fill = {}},
      {.name = "y",
       .role = Role::kOutput,
       .shape = {Expr::MustParse("n")},
       .value = {},
       .fill = {}}};
  LaunchStep step;
  step.entry = "reference";
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y")};
  spec.oracle.kind = Oracle::Kind::kKernel;
  spec.oracle.kernel = RenderedKernel{.source = {}, .plan = {.steps = {step}}};
  return spec;
}

LaunchOutcome Affine(FakeModule&, std::span<const KernelArg> args) {
  for (int64_t i = 0; i < kElements; ++i)
    FakeTimedDevice::Pointer<float>(args[1])[i] = 2 * FakeTimedDevice::Pointer<float>(args[0])[i] +
                                                  1;
  return {};
}

CandidateKernel Candidate(std::vector<std::string> entries) {
  CandidateKernel candidate;
  for (const std::string& entry : entries) {
    LaunchStep step;
    step.entry = entry;
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("y")};
    candidate.plan.steps.push_back(step);
    KernelResources kernel;
    kernel.entry = kernel.mangled = entry;
    kernel.registers = 16;
    candidate.module.kernels.push_back(kernel);
  }
  return candidate;
}

class HarnessTest : public testing::Test {
 protected:
  void SetUp() override {
    device_.kernels["reference"] = Affine;
    device_.kernels["k"] = Affine;
    Open();
  }
  void Open() {
    auto verifier = Verifier::Make(device_, compiler_, Spec(), {});
    ASSERT_TRUE(verifier) << verifier.error().ToString();
    verifier_ = *std::move(verifier);
    auto harness = Harness::Make(device_, *verifier_, clock_, wake_seconds_);
    ASSERT_TRUE(harness) << harness.error().ToString();
    harness_ = *std::move(harness);
  }
  std::unique_ptr<TimedKernel> Prove(const CandidateKernel& candidate) {
    auto verified = verifier_->Verify(std::make_shared<const CandidateKernel>(candidate));
    EXPECT_TRUE(verified);
    const auto* refused = std::get_if<Verdict>(&*verified);
    EXPECT_EQ(refused, nullptr) << refused->reason;
    auto kernel = MakeTimedKernel(device_, *verifier_, std::get<VerifiedKernel>(*verified));
    device_.journal.clear();
    return *std::move(kernel);
  }
  /// Names of the calls between two positions of the journal.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Call& call : device_.journal) names.push_back(call.what);
    return names;
  }
  std::vector<const Call*> Calls(const std::string& what) const {
    std::vector<const Call*> calls;
    for (const Call& call : device_.journal) {
      if (call.what == what) calls.push_back(&call);
    }
    return calls;
  }
  static HarnessOptions Samples(int count) {
    HarnessOptions options;
    options.warmups = 0;
    options.check_stale = false;
    options.stop = {.relative_interval = 0,
                    .minimum_samples = count,
                    .maximum_samples = count,
                    .maximum_seconds = 60};
    return options;
  }

  FakeTimedDevice device_;
  FakeCompiler compiler_;
  ManualClock clock_;
  double wake_seconds_ = 0;
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<Harness> harness_;
};

TEST_F(HarnessTest, OneSampleIsInThisOrder) {
  const auto kernel = Prove(Candidate({"k"}));
  ASSERT_TRUE(harness_->Time(*kernel, Samples(1)));
  std::vector<std::string> names = Names();
  std::erase(names, "fill");  // a plan's workspaces; the poison is looked at below
  EXPECT_THAT(names, ElementsAre("launch judge_fill", "launch judge_poison",
                                 "reset persisting lines", "enqueue fill", "record", "enqueue k",
                                 "record", "enqueue judge_fingerprint", "synchronize", "copy out"));
}

TEST_F(HarnessTest, PoisonCoversTheOutputBeforeTheFlush) {
  const auto kernel = Prove(Candidate({"k"}));
  ASSERT_TRUE(harness_->Time(*kernel, Samples(1)));
  const auto fills = Calls("launch judge_poison");
  ASSERT_EQ(fills.size(), 1u);
  EXPECT_EQ(fills[0]->at, verifier_->BuffersAt(Spec().dims, 0).value()->Find("y")->address);
  EXPECT_LT(fills[0], Calls("enqueue fill")[0])
      << "poisoning after the flush would warm the output's lines";
  EXPECT_LT(Calls("launch judge_fill")[0], Calls("enqueue fill")[0])
      << "so would drawing the inputs";
}

TEST_F(HarnessTest, EnergyIsTheCountersDifferenceOverTheRuns) {
  constexpr double kRunNs = 1e6;
  device_.cost = [](auto&) { return kRunNs; };
  const auto kernel = Prove(Candidate({"k"}));
  const auto joules = harness_->EnergyOfRun(*kernel, kRunNs, 1);
  ASSERT_TRUE(joules) << joules.error().ToString();
  EXPECT_NEAR(*joules, 300 * kRunNs * 1e-9, 0.03) << "300 W; the counter moves in steps of 6 J";
  EXPECT_EQ(Calls("enqueue fill").size(), 0u) << "caches are as the run before left them";
  EXPECT_GE(static_cast<double>(Calls("enqueue k").size()) * kRunNs, 4e8);
}

TEST_F(HarnessTest, EnergyThatNobodyCountsIsSaidToBeUnsupported) {
  device_.cost = [](auto&) { return 1e6; };
  const auto kernel = Prove(Candidate({"k"}));
  device_.counts_energy = false;
  const auto joules = harness_->EnergyOfRun(*kernel, 1e6, 1);
  ASSERT_FALSE(joules);
  EXPECT_EQ(joules.error().code, ErrorCode::kUnsupported);
  device_.counts_energy = true;
  device_.cost = [](auto&) { return 0.0; };  // time stands still, and the counter with it
  const auto still = harness_->EnergyOfRun(*kernel, 1e7, 1);
  ASSERT_FALSE(still);
  EXPECT_THAT(still.error().ToString(), HasSubstr("stands still"));
}

TEST_F(HarnessTest, TheFlushIsTwiceTheL2Cache) {
  const auto kernel = Prove(Candidate({"k"}));
  ASSERT_TRUE(harness_->Time(*kernel, Samples(3)));
  const auto flushes = Calls("enqueue fill");
  ASSERT_EQ(flushes.size(), 3u) << "one per sample";
  for (const Call* flush : flushes) EXPECT_EQ(flush->bytes, 2u * (8 << 20));
}

TEST_F(HarnessTest, OnlyTheKernelsStepsAreTimed) {
  device_.kernels["second"] = Affine;
  device_.cost = [](const std::string& entry) { return entry == "k" ? 700.0 : 40.0; };
  const auto kernel = Prove(Candidate({"k", "second"}));
  const auto timing = harness_->Time(*kernel, Samples(2));
  ASSERT_TRUE(timing && timing->measurement);
  // The flush costs 1e6 ns and every copy, fill and fingerprint 500 or more.
  EXPECT_THAT(timing->measurement->samples_ns, ElementsAre(740.0, 740.0));
  EXPECT_DOUBLE_EQ(timing->measurement->median_ns, 740.0);
}

TEST_F(HarnessTest, SymbolsAreCopiedOutsideTheTimer) {
  CandidateKernel candidate = Candidate({"k"});
  candidate.plan.symbols = {{"table", "x"}};
  const auto kernel = Prove(candidate);
  const auto timing = harness_->Time(*kernel, Samples(2));
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_EQ(Calls("copy within").size(), 2u) << "each sample draws new contents";
  EXPECT_DOUBLE_EQ(timing->measurement->median_ns, 100.0);
  EXPECT_LT(Calls("copy within")[0], Calls("enqueue fill")[0]);
}

TEST_F(HarnessTest, EverySampleHasNewInputsAndTheOtherBuffers) {
  std::vector<float> firsts;
  device_.kernels["k"] = [&](FakeModule& module, std::span<const KernelArg> args) {
    firsts.push_back(*FakeTimedDevice::Pointer<float>(args[0]));
    return Affine(module, args);
  };
  const auto kernel = Prove(Candidate({"k"}));
  firsts.clear();
  HarnessOptions options = Samples(4);
  options.warmups = 2;
  ASSERT_TRUE(harness_->Time(*kernel, options));
  ASSERT_EQ(firsts.size(), 6u);
  std::ranges::sort(firsts);
  EXPECT_EQ(std::unique(firsts.begin(), firsts.end()), firsts.end())
      << "equal inputs can be replayed";
  const auto kernels = Calls("enqueue k");
  for (size_t i = 1; i < kernels.size(); ++i) EXPECT_NE(kernels[i]->at, kernels[i - 1]->at) << i;
}

TEST_F(HarnessTest, WarmupsAreNotCounted) {
  int calls = 0;
  device_.cost = [&](const std::string&) { return ++calls <= 2 ? 5000.0 : 100.0; };
  const auto kernel = Prove(Candidate({"k"}));
  calls = 0;
  HarnessOptions options = Samples(3);
  options.warmups = 2;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_THAT(timing->measurement->samples_ns, ElementsAre(100.0, 100.0, 100.0));
}

TEST_F(HarnessTest, ADeviceThatHasIdledIsWarmedUpForLonger) {
  wake_seconds_ = 0.15;
  Open();
  device_.cost = [&](const std::string& entry) {
    if (entry == "k") clock_.Advance(0.001);
    return 100.0;
  };
  const auto kernel = Prove(Candidate({"k"}));
  HarnessOptions options = Samples(3);
  options.warmups = 2;
  const auto warmups_after = [&](double pause) {
    clock_.Advance(pause);
    return harness_->Time(*kernel, options)->measurement->warmups;
  };
  EXPECT_NEAR(warmups_after(0), 150, 1) << "the first time";
  EXPECT_EQ(warmups_after(0.08), 2) << "it has worked just now";
  EXPECT_NEAR(warmups_after(0.5), 150, 1);
}

TEST_F(HarnessTest, OneLongWarmupIsEnough) {
  device_.cost = [](const std::string&) { return 2e8; };
  const auto kernel = Prove(Candidate({"k"}));
  HarnessOptions options = Samples(3);
  options.warmups = 2;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_EQ(timing->measurement->warmups, 1);
  EXPECT_EQ(Calls("enqueue k").size(), 4u);
}

TEST_F(HarnessTest, PairsEndWhenTheyTakeTooLongButNotBeforeTheFifth) {
  const auto pairs_at = [&](double seconds_per_run) {
    const auto baseline = Prove(Candidate({"k"}));
    const auto candidate = Prove(Candidate({"k"}));
    device_.cost = [&, seconds_per_run](const std::string&) {
      clock_.Advance(seconds_per_run);
      return 100.0;
    };
    const auto comparison = harness_->Compare(*baseline, *candidate, 20, 1);
    EXPECT_TRUE(comparison);
    return comparison ? comparison->pairs : 0;
  };
  EXPECT_EQ(pairs_at(0.001), 20);
  EXPECT_EQ(pairs_at(0.25), 7) << "3.5 s; 3 s after six";
  EXPECT_EQ(pairs_at(10), 5);
}

TEST_F(HarnessTest, TimedOutputsAreReplayedOnAFreshModule) {
  const auto kernel = Prove(Candidate({"k"}));
  const int loaded = device_.modules;
  HarnessOptions options = Samples(6);
  options.check_stale = true;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_EQ(device_.modules, loaded + 1);
  const auto names = Names();
  const auto load = std::ranges::find(names, "load");
  EXPECT_EQ(std::count(names.begin(), load, "enqueue k"), 6 + 64 + 1)
      << "six timed, a burst, and one sample after it";
  EXPECT_EQ(std::count(load, names.end(), "enqueue k"), 4) << "four of them are replayed";
  EXPECT_EQ(timing->verdict.checks.size(), 4u);
}

// A kernel that is correct while it is verified and warmed up and then returns its last result
// again: only the replay on a fresh module notices.
TEST_F(HarnessTest, AKernelThatReplaysItsResultIsStale) {
  device_.kernels["k"] = [&](FakeModule& module, std::span<const KernelArg> args) {
    auto* y = FakeTimedDevice::Pointer<float>(args[1]);
    if (module.launches > 3) return std::ranges::copy(module.kept, y), LaunchOutcome{};
    Affine(module, args);
    module.kept.assign(y, y + kElements);
    return LaunchOutcome{};
  };
  // The proof is made with a correct kernel, since this tests the harness alone.
  auto cheat = std::exchange(device_.kernels["k"], Affine);
  const auto kernel = Prove(Candidate({"k"}));
  device_.kernels["k"] = cheat;
  HarnessOptions options = Samples(8);
  options.check_stale = true;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->verdict.kind, VerdictKind::kStaleResult) << timing->verdict.reason;
  EXPECT_FALSE(timing->measurement) << "no time for what is not proven";
}

// A stencil leaves its border as it was. What was there differs from sample to sample.
TEST_F(HarnessTest, ElementsThatTheTaskLeavesUnwrittenAreNotStale) {
  const auto but_the_last = [](FakeModule& module, std::span<const KernelArg> args) {
    float& last = FakeTimedDevice::Pointer<float>(args[1])[kElements - 1];
    const float before = last;
    const LaunchOutcome outcome = Affine(module, args);
    last = before;
    return outcome;
  };
  device_.kernels["reference"] = device_.kernels["k"] = but_the_last;
  Open();
  const auto kernel = Prove(Candidate({"k"}));
  HarnessOptions options = Samples(8);
  options.check_stale = true;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing);
  EXPECT_TRUE(timing->measurement) << timing->verdict.reason;

  device_.kernels["k"] = [](FakeModule&, std::span<const KernelArg>) { return LaunchOutcome{}; };
  const auto idle = harness_->Time(*kernel, options);
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->verdict.kind, VerdictKind::kStaleResult) << "it writes nothing while it is timed";
}

// A kernel that stops working after more launches than its timing makes: the sample after the burst
// is not what a fresh module with fresh workspaces computes.
TEST_F(HarnessTest, AKernelThatCountsItsLaunchesInAWorkspaceIsStale) {
  const auto counting = [](FakeModule& module, std::span<const KernelArg> args) {
    auto* count = FakeTimedDevice::Pointer<uint32_t>(args[2]);
    constexpr uint32_t kMagic = 0x600df00d;
    if (count[0] != kMagic) count[0] = kMagic, count[1] = 0;
    if (++count[1] <= 20) return Affine(module, args);
    std::fill_n(FakeTimedDevice::Pointer<float>(args[1]), kElements, 0.0f);
    return LaunchOutcome{};
  };
  CandidateKernel candidate = Candidate({"k"});
  candidate.plan.workspaces = {{"count", 8}};
  candidate.plan.steps[0].args.push_back(ArgBinding::Workspace("count"));
  const auto kernel = Prove(candidate);
  device_.kernels["k"] = counting;
  HarnessOptions options = Samples(8);
  options.check_stale = true;
  const auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->verdict.kind, VerdictKind::kStaleResult) << timing->verdict.reason;
}

TEST_F(HarnessTest, AFailureWhileTimedIsAVerdict) {
  const auto kernel = Prove(Candidate({"k"}));
  int calls = 0;
  device_.kernels["k"] = [&](FakeModule& module, std::span<const KernelArg> args) {
    if (++calls == 3) return LaunchOutcome{LaunchOutcome::Kind::kFaulted, "illegal address", {}, 0};
    return Affine(module, args);
  };
  const auto timing = harness_->Time(*kernel, Samples(6));
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->verdict.kind, VerdictKind::kCrash);
  EXPECT_THAT(timing->verdict.reason, HasSubstr("illegal address"));
  EXPECT_FALSE(timing->measurement);
}

TEST_F(HarnessTest, AClearLoserIsRacedOutAfterThreeSamples) {
  const auto kernel = Prove(Candidate({"k"}));
  HarnessOptions options = Samples(12);
  options.incumbent_ns = 100.0 / 1.06;  // the kernel takes 100
  auto timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_TRUE(timing->raced_out);
  EXPECT_EQ(timing->measurement->samples_ns.size(), 3u);
  EXPECT_EQ(timing->measurement->stop_reason, "raced out");
  options.incumbent_ns = 100.0 / 1.04;
  timing = harness_->Time(*kernel, options);
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_FALSE(timing->raced_out) << "it could still win";
  EXPECT_EQ(timing->measurement->samples_ns.size(), 12u);
}

TEST_F(HarnessTest, AMeasurementSaysHowItWasMade) {
  const auto kernel = Prove(Candidate({"k"}));
  const auto timing = harness_->Time(*kernel, Samples(6));
  ASSERT_TRUE(timing && timing->measurement);
  EXPECT_EQ(timing->measurement->device, "Fake GPU");
  EXPECT_EQ(timing->measurement->driver, "fake 1.0");
  EXPECT_THAT(timing->measurement->flush, HasSubstr("16 MiB"));
  EXPECT_EQ(timing->measurement->throttle, "none");
  EXPECT_DOUBLE_EQ(timing->measurement->sm_mhz, 1500);
}

TEST_F(HarnessTest, PairsAreInterleavedOnEqualInputs) {
  std::vector<std::pair<char, float>> order;
  const auto note = [&](char who) {
    return [&order, who](FakeModule& module, std::span<const KernelArg> args) {
      order.emplace_back(who, *FakeTimedDevice::Pointer<float>(args[0]));
      return Affine(module, args);
    };
  };
  device_.kernels["a"] = note('A');
  device_.kernels["b"] = note('B');
  // The machine slows down all the time, equally for both.
  device_.cost = [&](const std::string& entry) {
    return (entry == "a" ? 300.0 : 200.0) * (1 + 0.01 * static_cast<double>(order.size()));
  };
  const auto a = Prove(Candidate({"a"}));
  const auto b = Prove(Candidate({"b"}));
  order.clear();
  const auto comparison = harness_->Compare(*a, *b, 4, 1);
  ASSERT_TRUE(comparison);
  std::string sequence;
  for (const auto& [who, value] : order) sequence += who;
  EXPECT_EQ(sequence,
            "AB"
            "ABBAABBA")
      << "one unmeasured run each, then A B B A";
  for (size_t i = 2; i < order.size(); i += 2)
    EXPECT_EQ(order[i].second, order[i + 1].second) << "pair " << i / 2;
  EXPECT_NE(order[2].second, order[4].second) << "another pair, other inputs";
  EXPECT_EQ(comparison->pairs, 4);
  EXPECT_NEAR(comparison->ratio, 1.5, 0.01) << "drift cancels out";
  EXPECT_EQ(Calls("enqueue fill").size(), order.size()) << "each run after a flush of its own";
}

TEST(PhysicalFloor, IsTrafficOrArithmetic) {
  KernelSpec spec = Spec();
  spec.dims["n"] = 1 << 28;
  spec.flops = 0;
  DeviceProfile profile;
  profile.dram_gbps = 1000;
  profile.l2_bytes = 64 << 20;
  profile.sms = 100;
  profile.clock_ghz = 1;
  profile.fp32_per_clk = 100;
  // 1 GiB read, 1 GiB written of which 64 MiB may stay in L2; 1 GB/s is 1 byte per ns.
  const double bytes = 2.0 * (int64_t{1} << 30) - (64 << 20);
  EXPECT_DOUBLE_EQ(PhysicalFloorNs(spec, profile), bytes / 1000);
  // 100 SMs × 100 lanes × 2 at 1 GHz = 20 TFLOP/s: 1e12 operations take 50 ms.
  spec.flops = Expr::MustParse("1000000000000");
  EXPECT_NEAR(PhysicalFloorNs(spec, profile), 5e7, 1);
  // A stated number of bytes can only lower the bound.
  spec.flops = 0;
  spec.bytes = Expr::MustParse("n");
  EXPECT_DOUBLE_EQ(PhysicalFloorNs(spec, profile), static_cast<double>(1 << 28) / 1000);
  spec.bytes = Expr::MustParse("n * 100");
  EXPECT_DOUBLE_EQ(PhysicalFloorNs(spec, profile), bytes / 1000);
}

// A kernel that rounds the operands of float32 products to 16 bits is faster than TF32 allows.
TEST(PhysicalFloor, KnowsTheFastestPathThatTheAccuracyAllows) {
  const DeviceProfile profile = FindProfile("H100").value();
  KernelSpec spec = Spec();
  spec.flops = Expr::MustParse("1000000000000000");
  const auto floor_at = [&](DType dtype) { return 1e15 / profile.PeakFlops(dtype, true) * 1e9; };
  EXPECT_NEAR(PhysicalFloorNs(spec, profile), floor_at(DType::kFloat32), 1);
  KernelSpec fast = spec;
  SetAccuracy(fast, Accuracy::kFast);
  EXPECT_NEAR(PhysicalFloorNs(fast, profile), floor_at(DType::kFloat16), 1);
  spec.tolerance.relative = 1e-2;
  EXPECT_NEAR(PhysicalFloorNs(spec, profile), floor_at(DType::kFloat16), 1);
}

}  // namespace
}  // namespace atunner
