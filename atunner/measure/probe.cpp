#include "atunner/measure/probe.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "atunner/base/clock.h"
#include "atunner/base/random.h"
#include "atunner/measure/micro_benchmarks.h"
#include "atunner/model/value/capabilities.h"
#include "embed/probe.h"

namespace atunner {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{512} << 20;
// Distance in bytes of successive pointers of a chase: two cache lines.
constexpr uint64_t kRingStride = 256;

class Prober {
 public:
  Prober(TimedDevice& device, Compiler& compiler)
      : device_(device), compiler_(compiler), result_{device.profile(), {}} {}

  Result<ProbeResult> Run() {
    ATUNNER_RETURN_IF_ERROR(Prepare());
    ATUNNER_RETURN_IF_ERROR(Bandwidths());
    ATUNNER_RETURN_IF_ERROR(Arithmetic());
    ATUNNER_RETURN_IF_ERROR(Latencies());
    DeviceProfile& profile = result_.profile;
    profile.source = "probed " + UtcTimestamp() + "; the rest from: " + device_.profile().source;
    return std::move(result_);
  }

 private:
  Status Prepare() {
    ATUNNER_TRY(kernels_,
                MicroBenchmarks::Make(device_, compiler_, "probe.cu", embed::kProbeCu,
                                      {"probe_copy", "probe_read", "probe_shared", "probe_fp32",
                                       "probe_fp64", "probe_mma", "probe_chase", "probe_empty"}));
    return {};
  }

  KernelArg Sink() const { return KernelArg::Address(kernels_->sink().address()); }
  Result<double> Time(const char* entry, uint32_t grid, uint32_t block,
                      const std::vector<KernelArg>& args, int launches = 1) const {
    return kernels_->Time(entry, grid, block, args, launches);
  }

  void Add(std::string name, std::string unit, double measured, double stated) {
    result_.rates.push_back({std::move(name), std::move(unit), measured, stated});
  }

  uint32_t Sms() const { return static_cast<uint32_t>(device_.profile().sms); }

  Status Bandwidths() {
    ATUNNER_TRY(const auto from, device_.Allocate(kCopyBytes));
    ATUNNER_RETURN_IF_ERROR(device_.Fill(from->address(), 1, kCopyBytes));
    ATUNNER_RETURN_IF_ERROR(CopyBandwidth(*from));
    ATUNNER_RETURN_IF_ERROR(L2Bandwidth(*from));
    return SharedBandwidth();
  }

  Status CopyBandwidth(const Buffer& from) {
    ATUNNER_TRY(const auto to, device_.Allocate(kCopyBytes));
    ATUNNER_TRY(const double copy,
                Time("probe_copy", static_cast<uint32_t>(kCopyBytes / 16 / 4 / 256), 256,
                     {KernelArg::Address(from.address()), KernelArg::Address(to->address()),
                      LongArg(kCopyBytes / 16)}));
    Add("copy bandwidth", "GB/s", 2.0 * static_cast<double>(kCopyBytes) / copy,
        device_.profile().dram_gbps);
    return {};
  }

  Status L2Bandwidth(const Buffer& from) {
    const DeviceProfile& stated = device_.profile();
    // Every SM reads the same quarter of L2.
    const auto resident = static_cast<int64_t>(std::min<uint64_t>(
                              static_cast<uint64_t>(stated.l2_bytes) / 4, kCopyBytes)) /
                          16 / 512 * 512;
    ATUNNER_TRY(const double l2,
                Time("probe_read", Sms() * 2, 512,
                     {KernelArg::Address(from.address()), LongArg(resident), IntArg(1), Sink()}));
    const double l2_gbps = 16.0 * static_cast<double>(resident) * Sms() * 2 / l2;
    Add("L2 read bandwidth", "GB/s", l2_gbps, stated.l2_gbps);
    result_.profile.l2_gbps = l2_gbps;
    return {};
  }

  Status SharedBandwidth() {
    const DeviceProfile& stated = device_.profile();
    constexpr int kRounds = 2000;
    ATUNNER_TRY(const double shared,
                Time("probe_shared", Sms() * 2, 1024, {IntArg(kRounds), Sink()}));
    Add("shared-memory bandwidth", "GB/s", 16.0 * 16 * 1024 * kRounds * Sms() * 2 / shared,
        stated.clock_ghz * 128 * stated.sms);
    return {};
  }

  Status Arithmetic() {
    const DeviceProfile& stated = device_.profile();
    const auto single = KernelArg::Scalar(PackScalar(DType::kFloat32, 0.999).value());
    const auto wide = KernelArg::Scalar(PackScalar(DType::kFloat64, 0.999).value());
    const double threads = 512.0 * Sms() * 4;
    ATUNNER_TRY(const double fp32,
                Time("probe_fp32", Sms() * 4, 512, {single, single, IntArg(4000), Sink()}));
    const double fp32_rate = threads * 32 * 4000 / fp32;  // FLOP per ns = GFLOP/s
    Add("float32 FMA", "TFLOP/s", fp32_rate / 1e3, stated.PeakFlops(DType::kFloat32, false) / 1e12);
    ATUNNER_TRY(const double fp64,
                Time("probe_fp64", Sms() * 4, 512, {wide, wide, IntArg(500), Sink()}));
    Add("float64 FMA", "TFLOP/s", threads * 32 * 500 / fp64 / 1e3,
        stated.PeakFlops(DType::kFloat64, false) / 1e12);
    if (!CapabilitiesOf(stated).mma_16bit) return {};
    ATUNNER_TRY(const double mma, Time("probe_mma", Sms() * 4, 256, {IntArg(2000), Sink()}));
    const double mma_rate = 8.0 * Sms() * 4 * 8 * 4096 * 2000 / mma;
    const double tensor_peak = stated.PeakFlops(DType::kBFloat16, true) / 1e12;
    Add("mma.sync bfloat16", "TFLOP/s", mma_rate / 1e3, tensor_peak * stated.mma_sync_share);
    if (tensor_peak > 0)
      result_.profile.mma_sync_share = std::min(1.0, mma_rate / 1e3 / tensor_peak);
    return {};
  }

  /// Time of one dependent load from a buffer of `bytes`, ns.
  Result<double> ChaseNs(uint64_t bytes) {
    constexpr int kSteps = 2000;
    ATUNNER_TRY(const auto ring, MakeRing(bytes));
    ATUNNER_RETURN_IF_ERROR(device_.Fill(kernels_->sink().address(), 0, 256));
    ATUNNER_TRY(
        const double ns,
        Time("probe_chase", 1, 1, {KernelArg::Address(ring->address()), IntArg(kSteps), Sink()}));
    return ns / kSteps;
  }

  Status Latencies() {
    const DeviceProfile& stated = device_.profile();
    ATUNNER_TRY(const double l2, ChaseNs(uint64_t{1} << 20));
    ATUNNER_TRY(const double dram, ChaseNs(std::max<uint64_t>(
                                       kCopyBytes, static_cast<uint64_t>(stated.l2_bytes) * 6)));
    Add("L2 latency", "ns", l2, stated.l2_latency / stated.clock_ghz);
    Add("DRAM latency", "ns", dram, stated.dram_latency / stated.clock_ghz);
    constexpr int kLaunches = 200;
    ATUNNER_TRY(const double launches, Time("probe_empty", 1, 32, {}, kLaunches));
    Add("launch, back to back", "us", launches / kLaunches / 1e3, stated.launch_overhead_us);
    result_.profile.l2_latency = l2 * stated.clock_ghz;
    result_.profile.dram_latency = dram * stated.clock_ghz;
    result_.profile.launch_overhead_us = launches / kLaunches / 1e3;
    return {};
  }

  /// A buffer with a random cycle of pointers through all its cache lines, so that neither a
  /// prefetcher nor the same page has the next one.
  Result<std::unique_ptr<Buffer>> MakeRing(uint64_t bytes) {
    const uint64_t places = bytes / kRingStride;
    std::vector<uint32_t> order(places);
    std::iota(order.begin(), order.end(), 0u);
    Random random(7);
    // Sattolo's shuffle gives a permutation that is a single cycle.
    for (uint64_t i = places - 1; i > 0; --i) std::swap(order[i], order[random.Below(i)]);
    std::vector<std::byte> image(bytes);
    for (uint64_t i = 0; i < places; ++i) {
      const uint32_t next = order[i] * static_cast<uint32_t>(kRingStride / 4);
      std::memcpy(image.data() + i * kRingStride, &next, sizeof next);
    }
    ATUNNER_TRY(auto ring, device_.Allocate(bytes));
    ATUNNER_RETURN_IF_ERROR(device_.CopyIn(ring->address(), image));
    return ring;
  }

  TimedDevice& device_;
  Compiler& compiler_;
  ProbeResult result_;
  std::optional<MicroBenchmarks> kernels_;
};

}  // namespace

Result<ProbeResult> Probe(TimedDevice& device, Compiler& compiler) {
  return Prober(device, compiler).Run();
}

}  // namespace atunner
