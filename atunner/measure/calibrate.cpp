#include "atunner/measure/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "atunner/base/clock.h"
#include "atunner/measure/micro_benchmarks.h"
#include "atunner/model/value/capabilities.h"
#include "embed/calibration.h"

namespace atunner {
namespace {

constexpr int kOperationsPerRound = 16;
constexpr uint64_t kStreamBytes = uint64_t{512} << 20;
constexpr uint64_t kSharedBytes = uint64_t{2} << 20;  // read by all SMs, fits into L2

/// Runs the micro-benchmarks of kernels/probe/calibration.cu.
class Calibrator {
 public:
  Calibrator(TimedDevice& device, Compiler& compiler, const DeviceProfile& probed)
      : device_(device),
        compiler_(compiler),
        profile_(probed),
        fit_(Calibration::Expected(probed)) {}

  Result<Calibration> Run() {
    ATUNNER_RETURN_IF_ERROR(Prepare());
    ATUNNER_RETURN_IF_ERROR(Launching());
    ATUNNER_RETURN_IF_ERROR(Chains());
    ATUNNER_RETURN_IF_ERROR(Barriers());
    ATUNNER_RETURN_IF_ERROR(Streams());
    fit_.source = "calibrated " + UtcTimestamp() + " on " + profile_.full_name;
    return fit_;
  }

 private:
  Status Prepare() {
    std::vector<std::string> entries = {
        "cal_step",    "cal_special",   "cal_fp64",      "cal_shuffle", "cal_rounded",
        "cal_barrier", "cal_shared",    "cal_l1",        "cal_branch",  "cal_read",
        "cal_code_64", "cal_code_1024", "cal_code_8192", "cal_empty"};
    if (can_.mma_16bit && can_.cp_async) entries.insert(entries.end(), {"cal_tensor", "cal_copy"});
    if (can_.clusters && can_.tma)
      entries.insert(entries.end(), {"cal_cluster", "cal_bulk", "cal_phase", "cal_arrival",
                                     "cal_remote_arrival", "cal_remote", "cal_remote_busy"});
    const uint64_t flushed = 2 *
                             static_cast<uint64_t>(std::max<int64_t>(profile_.l2_bytes, 4 << 20));
    ATUNNER_TRY(kernels_, MicroBenchmarks::Make(device_, compiler_, "calibration.cu",
                                                embed::kCalibrationCu, entries, flushed));
    ATUNNER_TRY(data_, device_.Allocate(kStreamBytes));
    return device_.Fill(data_->address(), 0, kStreamBytes);
  }

  KernelArg Sink() const { return KernelArg::Address(kernels_->sink().address()); }
  /// Time in ns with an emptied L2, as the harness measures.
  Result<double> Time(const char* entry, uint32_t grid, uint32_t block,
                      const std::vector<KernelArg>& args, int launches = 1) const {
    return kernels_->Time(entry, grid, block, args, launches);
  }

  /// Cycles per operation of a kernel (rounds, sink, ...): the difference between two numbers of
  /// rounds.
  Result<double> Cycles(const char* entry, uint32_t grid, uint32_t block,
                        std::vector<KernelArg> more = {}) {
    constexpr int kFew = 50, kMany = 450;
    const auto run = [&](int rounds) {
      std::vector<KernelArg> args = {IntArg(rounds), Sink()};
      args.insert(args.end(), more.begin(), more.end());
      return Time(entry, grid, block, args);
    };
    ATUNNER_TRY(const double few, run(kFew));
    ATUNNER_TRY(const double many, run(kMany));
    return (many - few) * profile_.clock_ghz / ((kMany - kFew) * kOperationsPerRound);
  }

  uint32_t Sms() const { return static_cast<uint32_t>(profile_.sms); }

  Status Launching() {
    constexpr uint32_t kBlocksPerSm = 256;
    ATUNNER_TRY(fit_.launch_ns, Time("cal_empty", Sms(), 128, {}));
    ATUNNER_TRY(const double many, Time("cal_empty", Sms() * kBlocksPerSm, 128, {}));
    constexpr int kMore = 4;
    ATUNNER_TRY(const double several, Time("cal_empty", Sms(), 128, {}, 1 + kMore));
    fit_.next_launch_ns = std::max(0.0, several - fit_.launch_ns) / kMore;
    fit_.block_ns = std::max(0.0, many - fit_.launch_ns) / (Sms() * (kBlocksPerSm - 1.0));
    const std::vector<KernelArg> args = {
        KernelArg::Scalar(PackScalar(DType::kFloat32, 0.5).value()), Sink()};
    ATUNNER_TRY(const double few, Time("cal_code_64", Sms(), 32, args));
    ATUNNER_TRY(const double some, Time("cal_code_1024", Sms(), 32, args));
    ATUNNER_TRY(const double lots, Time("cal_code_8192", Sms(), 32, args));
    // A loaded instruction issues in one cycle; the rest of its time is the loading.
    const double clk = profile_.clock_ghz;
    fit_.code_clk = std::max(0.0, (some - few) * clk / (1024 - 64) - 1);
    fit_.code_ns = std::max(0.0, few - fit_.launch_ns - 64 * (1 + fit_.code_clk) / clk);
    fit_.far_code_clk = std::max(0.0, (lots - some) * clk / (8192 - 1024) - 1 - fit_.code_clk);
    return {};
  }

  /// Latencies of dependent instructions.
  Status Chains() {
    ATUNNER_TRY(const double pair, Cycles("cal_step", 1, 32));
    fit_.step_clk = pair / 2;
    ATUNNER_TRY(fit_.special_clk, Cycles("cal_special", 1, 32));
    ATUNNER_TRY(fit_.fp64_clk, Cycles("cal_fp64", 1, 32));
    ATUNNER_TRY(fit_.shuffle_clk, Cycles("cal_shuffle", 1, 32));
    if (can_.mma_16bit) {
      ATUNNER_TRY(fit_.tensor_clk, Cycles("cal_tensor", 1, 32));
    }
    constexpr double kStepsOfRoot = 7;  // simple instructions of sqrt.rn, see op_cost.def
    ATUNNER_TRY(const double root, Cycles("cal_rounded", 1, 32));
    fit_.rounded_clk = std::max(0.0, root - kStepsOfRoot * fit_.step_clk);
    ATUNNER_RETURN_IF_ERROR(Loads());
    ATUNNER_RETURN_IF_ERROR(Branches());
    return BulkCopies();
  }

  Status Loads() {
    // A load and the addition that computes the next address.
    ATUNNER_TRY(const double shared, Cycles("cal_shared", 1, 32));
    fit_.shared_clk = shared - fit_.step_clk;
    ATUNNER_TRY(const double l1, Cycles("cal_l1", 1, 32, {KernelArg::Address(data_->address())}));
    fit_.l1_clk = l1 - fit_.step_clk;
    return {};
  }

  Status Branches() {
    ATUNNER_TRY(const double round, Cycles("cal_branch", 1, 32));
    const Calibration expected = Calibration::Expected(profile_);
    const double ratio = std::max(0.0, round - 2 * fit_.step_clk) /
                         (expected.predicate_clk + expected.branch_clk);
    fit_.predicate_clk = ratio * expected.predicate_clk;
    fit_.branch_clk = ratio * expected.branch_clk;
    return {};
  }

  Status BulkCopies() {
    if (!can_.tma) return {};
    constexpr double kTransfer = 128 / 64.0;  // 128 bytes through an SM's port of 64 bytes per clk
    ATUNNER_TRY(const double bulk,
                Cycles("cal_bulk", 1, 1, {KernelArg::Address(data_->address())}));
    fit_.bulk_clk = std::max(0.0, bulk - fit_.l2_clk - kTransfer);
    return {};
  }

  Status Barriers() {
    constexpr double kWarps = 32;
    ATUNNER_TRY(const double one, Cycles("cal_barrier", 1, 32));
    ATUNNER_TRY(const double many, Cycles("cal_barrier", 1, 1024));
    fit_.barrier_warp_clk = std::max(0.0, (many - one) / (kWarps - 1));
    fit_.barrier_clk = std::max(0.0, one - fit_.barrier_warp_clk);
    if (!can_.clusters) return {};
    ATUNNER_TRY(fit_.cluster_barrier_clk, Cycles("cal_cluster", 2, 32));
    return Clusters();
  }

  /// mbarriers in the block's own shared memory and in that of another block of the cluster.
  Status Clusters() {
    ATUNNER_TRY(const double wait, Cycles("cal_phase", 1, 1));
    ATUNNER_TRY(const double there_and_back, Cycles("cal_arrival", 1, 64));
    fit_.arrival_clk = std::max(0.0, there_and_back / 2 - wait);
    ATUNNER_TRY(const double remote, Cycles("cal_remote_arrival", 2, 1));
    fit_.remote_arrival_clk = std::max(0.0, remote / 2 - wait);
    ATUNNER_TRY(const double load, Cycles("cal_remote", 2, 32));
    fit_.remote_clk = load - fit_.step_clk;
    constexpr uint32_t kWarps = 8;
    constexpr uint32_t kPackets = 4;  // 32-byte packets in a warp's load
    ATUNNER_TRY(const double loads, Cycles("cal_remote_busy", 2, 32 * kWarps));
    fit_.remote_busy_clk = loads / (kWarps * kPackets);
    return {};
  }

  /// Time of reading `bytes`; with `reuse` every block reads all of them `rounds` times.
  Result<double> Read(uint64_t bytes, uint32_t blocks_per_sm, int rounds, bool reuse) {
    return Time("cal_read", Sms() * blocks_per_sm, 256,
                {KernelArg::Address(data_->address()), IntArg(static_cast<int64_t>(bytes / 16)),
                 IntArg(rounds), Sink(), IntArg(reuse ? 1 : 0)});
  }

  Status Streams() {
    constexpr uint32_t kBlocksPerSm = 8;
    ATUNNER_TRY(const double half, Read(kStreamBytes / 2, kBlocksPerSm, 1, false));
    ATUNNER_TRY(const double whole, Read(kStreamBytes, kBlocksPerSm, 1, false));
    fit_.dram_gbps = std::min(profile_.dram_gbps,
                              static_cast<double>(kStreamBytes) / 2 / std::max(whole - half, 1.0));
    ATUNNER_RETURN_IF_ERROR(L2Bandwidths());
    // Reads into a cache full of dirty data evict that: their time beyond that of their own bytes.
    constexpr uint64_t kSome = uint64_t{32} << 20;
    ATUNNER_TRY(const double cold, Read(kSome, kBlocksPerSm, 1, false));
    const double base = fit_.launch_ns + fit_.code_ns + profile_.dram_latency / profile_.clock_ghz;
    fit_.evicted_share = std::clamp((cold - base) * fit_.dram_gbps / static_cast<double>(kSome) - 1,
                                    0.0, 1.0);
    fit_.l2_clk = profile_.l2_latency;
    fit_.mma_share = profile_.mma_sync_share;
    return {};
  }

  /// GB/s of 4 blocks per SM that each read kSharedBytes three times more in `often` than in
  /// `once`.
  Result<double> SharedBandwidth(const Result<double>& once, const Result<double>& often) const {
    if (!once) return once;
    if (!often) return often;
    return 3.0 * static_cast<double>(kSharedBytes) * Sms() * 4 / std::max(*often - *once, 1.0);
  }

  Status L2Bandwidths() {
    ATUNNER_TRY(fit_.l2_gbps,
                SharedBandwidth(Read(kSharedBytes, 4, 1, true), Read(kSharedBytes, 4, 4, true)));
    if (!can_.cp_async) return {};
    // The blocks that run at the same time on a matrix product cover about a square of its tiles,
    // so that √SMs of them read the same tile together. L2 answers that faster than requests for
    // different bytes.
    const auto together = std::lround(std::sqrt(profile_.sms));
    const auto copy = [&](int rounds) {
      return Time("cal_copy", Sms() * 4, 256,
                  {KernelArg::Address(data_->address()), IntArg(kSharedBytes / 16), IntArg(rounds),
                   Sink(), IntArg(together)});
    };
    ATUNNER_TRY(fit_.l2_async_gbps, SharedBandwidth(copy(1), copy(4)));
    return {};
  }

  TimedDevice& device_;
  Compiler& compiler_;
  DeviceProfile profile_;
  Capabilities can_ = CapabilitiesOf(profile_);
  Calibration fit_;
  std::optional<MicroBenchmarks> kernels_;
  std::unique_ptr<Buffer> data_;
};

}  // namespace

Result<Calibration> Calibrate(TimedDevice& device, Compiler& compiler,
                              const DeviceProfile& probed) {
  return Calibrator(device, compiler, probed).Run();
}

}  // namespace atunner
