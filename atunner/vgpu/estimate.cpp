#include "atunner/vgpu/estimate.h"

#include <algorithm>
#include <cmath>

namespace atunner::vgpu {
namespace {

/// Uncalibrated analytic models of this kind err by 10–30 % on kernels they suit; the interval says so.
constexpr double kUncertainty = 0.3;
/// Share of the peak DRAM bandwidth that streaming kernels reach on every GPU we know.
constexpr double kDramEfficiency = 0.9;

double Of(const Counts& counts, OpClass op_class) {
  return static_cast<double>(counts.warp_instructions[static_cast<size_t>(op_class)]);
}

/// Cycles that one SM's pipes need for the counted instructions: each pipe works alone, the slowest bounds.
struct PipeTimes {
  double issue = 0, math = 0, special = 0, tensor = 0, memory_pipe = 0;
  double Worst() const { return std::max({issue, math, special, tensor, memory_pipe}); }
};

PipeTimes Pipes(const DeviceProfile& p, const Counts& c) {
  PipeTimes t;
  t.issue = static_cast<double>(c.TotalWarpInstructions()) / p.schedulers_per_sm;
  const auto clocks = [&](OpClass op_class, double rate) { return rate > 0 ? Of(c, op_class) * 32 / rate : 0; };
  // float32 and integer share issue slots but not pipes; the multiplier belongs to the float side.
  const double fp32 = clocks(OpClass::kFp32, p.fp32_per_clk) + clocks(OpClass::kMultiply, p.imad_per_clk);
  const double integer = clocks(OpClass::kInteger, p.int_per_clk);
  t.math = std::max(fp32, integer) + clocks(OpClass::kFp64, p.fp64_per_clk) + clocks(OpClass::kFp16, p.fp16_per_clk);
  t.special = std::max(clocks(OpClass::kSpecial, p.sfu_per_clk), clocks(OpClass::kConversion, p.cvt_per_clk));
  const double tensor_rate = p.tensor_fp16_fma_per_clk;  // wgmma reaches it, mma a part
  t.tensor = tensor_rate > 0 ? (c.mma_work / p.mma_sync_share + c.wgmma_work) / 2 / tensor_rate : 0;
  const double global = static_cast<double>(c.global_load_sectors + c.global_store_sectors) / 4;  // 128 bytes per clock
  t.memory_pipe = static_cast<double>(c.shared_wavefronts) + global + Of(c, OpClass::kShuffle) +
                  static_cast<double>(c.local_requests) * 4;
  return t;
}

}  // namespace

Estimate EstimateTime(const EstimateInput& in) {
  const DeviceProfile& p = *in.profile;
  const double blocks = static_cast<double>(in.shape.grid.Count());
  const double scale = blocks / static_cast<double>(std::max<uint64_t>(in.blocks_executed, 1));
  const int resident = std::max(1, in.occupancy.blocks_per_sm);
  const double concurrent = static_cast<double>(resident) * p.sms;
  const double ns_per_clk = 1.0 / p.clock_ghz;
  const Counts& c = in.counts;

  // Throughput of the SMs: all blocks' pipe cycles, spread over the SMs, with the tail of the last wave.
  const PipeTimes pipes = Pipes(p, c);
  const double waves = std::ceil(blocks / concurrent);
  const double filled = blocks / (waves * concurrent);
  const double sms_used = std::min<double>(p.sms, blocks);
  const double per_sm = scale / sms_used;
  const double throughput_ns = pipes.Worst() * per_sm * ns_per_clk;
  const double tail_ns = waves > 1 ? throughput_ns * (1.0 / std::max(filled, 0.05) - 1.0) / waves : 0;

  // Memory: sectors that leave the SM go through L2; distinct bytes come from DRAM.
  const double load_bytes = static_cast<double>(c.unique_load_sectors) * 32 * scale;
  const double store_bytes = static_cast<double>(c.unique_store_sectors) * 32 * scale;
  const double l2_ns = (load_bytes + store_bytes) / p.l2_gbps;
  const double compulsory = std::min(load_bytes + store_bytes, in.footprint_bytes);
  // Blocks that read the same bytes find them in L2 as long as the data fits there.
  const double reuse = load_bytes + store_bytes - compulsory;
  const double overflow = std::clamp(1.0 - static_cast<double>(p.l2_bytes) / std::max(compulsory, 1.0), 0.0, 1.0);
  const double dram_bytes = compulsory + 0.1 * overflow * reuse;
  const double dram_ns = dram_bytes / (p.dram_gbps * kDramEfficiency);

  // Latency: rounds of dependent loads of one warp, one after the other, wave by wave.
  const double warps = static_cast<double>(std::max<uint64_t>(c.warps, 1));
  const double rounds = static_cast<double>(c.dependent_load_rounds) / warps;
  const double barriers = static_cast<double>(c.barriers) / warps;
  const double hit_share = load_bytes > 0 ? std::clamp(1.0 - dram_bytes / (load_bytes + store_bytes), 0.0, 1.0) : 0;
  const double latency_clk = rounds * (hit_share * p.l2_latency + (1 - hit_share) * p.dram_latency) + barriers * 20;
  const double latency_ns = latency_clk * ns_per_clk * waves;

  const double launch_ns = p.launch_overhead_us * 1000;
  struct Candidate {
    const char* name;
    double ns;
  };
  const Candidate bounds[] = {
      {"SM pipes", throughput_ns + tail_ns}, {"L2", l2_ns}, {"DRAM", dram_ns}, {"latency", latency_ns}};
  const Candidate* worst = std::ranges::max_element(bounds, {}, &Candidate::ns);
  Estimate estimate;
  double total = launch_ns + worst->ns;
  for (const Candidate& bound : bounds) {
    estimate.parts.push_back({bound.name, bound.ns, &bound != worst});
    // Nothing overlaps perfectly: a fifth of what hides behind the bound shows.
    if (&bound != worst) {
      estimate.parts.push_back({std::string(bound.name) + " not hidden", 0.2 * bound.ns, false});
      total += 0.2 * bound.ns;
    }
  }
  estimate.parts.push_back({"launch", launch_ns, false});
  estimate.time_ns = total;
  estimate.low_ns = total * (1 - kUncertainty);
  estimate.high_ns = total * (1 + kUncertainty);
  estimate.limiter = worst->name;
  if (worst->name == std::string("SM pipes")) {
    estimate.limiter = pipes.tensor == pipes.Worst()        ? "tensor cores"
                       : pipes.math == pipes.Worst()        ? "arithmetic"
                       : pipes.special == pipes.Worst()     ? "special functions"
                       : pipes.memory_pipe == pipes.Worst() ? "shared memory and L1"
                                                            : "instruction issue";
  }
  estimate.device = p.name;
  estimate.blocks_executed = in.blocks_executed;
  estimate.blocks_total = in.shape.grid.Count();
  estimate.dram_bytes = dram_bytes;
  estimate.flops = (Of(c, OpClass::kFp32) * 32 * 2 + c.tensor_flops) * scale;
  estimate.occupancy = in.occupancy.share;
  return estimate;
}

}  // namespace atunner::vgpu
