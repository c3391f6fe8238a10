#include "atunner/evidence/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace atunner::evidence {
namespace {

using vgpu::Counts;
using vgpu::EstimateInput;

constexpr double kSectorBytes = 32;

double Real(uint64_t count) { return static_cast<double>(count); }

uint64_t Scaled(uint64_t count, double factor) {
  return static_cast<uint64_t>(std::llround(Real(count) * factor));
}

void ScalePaths(Counts& counts, double factor) {
  for (double& path : counts.path) path *= factor;
  for (double& path : counts.longest_path) path *= factor;
}

/// Takes wavefronts away, also of those that the machine code was seen to issue. Threads wait for
/// their turn: the path becomes shorter by the same share, down to a tenth.
void RemoveWavefronts(Counts& counts, double removed) {
  const double before = counts.shared.issued_wavefronts > 0
                            ? Real(counts.shared.issued_wavefronts)
                            : Real(counts.shared.wavefronts + counts.global.wavefronts);
  if (before <= 0) return;
  const double left = std::clamp(1 - removed / before, 0.1, 1.0);
  if (counts.shared.issued_wavefronts > 0)
    counts.shared.issued_wavefronts = Scaled(counts.shared.issued_wavefronts, left);
  ScalePaths(counts, left);
}

/// Sectors that the bytes need if neighbouring threads used neighbouring bytes.
double Ideal(uint64_t sectors, uint64_t bytes, uint64_t requests) {
  return std::min(Real(sectors), std::max(Real(bytes) / kSectorBytes, Real(requests)));
}

void Coalesce(EstimateInput& in) {
  vgpu::GlobalCounts& g = in.counts.global;
  const double loads = Ideal(g.load_sectors, g.load_bytes, g.loads);
  const double stores = Ideal(g.store_sectors, g.store_bytes, g.stores);
  const double sectors = Real(g.load_sectors + g.store_sectors);
  if (sectors <= 0) return;
  const double left = (loads + stores) / sectors;
  const double wavefronts = std::max(Real(g.wavefronts) * left, Real(g.loads + g.stores));
  const double removed = Real(g.wavefronts) - std::min(wavefronts, Real(g.wavefronts));
  g.wavefronts -= static_cast<uint64_t>(removed);
  g.late_wavefronts = Scaled(g.late_wavefronts, left);
  g.load_sectors = static_cast<uint64_t>(loads);
  g.store_sectors = static_cast<uint64_t>(stores);
  g.unique_load_sectors = std::min(g.unique_load_sectors, g.load_sectors);
  g.unique_store_sectors = std::min(g.unique_store_sectors, g.store_sectors);
  g.updated_sectors = std::min(g.updated_sectors, g.unique_store_sectors);
  g.l1_hit_sectors = std::min(g.l1_hit_sectors, g.load_sectors - g.unique_load_sectors);
  g.reuse_distance = std::min(g.reuse_distance, Scaled(g.reuse_distance, left));
  RemoveWavefronts(in.counts, removed);
}

void RemoveConflicts(EstimateInput& in) {
  vgpu::SharedCounts& s = in.counts.shared;
  if (s.wavefronts <= s.requests) return;
  const double removed = Real(s.wavefronts - s.requests);
  s.wavefronts = s.requests;
  RemoveWavefronts(in.counts, removed);
}

/// The same operations on the float32 pipe, without the conversions that float64 asks for.
void MoveToFloat32(EstimateInput& in) {
  auto& uses = in.counts.pipe_uses;
  uint64_t& doubles = uses[static_cast<size_t>(vgpu::Pipe::kFp64)];
  const double share = Real(doubles) / std::max(1.0, Real(in.counts.issued));
  uses[static_cast<size_t>(vgpu::Pipe::kFma)] += doubles;
  doubles = 0;
  const auto conversion = static_cast<size_t>(vgpu::OpClass::kConversion);
  const uint64_t conversions = in.counts.warp_instructions[conversion];
  in.counts.issued -= std::min(in.counts.issued / 2, conversions);
  uint64_t& special = uses[static_cast<size_t>(vgpu::Pipe::kSfu)];
  special -= std::min(special, conversions);
  ScalePaths(in.counts, std::max(0.2, 1 - share));
}

void RemoveSpills(EstimateInput& in) {
  const double removed = Real(in.counts.local_requests);
  in.counts.spilled_words = 0;
  in.counts.local_requests = 0;
  uint64_t& lsu = in.counts.pipe_uses[static_cast<size_t>(vgpu::Pipe::kLsu)];
  const uint64_t words = std::min(lsu, static_cast<uint64_t>(removed));
  lsu -= words;
  RemoveWavefronts(in.counts, removed);
}

void FillWarps(EstimateInput& in) {
  const double threads = Real(in.counts.TotalThreadInstructions());
  const double warps = Real(in.counts.TotalWarpInstructions());
  const double left = warps > 0 ? std::min(1.0, threads / warps / 32) : 1;
  for (uint64_t& uses : in.counts.pipe_uses) uses = Scaled(uses, left);
  in.counts.issued = Scaled(in.counts.issued, left);
  in.counts.shared.issued_wavefronts = Scaled(in.counts.shared.issued_wavefronts, left);
  ScalePaths(in.counts, left);
}

/// The same work in as many blocks as the GPU holds at once, of which each does a smaller part.
void SpreadGrid(EstimateInput& in) {
  const double blocks = Real(in.shape.grid.Count());
  const double wanted = std::max(1, in.occupancy.blocks_per_sm) * in.profile->sms;
  if (blocks >= wanted) return;
  const double counted = in.blocks_counted > 0 ? in.blocks_counted : Real(in.blocks_executed);
  in.blocks_counted = std::max(1.0, counted) * wanted / blocks;
  for (double& path : in.counts.longest_path) path *= blocks / wanted;
  in.shape.grid = {static_cast<uint32_t>(wanted), 1, 1};
  in.shares.clear();
}

void FillSms(EstimateInput& in) {
  const double warps = std::max(1.0, std::ceil(Real(in.shape.block.Count()) / 32));
  const int most = std::max(1, static_cast<int>(in.profile->max_warps_per_sm / warps));
  in.occupancy.blocks_per_sm = std::max(in.occupancy.blocks_per_sm, most);
  in.occupancy.share = 1;
}

/// Each sector that a block uses is loaded once.
void LoadOnce(EstimateInput& in) {
  vgpu::GlobalCounts& g = in.counts.global;
  if (g.load_sectors == 0) return;
  const double left = std::max(0.1, Real(g.unique_load_sectors) / Real(g.load_sectors));
  const double share = Real(g.load_sectors) / Real(g.load_sectors + g.store_sectors);
  const double removed = Real(g.wavefronts) * share * (1 - left);
  g.wavefronts -= std::min(g.wavefronts, static_cast<uint64_t>(removed));
  g.late_wavefronts = Scaled(g.late_wavefronts, left);
  g.loads = Scaled(g.loads, left);
  g.load_sectors = Scaled(g.load_sectors, left);
  g.l1_hit_sectors = 0;
  g.reuse_distance = 0;
  RemoveWavefronts(in.counts, removed);
}

/// Blocks add up what their threads have, and update memory once.
void AggregateAtomics(EstimateInput& in) {
  vgpu::AtomicUnits units;
  for (uint64_t block = 0; block < in.blocks_executed; ++block) {
    units.Add(0, 1);
    units.EndBlock();
  }
  const double counted = in.blocks_counted > 0 ? in.blocks_counted : Real(in.blocks_executed);
  units.Scale(counted / std::max(1.0, Real(in.blocks_executed)));
  if (units.MostPasses(1) < in.counts.global.atomic_units.MostPasses(1))
    in.counts.global.atomic_units = units;
}

void HideLatency(EstimateInput& in) { ScalePaths(in.counts, 0); }

}  // namespace

std::optional<double> GainWithout(Bottleneck cause, const EstimateInput& launch) {
  using Change = void (*)(EstimateInput&);
  Change change = nullptr;
  switch (cause) {
    case Bottleneck::kUncoalesced:
      change = Coalesce;
      break;
    case Bottleneck::kBankConflicts:
      change = RemoveConflicts;
      break;
    case Bottleneck::kFloat64:
      change = MoveToFloat32;
      break;
    case Bottleneck::kSpills:
      change = RemoveSpills;
      break;
    case Bottleneck::kDivergence:
      change = FillWarps;
      break;
    case Bottleneck::kSmallGrid:
      change = SpreadGrid;
      break;
    case Bottleneck::kOccupancy:
      change = FillSms;
      break;
    case Bottleneck::kRereads:
      change = LoadOnce;
      break;
    case Bottleneck::kAtomics:
      change = AggregateAtomics;
      break;
    case Bottleneck::kLatency:
      change = HideLatency;
      break;
    default:
      return std::nullopt;
  }
  EstimateInput without = launch;
  change(without);
  const double before = EstimateTime(launch).time_ns, after = EstimateTime(without).time_ns;
  return after > 0 ? std::max(1.0, before / after) : 1;
}

}  // namespace atunner::evidence
