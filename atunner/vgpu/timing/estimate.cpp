#include "atunner/vgpu/timing/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atunner::vgpu {
namespace {

/// Relative error of most predictions, calibrated or not; see docs/benchmarks.md.
constexpr double kUncertainty = 0.25;
constexpr double kUncertaintyUncalibrated = 0.4;
constexpr double kMostSharpness = 4;
constexpr double kMostMemorySharpness = 8;
constexpr double kPrefetchSharpness = 2.5;
constexpr double kSectorBytes = 32;
constexpr double kWavefrontBytes = 128;
constexpr double kPortBytesPerClk = 64;  // from L2 into one SM
// reads that still find the cache full of another kernel's data
constexpr double kEvictingBytes = 40e6;
constexpr double kCodeCacheInstructions = 1500;
// that a pass of atomic updates keeps a part of L2 busy: 0.74 ns on an H200
constexpr double kAtomicClocks = 1.46;

/// Blocks of the launch that one SM holds at a time.
double Resident(const Occupancy& occupancy, const LaunchShape& shape,
                const DeviceProfile& profile) {
  const double blocks_per_sm = std::ceil(static_cast<double>(shape.grid.Count()) / profile.sms);
  return std::max(1.0, std::min<double>(occupancy.blocks_per_sm, blocks_per_sm));
}

/// Bytes of an SM's L1 beside shared memory. The driver chooses the smallest carve-out into which
/// as many blocks fit as may be resident, even if the grid has fewer.
double L1Bytes(const DeviceProfile& profile, const KernelResources& resources,
               const LaunchShape& shape, const Occupancy& occupancy) {
  const double block = resources.static_shared_bytes + shape.dynamic_shared_bytes +
                       profile.shared_reserved_per_block;
  const double wanted = std::max(1, occupancy.blocks_per_sm) * block;
  const auto enough = std::ranges::find_if(profile.shared_carveouts,
                                           [&](int size) { return size * 1024 >= wanted; });
  return profile.l1_per_sm -
         (enough == profile.shared_carveouts.end() ? profile.shared_per_sm : *enough * 1024);
}

struct Share {
  std::string name;
  double value = 0;  ///< cycles or ns
};

double Overlap(const std::vector<Share>& shares, double sharpness) {
  double worst = 0;
  for (const Share& share : shares) worst = std::max(worst, share.value);
  if (worst <= 0) return 0;
  double sum = 0;
  for (const Share& share : shares) sum += std::pow(share.value / worst, sharpness);
  return worst * std::pow(sum, 1 / sharpness);
}

/// Exponents of overlap: two overlapping times a and b take (a^p + b^p)^(1/p), so that a large p
/// hides the shorter one completely. Work overlaps with other work that does not wait for it: of
/// other blocks, or of warps that no barrier synchronises. A single warp adds up its times (p = 1).
struct Sharpness {
  double pipes = 0;   ///< between the pipes of one SM
  double waves = 0;   ///< between latencies and the SM's throughput
  double memory = 0;  ///< between SMs, memory, and the launching of blocks
};

/// Number of waves of blocks; at least 1.
double Waves(const EstimateInput& in) {
  const double at_once = std::max(1, in.occupancy.blocks_per_sm) *
                         static_cast<double>(in.profile->sms);
  return std::max(1.0, static_cast<double>(in.shape.grid.Count()) / at_once);
}

/// Blocks that the counts are of.
double Executed(const EstimateInput& in) {
  return in.blocks_counted > 0 ? in.blocks_counted
                               : static_cast<double>(std::max<uint64_t>(in.blocks_executed, 1));
}

/// Number of times that an average block waits for DRAM, from the difference of its two paths.
double WaitsForDram(const EstimateInput& in) {
  const double longer = (in.counts.path[1] - in.counts.path[0]) / Executed(in);
  return std::max(1.0, longer / std::max(1.0, in.calibration.dram_clk - in.calibration.l2_clk));
}

/// Number of rounds in which an SM requests data. Asynchronous copies run ahead of a block by the
/// size of shared memory.
double Rounds(const EstimateInput& in) {
  const double shared = in.resources.static_shared_bytes + in.shape.dynamic_shared_bytes;
  const double refills = static_cast<double>(in.counts.async_copy_bytes) / Executed(in) /
                         std::max(1.0, shared);
  return Waves(in) * std::max(WaitsForDram(in), refills);
}

/// Bytes that an SM has requested from DRAM during a latency, divided by its share of what DRAM
/// delivers in that time; at least 1.
double AskedAhead(const EstimateInput& in) {
  const double asked = static_cast<double>(in.counts.global.unique_load_sectors) * kSectorBytes /
                       Executed(in) / WaitsForDram(in);
  const double bytes_per_clk = in.calibration.dram_gbps / in.profile->clock_ghz / in.profile->sms;
  return std::max(1.0, Resident(in.occupancy, in.shape, *in.profile) * asked /
                           std::max(1.0, bytes_per_clk * in.calibration.dram_clk));
}

/// Overlap of memory with the SMs' work. A single round of loads overlaps with nothing, because the
/// blocks of one wave begin, load and compute at the same time; the blocks of later waves begin
/// whenever one ends. If more bytes were requested than DRAM delivers meanwhile, it works while
/// blocks compute. Asynchronous copies of later rounds run ahead, but at most by the size of shared
/// memory: memory is idle while all blocks store.
double MemorySharpness(const EstimateInput& in) {
  const double rounds = Rounds(in);
  if (in.counts.async_copy_bytes > 0) return std::min(kPrefetchSharpness, 1 + std::log2(rounds));
  const double ahead = (1 - 1 / rounds) * std::log2(AskedAhead(in));
  return std::min(kMostMemorySharpness, 1.5 - 0.5 / rounds + 0.5 * (std::log2(Waves(in)) + ahead));
}

/// Number of warps of a block that hide each other's latencies. Warps run in step after a barrier,
/// until loads of different latency have separated them. Warps that wait for the same bulk copies
/// always run in step.
double FreeWarps(const EstimateInput& in) {
  if (in.counts.global.bulk_sectors > 0) return 1;
  constexpr double kInStep = 32;  // latencies of L2 after each barrier
  const double warps = std::max(1.0, static_cast<double>(in.shape.block.Count()) / 32);
  const double in_step = static_cast<double>(in.counts.barriers) / warps * kInStep *
                         in.calibration.l2_clk;
  return 1 + (warps - 1) * std::max(0.0, 1 - in_step / std::max(in.counts.path[0], 1.0));
}

/// Between latencies and the throughput of an SM that holds so many blocks.
double WaveSharpness(const EstimateInput& in, double resident) {
  return std::min(3.0, 1.25 + 0.5 * std::log2(resident * FreeWarps(in)));
}

Sharpness SharpnessOf(const EstimateInput& in) {
  const double resident = Resident(in.occupancy, in.shape, *in.profile);
  const double doublings = std::log2(resident * FreeWarps(in));
  return {std::min(kMostSharpness, 3 + doublings), WaveSharpness(in, resident),
          MemorySharpness(in)};
}

Share Worst(const std::vector<Share>& shares) {
  return *std::ranges::max_element(shares, {}, &Share::value);
}

/// Cycles of an average block for floating-point operations of 16 bits at the tensor cores' peak.
double TensorClocks(const EstimateInput& in, double flops) {
  const double rate = 2 * in.profile->tensor_fp16_fma_per_clk * Executed(in);
  return rate > 0 ? flops / rate : 0;
}

/// An SM whose tensor cores are at work runs slower, all of it: `ncu` sees 1.72 to 1.78 GHz on an
/// H200, 1.95 to 1.98 in other kernels.
double ClockGhz(const EstimateInput& in) {
  return in.profile->clock_ghz * (in.counts.tensor.wgmma_work > 0 ? in.calibration.wgmma_share : 1);
}

/// Bytes per clock that asynchronous copies bring into each SM when all SMs load.
double AsyncBytesPerClk(const EstimateInput& in) {
  return std::min(kPortBytesPerClk,
                  in.calibration.l2_async_gbps / in.profile->clock_ghz / in.profile->sms);
}

/// Work beside the warps: wgmma, bulk copies, and their accesses to shared memory. The block's path
/// already includes waits for it.
Share Beside(const EstimateInput& in) {
  const double blocks = Executed(in);
  const double sectors = static_cast<double>(in.counts.global.bulk_sectors);
  return Worst(
      {{"tensor cores", TensorClocks(in, in.counts.tensor.wgmma_work)},
       {"shared memory beside", static_cast<double>(in.counts.shared.async_wavefronts) / blocks},
       {"L2 port", sectors * kSectorBytes / AsyncBytesPerClk(in) / blocks}});
}

/// Share of bytes that a cache has evicted when they are read again after `meanwhile` other bytes.
double Misses(double capacity, double meanwhile) {
  return meanwhile > capacity ? 1 - capacity / meanwhile : 0;
}

/// Bytes that the threads of all resident blocks of an SM keep in local memory.
double LocalBytesPerSm(const DeviceProfile& profile, const KernelResources& resources,
                       const LaunchShape& shape, const Occupancy& occupancy) {
  return Resident(occupancy, shape, profile) * static_cast<double>(shape.block.Count()) *
         resources.local_bytes;
}

/// Share of spilled bytes that L1 has evicted to L2 when they are loaded again.
double SpillMisses(const DeviceProfile& profile, const KernelResources& resources,
                   const LaunchShape& shape, const Occupancy& occupancy) {
  return Misses(L1Bytes(profile, resources, shape, occupancy),
                LocalBytesPerSm(profile, resources, shape, occupancy));
}

/// Bytes that an average block spills and brings back past L1.
double SpilledBytes(const EstimateInput& in) {
  const double words = static_cast<double>(in.counts.spilled_words) * 32;  // lanes
  return 4 * words / Executed(in) * SpillMisses(*in.profile, in.resources, in.shape, in.occupancy);
}

/// Sectors that an average block loads, without those of asynchronous copies.
double LoadedSectors(const EstimateInput& in) {
  const double async = static_cast<double>(in.counts.async_copy_bytes) / kSectorBytes;
  return (static_cast<double>(in.counts.global.unique_load_sectors) - async) / Executed(in);
}

/// The load sectors that all blocks load.
double CommonSectorsOf(const EstimateInput& in) {
  return std::min(static_cast<double>(in.counts.global.common_load_sectors),
                  std::max(0.0, LoadedSectors(in)));
}

/// Common sectors that an earlier block left in the L1 of its SM. The first block of each SM loads
/// them.
double LeftByOthers(const EstimateInput& in) {
  const double blocks = static_cast<double>(in.shape.grid.Count());
  const double later = std::max(0.0, 1 - in.profile->sms / blocks);
  const double resident = Resident(in.occupancy, in.shape, *in.profile);
  const double l1 = L1Bytes(*in.profile, in.resources, in.shape, in.occupancy);
  return CommonSectorsOf(in) * later *
         (1 - Misses(l1, resident * LoadedSectors(in) * kSectorBytes));
}

/// Clocks that a wavefront takes between shared memory or L1 and the SM.
double WavefrontClocks(const DeviceProfile& p) {
  return p.l1_bytes_per_clk > 0 ? kWavefrontBytes / p.l1_bytes_per_clk : 1;
}

/// The minimal number of wavefronts of a warp's access: the load/store units process few lanes per
/// clock.
double LeastWavefronts(const DeviceProfile& p) {
  return std::max(1.0, 32 / std::max(p.lsu_per_clk, 1.0) / WavefrontClocks(p));
}

/// Share of a block's time in which its requests wait for DRAM. Only in the first wave, in which
/// all blocks request data at once.
double LateShare(const EstimateInput& in) {
  if (in.counts.path[1] <= 0) return 0;
  return std::clamp(1 - in.counts.path[0] / in.counts.path[1], 0.0, 1.0) / Waves(in);
}

/// Cycles for which the warps of an average block occupy each pipe of their SM.
std::vector<Share> Pipes(const EstimateInput& in) {
  const DeviceProfile& p = *in.profile;
  const Counts& c = in.counts;
  const double blocks = Executed(in);
  const auto uses = [&](Pipe pipe) {
    return static_cast<double>(c.pipe_uses[static_cast<size_t>(pipe)]) / blocks;
  };
  const auto per_block = [&](auto figure) { return static_cast<double>(figure) / blocks; };
  const auto clocks = [](double warp_instructions, double lanes_per_clk) {
    return lanes_per_clk > 0 ? warp_instructions * 32 / lanes_per_clk : 0;
  };
  // Multiply-adds of integers use half of the float32 lanes; integer additions go where there is
  // room.
  const double fma = uses(Pipe::kFma), imad = uses(Pipe::kImad), alu = uses(Pipe::kAlu),
               either = uses(Pipe::kEither);
  const double arithmetic = std::max(
      {clocks(fma + imad, p.fp32_per_clk), clocks(imad, p.imad_per_clk), clocks(alu, p.int_per_clk),
       clocks(alu + either + imad, 2 * p.int_per_clk),
       clocks(fma + imad + alu + either, p.fp32_per_clk + p.int_per_clk)});
  const double requests = per_block(c.shared.requests + c.global.loads + c.global.stores);
  const double wavefronts = per_block(c.shared.wavefronts + c.global.wavefronts + c.local_requests -
                                      c.shared.async_wavefronts);
  const double assumed = std::max(wavefronts,
                                  (requests + per_block(c.local_requests)) * LeastWavefronts(p)) +
                         std::max(0.0, uses(Pipe::kLsu) - requests);
  const double issued =
      // accesses that were merged
      c.shared.issued_wavefronts > 0 ? per_block(c.shared.issued_wavefronts) : assumed;
  const double late = per_block(c.global.late_wavefronts) -
                      per_block(c.global.loads) * (LeastWavefronts(p) - 1);
  const double lsu = issued + std::max(0.0, late) * LateShare(in);
  const double sectors = per_block(c.global.unique_load_sectors + c.global.unique_store_sectors +
                                   c.global.reread_sectors);
  const double passing = sectors - per_block(c.global.bulk_sectors) - LeftByOthers(in);
  const double port = (std::max(0.0, passing) * kSectorBytes + SpilledBytes(in)) / kPortBytesPerClk;
  return {{"instruction issue", per_block(c.issued) / p.schedulers_per_sm},
          {"arithmetic", arithmetic},
          {"special functions", clocks(uses(Pipe::kSfu), p.sfu_per_clk)},
          {"float64", clocks(uses(Pipe::kFp64), p.fp64_per_clk)},
          {"tensor cores", TensorClocks(in, c.tensor.mma_work / in.calibration.mma_share)},
          {"shared memory and L1", lsu * WavefrontClocks(p)},
          {"other blocks' shared memory",
           per_block(c.shared.remote_packets) * in.calibration.remote_busy_clk},
          {"L2 port", port}};
}

/// Bytes of the whole launch.
struct Traffic {
  double load = 0, store = 0;            ///< between SMs and L2
  double async = 0;                      ///< part of the loads, by asynchronous copies
  double awaited = 0;                    ///< part of these, for which blocks waited on their path
  double spilled = 0;                    ///< register spills, loads and stores, in addition
  double dram_read = 0, dram_write = 0;  ///< each byte counts once
  double dram_spilled = 0;               ///< loads and stores of spilled registers
  double evicted = 0;                    ///< dirty bytes of other kernels that are written back
  /// Share of first reads that miss L2, because no earlier launch left the bytes there
  double cold = 1;
  double Dram() const { return dram_read + dram_write + dram_spilled + evicted; }
};

/// Bytes of the executed blocks that are read again, by where they come from.
struct Reread {
  double l2 = 0, dram = 0;
};

double BlocksAtWork(const EstimateInput& in) {
  const double resident = Resident(in.occupancy, in.shape, *in.profile);
  return std::min(static_cast<double>(in.shape.grid.Count()), resident * in.profile->sms);
}

/// Number of concurrent blocks that read a byte which `reads` blocks read in total. The concurrent
/// blocks form a square of tiles, of which a row or a column reads the same data.
double Together(const EstimateInput& in, double reads) {
  return std::clamp(reads, 1.0, std::sqrt(BlocksAtWork(in)));
}

/// `reads`: blocks that read the same byte.
Reread RereadOf(const EstimateInput& in, double reads) {
  const Counts& c = in.counts;
  if (c.global.l1_hit_sectors == 0) return {};
  const double resident = Resident(in.occupancy, in.shape, *in.profile);
  const double distance = kSectorBytes * static_cast<double>(c.global.reuse_distance) /
                          static_cast<double>(c.global.l1_hit_sectors);
  const double l1 = L1Bytes(*in.profile, in.resources, in.shape, in.occupancy);
  const double bytes = kSectorBytes * static_cast<double>(c.global.l1_hit_sectors);
  const double from_l2 = bytes * Misses(l1, resident * distance);
  const double all = std::min(BlocksAtWork(in) * distance / Together(in, reads),
                              in.footprint_bytes);
  return {from_l2, from_l2 * Misses(static_cast<double>(in.profile->l2_bytes), all)};
}

/// Bytes that earlier launches left in L2, of the `distinct` ones that this launch accesses. A
/// stream of more bytes than L2 holds evicts its own begin.
double KeptBytes(const EstimateInput& in, double distinct) {
  const double again = std::min({in.known_bytes, in.moved_before, distinct});
  return in.moved_before + distinct - again <= static_cast<double>(in.profile->l2_bytes) ? again
                                                                                         : 0;
}

Traffic TrafficOf(const EstimateInput& in) {
  const double blocks = static_cast<double>(in.shape.grid.Count());
  const double scale = blocks / Executed(in);
  Traffic t;
  const double again = static_cast<double>(in.counts.global.reread_sectors) * kSectorBytes * scale;
  t.load = static_cast<double>(in.counts.global.unique_load_sectors) * kSectorBytes * scale;
  t.store = static_cast<double>(in.counts.global.unique_store_sectors) * kSectorBytes * scale;
  const double updated = static_cast<double>(in.counts.global.updated_sectors) * kSectorBytes *
                         scale;
  const double distinct = std::min(t.load + t.store - updated, in.footprint_bytes);
  t.dram_write = std::min(t.store, distinct);
  const double first_read = std::max(distinct - t.dram_write, 0.0) +
                            std::min(updated, t.dram_write);
  t.dram_read = std::min(t.load, first_read);
  t.load += again - LeftByOthers(in) * kSectorBytes * blocks;
  t.async = std::min(t.load, static_cast<double>(in.counts.async_copy_bytes) * scale);
  const double bulk = static_cast<double>(in.counts.global.bulk_sectors) * kSectorBytes * scale;
  t.awaited = std::min(t.async, bulk / Resident(in.occupancy, in.shape, *in.profile));
  // Blocks find bytes that other blocks have read in L2, unless more bytes than L2 holds were
  // accessed in between. Bytes that all blocks read stay in L2.
  const double reads = t.load / std::max(first_read, 1.0);
  const double l2 = static_cast<double>(in.profile->l2_bytes);
  const double common = CommonSectorsOf(in) * kSectorBytes;
  const double stays = common <= l2
                           ? std::max(0.0, common - LeftByOthers(in) * kSectorBytes) * blocks
                           : 0;
  const double overflow = std::clamp(1 - l2 / std::max(distinct, 1.0), 0.0, 1.0);
  const double shared = std::max(0.0, t.load - stays - t.dram_read);
  // Repeated reads are served by L1, L2 or DRAM, as far as each holds the data that the concurrent
  // blocks read in between.
  const Reread reread = RereadOf(in, reads);
  t.load += reread.l2 * scale;
  t.dram_read += reread.dram * scale + overflow * shared / Together(in, reads);
  t.spilled = SpilledBytes(in) * blocks;
  const double all = in.profile->sms *
                     LocalBytesPerSm(*in.profile, in.resources, in.shape, in.occupancy);
  t.dram_spilled = t.spilled * Misses(l2, all);
  t.cold = std::max(0.0, 1 - KeptBytes(in, distinct) / std::max(t.dram_read, 1.0));
  t.dram_read *= t.cold;
  const double others = std::max(0.0, kEvictingBytes - in.moved_before);
  t.evicted = in.calibration.evicted_share * std::min(t.dram_read, others);
  return t;
}

/// SMs that clusters can use: their blocks share a group of SMs that the chip is made of, 16 of
/// them in most, and some groups are incomplete. On an H200 30 clusters of four are resident, 39 of
/// three, 22 of five, 15 of eight.
double SmsForClusters(const EstimateInput& in) {
  constexpr double kGroup = 16, kComplete = 120.0 / 132;
  const auto blocks = static_cast<double>(in.cluster);
  if (blocks <= 2 || blocks > kGroup) return in.profile->sms;
  return std::floor(kGroup / blocks) * blocks / kGroup * kComplete * in.profile->sms;
}

/// Blocks that all run at once end with the longest of them; where others follow, those fill what
/// it leaves idle.
double Imbalance(const EstimateInput& in) {
  const double mean = in.counts.path[1] / Executed(in);
  return mean > 0 ? std::max(1.0, in.counts.longest_path[1] / mean) : 1;
}

/// Time in tensor core kernels that no other work of a tile hides, in ns: the first use of a tensor
/// map by an SM, and the stores of results, which all SMs keep in registers until their sums are
/// complete and then store at the same time.
double Exposed(const EstimateInput& in, const Traffic& traffic) {
  if (in.counts.tensor.wgmma_work + in.counts.tensor.mma_work <= 0 ||
      in.counts.async_copy_bytes == 0)
    return 0;
  const double map = in.counts.global.bulk_sectors > 0
                         ? in.calibration.tensor_map_clk / in.profile->clock_ghz
                         : 0;
  return map +
         traffic.store / in.calibration.l2_gbps / Resident(in.occupancy, in.shape, *in.profile);
}

/// The time of the SMs, and the unit that bounds it.
struct Execution {
  double ns = 0;
  std::string limiter;
  std::vector<Share> shares;  ///< in ns, of all waves
};

/// Cycles of the SMs, as if each limit were the only one, and together.
struct SmClocks {
  double path = 0, demand = 0, beside = 0, total = 0;
};

/// An average block on an SM, in cycles.
struct AverageBlock {
  double l2_path = 0, dram_path = 0;
  double demand = 0, beside = 0;
  /// Share of its loads that DRAM serves: in the first wave, which hits bytes of earlier launches
  /// in L2, and in later waves, which hit bytes that blocks share.
  double first = 1, later = 1;
  double Path(double dram_share) const { return l2_path + (dram_path - l2_path) * dram_share; }
};

/// Waves of blocks that do about the same.
SmClocks ClocksOfWaves(const EstimateInput& in, const AverageBlock& block, double sharpness) {
  const double blocks = static_cast<double>(in.shape.grid.Count());
  const double resident = std::max(1, in.occupancy.blocks_per_sm);
  const double sms = SmsForClusters(in);
  const double at_once = resident * sms;
  SmClocks clocks;
  const auto add = [&](double waves, double blocks_per_sm, double dram_share, double longer = 1) {
    const double path = block.Path(dram_share) * longer;
    const double work = blocks_per_sm + longer - 1;  // one of the SM's blocks is the longest
    clocks.path += waves * path;
    clocks.demand += waves * work * block.demand;
    clocks.beside += waves * work * block.beside;
    clocks.total += waves * std::max(Overlap({{"", path}, {"", work * block.demand}}, sharpness),
                                     work * block.beside);
  };
  const double full = std::floor(blocks / at_once);
  const double rest = blocks - full * at_once;
  if (full >= 1) add(1, resident, block.first, full > 1 || rest > 0 ? 1 : Imbalance(in));
  if (full > 1) add(full - 1, resident, block.later);
  if (rest > 0)
    add(1, std::ceil(rest / sms), full >= 1 ? block.later : block.first,
        full >= 1 ? 1 : Imbalance(in));
  return clocks;
}

/// The shares of blocks with their paths relative to that of an average block in later waves. In a
/// single wave all blocks begin with loads from DRAM, as many as a block of the usual size has;
/// what decides is a block that is still at work when others have read what they share.
std::vector<BlockShare> SharesOfPaths(const EstimateInput& in, const AverageBlock& block,
                                      bool single_wave) {
  std::vector<BlockShare> shares = in.shares;
  const double later = block.Path(block.later), first = block.Path(block.first);
  if (!single_wave || first <= later || later <= 0) return shares;
  constexpr float kIdle = 0.01F;
  const auto busy = std::ranges::count_if(shares,
                                          [](const BlockShare& b) { return b.path > kIdle; });
  const double usual = static_cast<double>(shares.size()) /
                       std::max(1.0, static_cast<double>(busy));
  for (BlockShare& share : shares) {
    const double path = share.path;
    share.path = static_cast<float>(path + std::min(path, usual) * (first / later - 1));
  }
  return shares;
}

/// Blocks that differ, one by one.
SmClocks ClocksOfShares(const EstimateInput& in, const AverageBlock& block) {
  SmModel model;
  model.sms = static_cast<uint64_t>(SmsForClusters(in));
  model.resident = static_cast<uint64_t>(std::max(1, in.occupancy.blocks_per_sm));
  model.path = block.Path(block.later);
  model.demand = block.demand;
  model.beside = block.beside;
  model.sharpness = [&](uint64_t blocks) { return WaveSharpness(in, static_cast<double>(blocks)); };
  const std::vector<BlockShare> shares = SharesOfPaths(
      in, block, in.shares.size() <= model.sms * model.resident);
  SmClocks clocks;
  clocks.total = Makespan(shares, model);
  const auto alone = [&](double path, double demand, double beside) {
    SmModel one = model;
    one.path = path, one.demand = demand, one.beside = beside;
    return Makespan(shares, one);
  };
  clocks.path = alone(model.path, 0, 0);
  clocks.demand = alone(0, model.demand, 0);
  clocks.beside = model.beside > 0 ? alone(0, 0, model.beside) : 0;
  return clocks;
}

Execution Execute(const EstimateInput& in, const Traffic& traffic, const Sharpness& sharpness) {
  const std::vector<Share> pipes = Pipes(in);
  const double demand = Overlap(pipes, sharpness.pipes);
  const Share beside = Beside(in);
  const AverageBlock block = {
      .l2_path = in.counts.path[0] / Executed(in),
      .dram_path = in.counts.path[1] / Executed(in),
      .demand = demand,
      .beside = beside.value,
      .first = traffic.cold,
      .later = traffic.load > 0 ? std::clamp(traffic.dram_read / traffic.load, 0.0, 1.0) : 0};
  const SmClocks clocks = in.shares.empty() ? ClocksOfWaves(in, block, sharpness.waves)
                                            : ClocksOfShares(in, block);
  const double ns_per_clk = 1 / ClockGhz(in);
  const double exposed = Exposed(in, traffic);
  Execution e;
  e.ns = clocks.total * ns_per_clk + exposed;
  e.limiter = clocks.beside >= std::max(clocks.path, clocks.demand) ? beside.name
              : clocks.path > clocks.demand                         ? "latency"
                                                                    : Worst(pipes).name;
  if (clocks.beside > 0) e.shares.push_back({beside.name, clocks.beside * ns_per_clk});
  e.shares.push_back({"latency", clocks.path * ns_per_clk});
  if (exposed > 0) e.shares.push_back({"first and last of a product", exposed});
  for (const Share& pipe : pipes) {
    if (pipe.value > 0)
      e.shares.push_back({pipe.name, clocks.demand * ns_per_clk * pipe.value / demand});
  }
  return e;
}

/// Instructions that no cache holds yet.
double CodeNs(const EstimateInput& in) {
  const Calibration& c = in.calibration;
  const auto instructions = static_cast<double>(in.counts.code_instructions);
  const double far = std::max(0.0, instructions - kCodeCacheInstructions);
  return c.code_ns + (c.code_clk * instructions + c.far_code_clk * far) / in.profile->clock_ghz;
}

}  // namespace

uint64_t L1SectorsPerBlock(const DeviceProfile& profile, const KernelResources& resources,
                           const LaunchShape& shape, const Occupancy& occupancy) {
  const double l1 = L1Bytes(profile, resources, shape, occupancy);
  return static_cast<uint64_t>(l1 / Resident(occupancy, shape, profile) / kSectorBytes);
}

double SpillClk(const DeviceProfile& profile, const Calibration& c,
                const KernelResources& resources, const LaunchShape& shape,
                const Occupancy& occupancy) {
  return c.l1_clk + (c.l2_clk - c.l1_clk) * SpillMisses(profile, resources, shape, occupancy);
}

namespace {

float Clk(double value) { return static_cast<float>(value); }

/// How long one instruction of a warp occupies its share of each pipe.
void SetPipes(Latencies& l, const DeviceProfile& p, const Calibration& c) {
  constexpr double kProduct = 16 * 8 * 16;  // multiply-adds of the usual mma
  const double quarter = 32.0 * p.schedulers_per_sm;
  l.step = Clk(c.step_clk);
  l.alu_busy = Clk(quarter / std::max(p.int_per_clk, 1.0));
  l.special_busy = Clk(quarter / std::max(p.sfu_per_clk, 1.0));
  const double tensor_rate = p.tensor_fp16_fma_per_clk * c.mma_share / p.schedulers_per_sm;
  l.tensor_busy = tensor_rate > 0 ? Clk(kProduct / tensor_rate) : 0;
  l.products_per_clk = Clk(p.tensor_fp16_fma_per_clk);
}

void SetWaits(Latencies& l, const Calibration& c) {
  const auto wait = [&](Wait kind, double value) {
    l.wait[static_cast<size_t>(kind)] = Clk(value);
  };
  wait(Wait::kSpecial, c.special_clk);
  wait(Wait::kRounded, c.rounded_clk);
  wait(Wait::kFp64, c.fp64_clk);
  wait(Wait::kShuffle, c.shuffle_clk);
  wait(Wait::kTensor, c.tensor_clk);
  wait(Wait::kConstant, c.l1_clk);
  wait(Wait::kRegisterRead, c.shuffle_clk);
  wait(Wait::kFence, c.dram_clk);
  // The comparison has waited for three steps.
  l.predicate = Clk(std::max(0.0, c.predicate_clk - 2 * c.step_clk));
  l.branch = Clk(c.branch_clk);
}

void SetBarriers(Latencies& l, const Calibration& c) {
  l.barrier = Clk(c.barrier_clk);
  l.barrier_per_warp = Clk(c.barrier_warp_clk);
  l.cluster_barrier = Clk(c.cluster_barrier_clk);
  l.arrival = Clk(c.arrival_clk);
  l.remote_arrival = Clk(c.remote_arrival_clk);
}

void SetMemory(Latencies& l, const DeviceProfile& p, const Calibration& c, uint64_t blocks) {
  const double at_work = std::clamp(static_cast<double>(blocks), 1.0, static_cast<double>(p.sms));
  l.port_bytes_per_clk = Clk(std::min(kPortBytesPerClk, c.l2_async_gbps / p.clock_ghz / at_work));
  l.memory_turns = static_cast<uint32_t>(LeastWavefronts(p));
  l.products = Clk(c.wgmma_clk);
  l.bulk = Clk(c.bulk_clk);
  l.shared = Clk(c.shared_clk);
  l.remote = Clk(c.remote_clk);
  l.remote_busy = Clk(c.remote_busy_clk);
  l.l1 = l.spill = Clk(c.l1_clk);
  l.miss = {Clk(c.l2_clk), Clk(c.dram_clk)};
}

}  // namespace

Latencies LatenciesOf(const DeviceProfile& p, const Calibration& c, uint64_t blocks) {
  Latencies l;
  SetPipes(l, p, c);
  SetWaits(l, c);
  SetBarriers(l, c);
  SetMemory(l, p, c, blocks);
  return l;
}

namespace {

/// What may bound the launch, in ns.
std::vector<Share> Bounds(const EstimateInput& in, const Traffic& traffic, double execution_ns) {
  const double blocks = static_cast<double>(in.shape.grid.Count());
  return {{"SMs", execution_ns},
          {"DRAM", traffic.Dram() / in.calibration.dram_gbps},
          {"L2", (traffic.load - traffic.async + traffic.store + traffic.spilled) /
                         in.calibration.l2_gbps +
                     (traffic.async - traffic.awaited) / in.calibration.l2_async_gbps},
          {"block launches", blocks * in.calibration.block_ns},
          {"atomics", AtomicNs(in)}};
}

/// Relative uncertainty of the estimate.
double UncertaintyOf(const EstimateInput& in) {
  return in.calibration.source == Calibration::Expected(*in.profile).source
             ? kUncertaintyUncalibrated
             : kUncertainty;
}

/// What a block that was not looked at may add at the end of the launch.
double UnknownNs(const EstimateInput& in) {
  return in.unknown_work * in.counts.path[1] / Executed(in) / in.profile->clock_ghz;
}

/// FLOP of the whole launch, from those of the executed blocks.
double FlopsOf(const EstimateInput& in) {
  const double scale = static_cast<double>(in.shape.grid.Count()) / Executed(in);
  const auto fp32 = in.counts.warp_instructions[static_cast<size_t>(OpClass::kFp32)];
  return (static_cast<double>(fp32) * 64 + in.counts.tensor.flops) * scale;
}

}  // namespace

double AtomicNs(const EstimateInput& in) {
  const double scale = static_cast<double>(in.shape.grid.Count()) / Executed(in);
  return in.counts.global.atomic_units.MostPasses(scale) * kAtomicClocks / in.profile->clock_ghz;
}

Estimate EstimateTime(const EstimateInput& in) {
  const Traffic traffic = TrafficOf(in);
  const Sharpness sharpness = SharpnessOf(in);
  const Execution execution = Execute(in, traffic, sharpness);
  const std::vector<Share> bounds = Bounds(in, traffic, execution.ns);
  // The same bytes pass through DRAM and L2, one after the other.
  const double together = Overlap({bounds[0], Worst({bounds[1], bounds[2]}), bounds[3], bounds[4]},
                                  sharpness.memory);
  const Share worst = Worst(bounds);
  const double code = CodeNs(in);
  const double launch = in.follows ? in.calibration.next_launch_ns : in.calibration.launch_ns;
  Estimate estimate;
  estimate.time_ns = launch + code + together;
  estimate.low_ns = estimate.time_ns * (1 - UncertaintyOf(in));
  estimate.high_ns = (estimate.time_ns + UnknownNs(in)) * (1 + UncertaintyOf(in));
  estimate.parts = {{"launch", launch, false}, {"first instructions", code, false}};
  for (const Share& bound : bounds)
    estimate.parts.push_back({bound.name, bound.value, bound.name != worst.name});
  estimate.parts.push_back({"not hidden", together - worst.value, false});
  for (const Share& share : execution.shares)
    estimate.parts.push_back({"SMs: " + share.name, share.value, true});
  estimate.limiter = launch + code > worst.value    ? "launch"
                     : worst.name == bounds[0].name ? execution.limiter
                                                    : worst.name;
  estimate.device = in.profile->name;
  estimate.blocks_executed = in.blocks_executed;
  estimate.blocks_total = in.shape.grid.Count();
  estimate.dram_bytes = traffic.Dram();
  estimate.flops = FlopsOf(in);
  estimate.occupancy = in.occupancy.share;
  return estimate;
}

}  // namespace atunner::vgpu
