#include "atunner/device/profiles.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace atunner {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

/// The fields in which compute capabilities differ: rates per clock and SM, sizes, latencies.
/// Sources: CUDA C++ Programming Guide 13.0, tables "Technical specifications per compute
/// capability" and "Throughput of native arithmetic instructions"; latencies from published
/// micro-benchmarks (Jia et al. 2018 for Volta, Sun et al. 2022 for Ampere, Luo et al. 2024 for Ada
/// and Hopper); load/store units and the L1 bytes per clock from the white papers of Volta, Turing,
/// GA100, GA102, Ada and Hopper (that of the GA102 says that Turing's L1 moves half as many).
struct ArchitectureRow {
  int cc;  ///< 10 * major + minor
  double fp32, fp64, fp16, tensor_fp16;
  double tensor_tf32, tensor_fp64, tensor_int8;
  int l1_kib;                  ///< L1 and shared memory together
  std::vector<int> carveouts;  ///< KiB that shared memory may have of it
  int block_kib;               ///< most shared memory of a block
  double l1_latency, l2_latency, dram_latency;
  double mma_sync_share = 1, cvt = 16, lsu = 32, l1_bytes = 128;
  int max_warps = 64, max_blocks = 32;
};

const std::vector<ArchitectureRow>& ArchitectureRows() {
  static const std::vector<int> kAmpere100 = {0, 8, 16, 32, 64, 100, 132, 164},
                                kAmpere102 = {0, 8, 16, 32, 64, 100},
                                kHopper = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
  static const std::vector<ArchitectureRow> rows = {
      {70, 64, 32, 128, 512, 0, 0, 0, 128, {0, 8, 16, 32, 64, 96}, 96, 28, 212, 425},
      {75, 64, 2, 128, 512, 0, 0, 0, 96, {32, 64}, 64, 32, 190, 400, 1, 16, 16, 64, 32, 16},
      {80, 64, 32, 256, 1024, 512, 64, 2048, 192, kAmpere100, 163, 33, 206, 540},
      {86, 128, 2,   128, 512, 256, 0,  1024, 128, kAmpere102,
       99, 33,  250, 547, 1,   16,  16, 128,  48,  16},
      {89, 128, 2,   128, 512, 256, 0,  1024, 128, kAmpere102,
       99, 34,  274, 624, 1,   16,  16, 128,  48,  24},
      {90, 128, 64, 256, 2048, 1024, 128, 4096, 256, kHopper, 227, 32, 280, 680, 0.63, 64},
      {100, 128, 64, 256, 4096, 2048, 64, 8192, 256, kHopper, 227, 36, 300, 700, 0.5, 64},
  };
  return rows;
}

void SetRates(const ArchitectureRow& row, DeviceProfile& p) {
  p.fp32_per_clk = row.fp32;
  p.fp64_per_clk = row.fp64;
  p.fp16_per_clk = row.fp16;
  p.cvt_per_clk = row.cvt;
  p.lsu_per_clk = row.lsu;
  p.tensor_fp16_fma_per_clk = row.tensor_fp16;
  p.tensor_tf32_fma_per_clk = row.tensor_tf32;
  p.tensor_fp64_fma_per_clk = row.tensor_fp64;
  p.tensor_int8_fma_per_clk = row.tensor_int8;
  p.mma_sync_share = row.mma_sync_share;
  p.max_warps_per_sm = row.max_warps;
  p.max_blocks_per_sm = row.max_blocks;
}

void SetMemory(const ArchitectureRow& row, DeviceProfile& p) {
  p.l1_per_sm = row.l1_kib * 1024;
  p.shared_carveouts = row.carveouts;
  p.shared_per_sm = row.carveouts.back() * 1024;
  p.shared_per_block = row.block_kib * 1024;
  p.l1_bytes_per_clk = row.l1_bytes;
  p.l1_latency = row.l1_latency;
  p.l2_latency = row.l2_latency;
  p.dram_latency = row.dram_latency;
}

/// The fields that all GPUs of a compute capability share; those of the last row for an unknown
/// one.
DeviceProfile Architecture(int major, int minor) {
  const auto& rows = ArchitectureRows();
  const auto known = std::ranges::find(rows, major * 10 + minor, &ArchitectureRow::cc);
  const ArchitectureRow& row = known == rows.end() ? rows.back() : *known;
  DeviceProfile p;
  p.cc_major = major;
  p.cc_minor = minor;
  p.registers_per_sm = 65536;
  p.registers_per_thread = 255;
  p.register_allocation_unit = 256;
  p.shared_allocation_unit = major >= 8 ? 128 : 256;
  p.shared_reserved_per_block = major >= 8 ? 1024 : 0;
  p.schedulers_per_sm = 4;
  p.sfu_per_clk = 16;
  p.int_per_clk = p.imad_per_clk = 64;
  p.shared_latency = 29;
  p.launch_overhead_us = 2.5;
  SetRates(row, p);
  SetMemory(row, p);
  return p;
}

struct Row {
  const char* name;
  const char* full_name;
  int major, minor, sms;
  double clock_ghz, dram_gbps, l2_gbps;
  double l2_mib;
  int64_t dram_gib;
  double tdp_watts;
  const char* source;
};

// Boost clocks, bandwidths and sizes as the vendor's data sheets give them; L2 bandwidths as
// measured by others or, where nobody published one, 32 bytes per clock and SM, on Turing what the
// T4 reaches per memory channel.
constexpr Row kRows[] = {
    {"V100", "Tesla V100-SXM2-16GB", 7, 0, 80, 1.53, 900, 2155, 6, 16, 300,
     "V100 data sheet; Jia et al. 2018"},
    {"V100-32GB", "Tesla V100-SXM2-32GB", 7, 0, 80, 1.53, 900, 2155, 6, 32, 300,
     "V100 data sheet; Jia et al. 2018"},
    {"T4", "Tesla T4", 7, 5, 40, 1.59, 320, 1270, 4, 16, 70, "T4 data sheet; Jia et al. 2019"},
    {"RTX-2080-Ti", "NVIDIA GeForce RTX 2080 Ti", 7, 5, 68, 1.545, 616, 1700, 5.5, 11, 250,
     "TU102 white paper"},
    {"A100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 1.41, 2039, 5400, 40, 80, 400, "A100 data sheet"},
    {"A100-40GB", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 1.41, 1555, 5400, 40, 40, 400,
     "A100 data sheet"},
    {"A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB", 8, 0, 108, 1.41, 1555, 5400, 40, 40, 250,
     "A100 data sheet"},
    {"A100-PCIE-80GB", "NVIDIA A100 80GB PCIe", 8, 0, 108, 1.41, 1935, 5400, 40, 80, 300,
     "A100 data sheet"},
    {"A10", "NVIDIA A10", 8, 6, 72, 1.695, 600, 3900, 6, 24, 150, "A10 data sheet"},
    {"A30", "NVIDIA A30", 8, 0, 56, 1.44, 933, 2900, 24, 24, 165, "A30 data sheet"},
    {"A40", "NVIDIA A40", 8, 6, 84, 1.74, 696, 4600, 6, 48, 300, "A40 data sheet"},
    {"RTX-A4000", "NVIDIA RTX A4000", 8, 6, 48, 1.56, 448, 2400, 4, 16, 140,
     "RTX A4000 data sheet"},
    {"RTX-A6000", "NVIDIA RTX A6000", 8, 6, 84, 1.8, 768, 4840, 6, 48, 300, "RTX A6000 data sheet"},
    {"RTX-3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 1.695, 936, 4450, 6, 24, 350,
     "GA102 white paper"},
    {"RTX-4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52, 1008, 5600, 72, 24, 450,
     "Ada white paper"},
    {"L4", "NVIDIA L4", 8, 9, 58, 2.04, 300, 3700, 48, 24, 72, "L4 data sheet"},
    {"L40S", "NVIDIA L40S", 8, 9, 142, 2.52, 864, 6200, 96, 48, 350, "L40S data sheet"},
    {"H100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1.98, 3352, 8700, 50, 80, 700,
     "H100 data sheet and white paper"},
    {"H100-PCIE", "NVIDIA H100 PCIe", 9, 0, 114, 1.755, 2039, 7000, 50, 80, 350,
     "H100 data sheet and white paper"},
    {"H200", "NVIDIA H200", 9, 0, 132, 1.98, 4800, 9800, 60, 141, 700,
     "H200 data sheet; L2 as measured"},
    {"B200", "NVIDIA B200", 10, 0, 148, 1.965, 8000, 21000, 126, 180, 1000, "Blackwell data sheet"},
};

std::vector<DeviceProfile> Build() {
  std::vector<DeviceProfile> profiles;
  for (const Row& row : kRows) {
    DeviceProfile p = Architecture(row.major, row.minor);
    p.name = row.name;
    p.full_name = row.full_name;
    p.source = row.source;
    p.sms = row.sms;
    p.clock_ghz = row.clock_ghz;
    p.dram_gbps = row.dram_gbps;
    p.l2_gbps = row.l2_gbps;
    p.l2_bytes = static_cast<int64_t>(row.l2_mib * static_cast<double>(kMiB));
    p.tdp_watts = row.tdp_watts;
    p.dram_bytes = row.dram_gib * kGiB;
    profiles.push_back(p);
  }
  return profiles;
}

/// The text in lower case, without spaces, hyphens and underscores.
std::string Key(std::string_view text) {
  std::string key;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"a100sxm", "A100"},          {"a10080gb", "A100"},           {"a100sxm80gb", "A100"},
    {"a100sxm40gb", "A100-40GB"}, {"a100pcie", "A100-PCIE-80GB"}, {"h100sxm", "H100"},
    {"h100sxm5", "H100"},         {"3090", "RTX-3090"},           {"4090", "RTX-4090"},
    {"v10016gb", "V100"},         {"v100sxm2", "V100"},           {"2080ti", "RTX-2080-Ti"},
    {"a4000", "RTX-A4000"},       {"a6000", "RTX-A6000"},
};

/// The profile of a GPU whose SM clock is locked (`nvidia-smi -lgc`): SMs and L2 run at another
/// clock, DRAM at its own. The part of a load's latency that DRAM takes is fewer cycles of a slower
/// SM.
DeviceProfile Locked(DeviceProfile p, int mhz) {
  const double ratio = mhz / 1000.0 / p.clock_ghz;
  p.name += "@" + std::to_string(mhz);
  p.clock_ghz *= ratio;
  p.l2_gbps *= ratio;
  p.dram_latency = p.l2_latency + (p.dram_latency - p.l2_latency) * ratio;
  return p;
}

/// The clock in "A100@765", with or without a unit; nullopt if it is not a possible clock of a GPU.
std::optional<int> ParseMhz(std::string_view text) {
  constexpr int kLeast = 100, kMost = 5000;
  int mhz = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mhz);
  const std::string unit = Key({end, text.data() + text.size()});
  if (error != std::errc() || (!unit.empty() && unit != "mhz") || mhz < kLeast || mhz > kMost)
    return {};
  return mhz;
}

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Blocks of `warps` warps that the register file of an SM holds. Registers are allocated per warp,
/// and warps are distributed over the four partitions of the register file. Whether one block fits
/// at all is decided as if its warps filled the partitions evenly.
int64_t BlocksByRegisters(const DeviceProfile& p, int64_t registers, int64_t warps) {
  const int64_t per_warp = RoundUp(registers * 32, p.register_allocation_unit);
  if (per_warp * RoundUp(warps, p.schedulers_per_sm) > p.registers_per_sm) return 0;
  const int64_t per_partition = p.registers_per_sm / p.schedulers_per_sm / per_warp;
  return per_partition * p.schedulers_per_sm / std::max<int64_t>(warps, 1);
}

}  // namespace

std::span<const DeviceProfile> KnownProfiles() {
  static const std::vector<DeviceProfile> profiles = Build();
  return profiles;
}

Result<DeviceProfile> FindProfile(std::string_view name) {
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    ATUNNER_TRY(DeviceProfile profile, FindProfile(name.substr(0, at)));
    const auto mhz = ParseMhz(name.substr(at + 1));
    if (!mhz)
      return Invalid("'" + std::string(name.substr(at + 1)) + "' is no clock", "request.target",
                     "write " + profile.name + "@765 for an SM clock of 765 MHz");
    return Locked(std::move(profile), *mhz);
  }
  std::string key = Key(name);
  if (key.starts_with("nvidia")) key = key.substr(6);
  for (const auto& [alias, target] : kAliases) {
    if (alias == key) key = Key(target);
  }
  std::string names;
  for (const DeviceProfile& profile : KnownProfiles()) {
    if (Key(profile.name) == key || Key(profile.full_name) == Key(name)) return profile;
    names += (names.empty() ? "" : ", ") + profile.name;
  }
  return Invalid("unknown GPU '" + std::string(name) + "'", "request.target",
                 "known are " + names + ", and 'auto' for the GPU in this machine");
}

const DeviceProfile* MatchDriverName(std::string_view full_name) {
  for (const DeviceProfile& profile : KnownProfiles()) {
    if (Key(profile.full_name) == Key(full_name)) return &profile;
  }
  return nullptr;
}

Occupancy ComputeOccupancy(const DeviceProfile& p, const KernelResources& resources,
                           const LaunchShape& shape) {
  const auto warps = static_cast<int64_t>((shape.block.Count() + 31) / 32);
  Occupancy result;
  int64_t best = p.max_blocks_per_sm;
  result.limiter = "blocks";
  const auto limit = [&](int64_t blocks, const char* by) {
    if (blocks < best) {
      best = blocks;
      result.limiter = by;
    }
  };
  limit(p.max_warps_per_sm / std::max<int64_t>(warps, 1), "warps");
  if (resources.registers > 0) limit(BlocksByRegisters(p, resources.registers, warps), "registers");
  const int64_t shared = int64_t{resources.static_shared_bytes} + shape.dynamic_shared_bytes;
  const int64_t per_block = RoundUp(shared + p.shared_reserved_per_block, p.shared_allocation_unit);
  if (per_block > 0) limit(p.shared_per_sm / per_block, "shared memory");
  result.blocks_per_sm = static_cast<int>(std::max<int64_t>(best, 0));
  result.warps_per_sm = static_cast<int>(result.blocks_per_sm * warps);
  result.share = static_cast<double>(result.warps_per_sm) / p.max_warps_per_sm;
  return result;
}

}  // namespace atunner
