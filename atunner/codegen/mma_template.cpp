#include "atunner/codegen/mma_template.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner {
namespace {

/// Elements of a 16-bit type in 16 bytes.
constexpr int64_t kUnit = 8;

/// Registers of a thread: accumulators, two sets of fragments, and what addresses take.
constexpr const char* kRegisters = "(warp_m * warp_n // 32 + (warp_m + warp_n) // 2 + 44)";

}  // namespace

int64_t Alignment(int64_t extent) {
  int64_t alignment = kUnit;
  while (extent % alignment != 0) alignment /= 2;
  return alignment;
}

void AddWidening(LaunchPlan& plan, const char* from, const char* to, const std::string& rows,
                 const std::string& width) {
  const std::string wide = fmt::format("(ceil_div({}, 8) * 8)", width);
  plan.workspaces.push_back({to, Expr::MustParse(fmt::format("{} * {} * 2", rows, wide))});
  LaunchStep step;
  step.entry = "widen";
  step.grid[0] = Expr::MustParse(fmt::format("min(ceil_div({} * {}, 2048), 4096)", rows, wide));
  step.block[0] = 256;
  step.args = {ArgBinding::Tensor(from), ArgBinding::Workspace(to),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse(rows)),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse(width)),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse(wide))};
  plan.steps.push_back(step);
}

MmaTemplate::MmaTemplate(const KernelSpec& spec, const DeviceProfile& profile, Extents extents)
    : ProductTemplate(spec, profile, extents) {
  space_.parameters = {
      {"tile_m", Integers({64, 128, 256}), "rows of the result per block"},
      {"tile_n", Integers({64, 128, 256}), "columns of the result per block"},
      {"tile_k", Integers({32, 64}), "depth of one buffer"},
      {"warp_m", Integers({32, 64, 128}), "rows of the result per warp"},
      {"warp_n", Integers({32, 64, 128}), "columns of the result per warp"},
      {"stages", Integers({2, 3, 4, 5, 6}), "buffers in shared memory"},
  };
  Add("tile_m % warp_m == 0 and tile_n % warp_n == 0", "warps divide the tile");
  Add("4 <= (tile_m // warp_m) * (tile_n // warp_n) <= 16", "4 to 16 warps");
  Add(fmt::format("(tile_m + tile_n) * tile_k * 2 * stages <= {}", profile.shared_per_block), "shared memory");
  Add(fmt::format("{} <= 255", kRegisters), "registers of a thread");
  Add(fmt::format("{} * 32 * (tile_m // warp_m) * (tile_n // warp_n) <= 65536", kRegisters), "registers of a block");
  Add(fmt::format("tile_m == 64 or tile_m < 2 * {}", extents.m), "more rows than there are");
  Add(fmt::format("tile_n == 64 or tile_n < 2 * {}", extents.n), "more columns than there are");
  AddOrderAndSplit();
  space_.parameters.push_back({"persistent", Integers({0, 1}),
                               "blocks that take one tile after the other, storing one while the next is fetched"});
  Add("persistent == 0 or split_k == 1", "a share is stored at once");
  Add(fmt::format("persistent == 0 or (tile_m + tile_n) * tile_k * 2 * stages + tile_m * tile_n * 32 // warp_m <= {}",
                  profile.shared_per_block),
      "shared memory");
  Add(fmt::format("persistent == 0 or ceil_div({}, tile_m) * ceil_div({}, tile_n) > {}", extents.m, extents.n,
                  profile.sms),
      "every block has one tile at most");
}

std::vector<std::vector<int64_t>> MmaTemplate::Starts() const {
  // tile_m, tile_n, tile_k, warp_m, warp_n, stages
  return {{128, 256, 32, 64, 64, 4}, {256, 128, 32, 64, 64, 4}, {128, 128, 64, 64, 64, 3}, {128, 128, 32, 64, 64, 4},
          {128, 128, 32, 64, 64, 3}, {128, 128, 32, 64, 32, 4}, {256, 64, 32, 64, 32, 4},  {64, 256, 32, 32, 64, 4},
          {128, 64, 64, 64, 32, 3},  {128, 64, 32, 64, 32, 3},  {64, 128, 64, 32, 64, 3},  {64, 128, 32, 32, 64, 3},
          {64, 64, 64, 32, 32, 4},   {64, 64, 32, 32, 32, 3}};
}

int64_t MmaTemplate::Threads(const Configuration& configuration) const {
  return Integer(configuration, "tile_m") / Integer(configuration, "warp_m") *
         (Integer(configuration, "tile_n") / Integer(configuration, "warp_n")) * 32;
}

int64_t MmaTemplate::SharedBytes(const Configuration& configuration) const {
  const int64_t tile_m = Integer(configuration, "tile_m");
  const int64_t tile_n = Integer(configuration, "tile_n");
  // Sixteen rows of every warp are staged for the store: in the buffers, or behind them when those are in use.
  const int64_t staged = Persistent(configuration) ? tile_m / Integer(configuration, "warp_m") * tile_n * 32 : 0;
  return (tile_m + tile_n) * Integer(configuration, "tile_k") * 2 * Integer(configuration, "stages") + staged;
}

int64_t MmaTemplate::Resident(const Configuration& configuration) const {
  const int64_t warp_m = Integer(configuration, "warp_m");
  const int64_t warp_n = Integer(configuration, "warp_n");
  const int64_t registers = warp_m * warp_n / 32 + (warp_m + warp_n) / 2 + 44;
  return std::clamp<int64_t>(
      std::min(profile_.shared_per_sm / (SharedBytes(configuration) + profile_.shared_reserved_per_block),
               profile_.registers_per_sm / (registers * Threads(configuration))),
      1, 8);
}

LaunchStep MmaTemplate::TileStep(const Configuration& configuration, const char* entry, const char* m,
                                 const char* n) const {
  LaunchStep step = ProductStep(configuration, entry, m, n);
  // As many tiles per block as a device full of blocks gets at the task's size; smaller sizes have fewer blocks.
  if (Persistent(configuration)) {
    const int64_t waves =
        std::max<int64_t>(1, (BlocksPerSm(configuration) + Resident(configuration) - 1) / Resident(configuration));
    step.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, {})", step.grid[0].text(), waves));
  }
  return step;
}

ConstantBlock MmaTemplate::TileConstants(const Configuration& configuration, bool b_transposed) const {
  ConstantBlock block;
  block.Define("SPLIT_K", Integer(configuration, "split_k"));
  block.Line(Split(configuration) ? "typedef float OUT;" : "typedef T OUT;");
  for (const auto& [name, parameter] : {std::pair{"TILE_M", "tile_m"},
                                        {"TILE_N", "tile_n"},
                                        {"TILE_K", "tile_k"},
                                        {"WARP_M", "warp_m"},
                                        {"WARP_N", "warp_n"},
                                        {"STAGES", "stages"},
                                        {"GROUP_M", "group_m"}}) {
    block.Int(name, Integer(configuration, parameter));
  }
  block.Bool("PERSISTENT", Persistent(configuration), "tile after tile");
  block.Bool("B_TRANSPOSED", b_transposed);
  block.Bool("C_ALIGNED", extents_.n % kUnit == 0, "rows of the result start at multiples of 16 bytes");
  return block;
}

std::optional<double> MmaTemplate::Cost(const Configuration& configuration, const DeviceProfile& profile) const {
  const int64_t warps = Threads(configuration) / 32;
  const int64_t warp_m = Integer(configuration, "warp_m");
  const int64_t warp_n = Integer(configuration, "warp_n");
  const int64_t resident = std::min(Resident(configuration), BlocksPerSm(configuration));
  // A warp tile of w × v reads w + v rows of shared memory for w · v products: small ones starve the tensor cores. Two
  // warps per scheduler hide each other's latencies; few stages leave the copies' latency uncovered.
  const double fed = std::min(1.0, static_cast<double>(warp_m * warp_n) / static_cast<double>(warp_m + warp_n) / 32.0);
  const double hidden = std::min(1.0, 0.6 + 0.4 * static_cast<double>(warps * resident) / 8.0);
  const auto ahead =
      static_cast<double>((Integer(configuration, "stages") - 1) * Integer(configuration, "tile_k") * resident);
  const double covered = std::min(1.0, 0.8 + 0.2 * ahead / 96.0);
  const double rate = profile.PeakFlops(spec_.compute_dtype, true) * profile.mma_sync_share / profile.sms;
  // Storing one tile while the next is fetched hides the blocks' starts, all but the first.
  const double time = Time(configuration, rate * (0.5 + 0.5 * fed) * hidden * covered, resident);
  return Persistent(configuration) ? time * 0.98 : time;
}

}  // namespace atunner
