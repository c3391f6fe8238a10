// Main loops for any device from Ampere on, in which every thread copies: mma.sync, and fused
// multiply-adds.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/matmul/main_loop.h"
#include "atunner/codegen/template/costs.h"
#include "embed/families.h"

namespace atunner {
namespace {

class Mma : public MainLoop {
 public:
  std::vector<Parameter> Parameters() const override {
    return {
        {"tile_m", Integers({64, 128, 256}), "rows of the result per block"},
        {"tile_n", Integers({64, 128, 256}), "columns of the result per block"},
        {"tile_k", Integers({32, 64}), "depth of one buffer"},
        {"warp_m", Integers({32, 64, 128}), "rows of the result per warp"},
        {"warp_n", Integers({32, 64, 128}), "columns of the result per warp"},
        {"stages", Integers({2, 3, 4, 5, 6}), "buffers in shared memory"},
    };
  }
  std::vector<Constraint> Constraints() const override {
    return {
        {Expr::MustParse("tile_m % warp_m == 0 and tile_n % warp_n == 0"), "warps divide the tile"},
        {Expr::MustParse("4 <= " + Warps() + " <= 16"), "4 to 16 warps"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    return {{128, 256, 32, 64, 64, 4}, {256, 128, 32, 64, 64, 4}, {128, 128, 64, 64, 64, 3},
            {128, 128, 32, 64, 64, 4}, {128, 128, 32, 64, 64, 3}, {128, 128, 32, 64, 32, 4},
            {256, 64, 32, 64, 32, 4},  {64, 256, 32, 32, 64, 4},  {128, 64, 64, 64, 32, 3},
            {128, 64, 32, 64, 32, 3},  {64, 128, 64, 32, 64, 3},  {64, 128, 32, 32, 64, 3},
            {64, 64, 64, 32, 32, 4},   {64, 64, 32, 32, 32, 3}};
  }
  std::string Warps() const override { return "(tile_m // warp_m) * (tile_n // warp_n)"; }
  /// Accumulators, two sets of fragments, and addresses.
  std::string Registers() const override {
    return "(warp_m * warp_n // 32 + (warp_m + warp_n) // 2 + 44)";
  }
  std::string SharedBytes() const override { return "(tile_m + tile_n) * tile_k * 2 * stages"; }

  double Efficiency(const Chosen& chosen, int64_t resident,
                    const DeviceProfile& profile) const override {
    const int64_t warp_m = chosen["warp_m"];
    const int64_t warp_n = chosen["warp_n"];
    const int64_t warps = chosen["tile_m"] / warp_m * (chosen["tile_n"] / warp_n);
    // A warp tile of w × v reads w + v rows of shared memory for w · v products: small ones starve
    // the tensor cores. Two warps per scheduler hide each other's latencies; few stages leave the
    // copies' latency uncovered.
    const CostConstants& costs = CostsOf(profile);
    const double fed = std::min(1.0,
                                Real(warp_m * warp_n) / Real(warp_m + warp_n) / costs.mma_fed_full);
    const double hidden = std::min(
        1.0, costs.mma_hidden_base + costs.mma_hidden * Real(warps * resident) / 8.0);
    const double ahead = Real((chosen["stages"] - 1) * chosen["tile_k"] * resident);
    const double covered = std::min(
        1.0, costs.mma_covered_base + costs.mma_covered * ahead / costs.mma_covered_depth);
    return profile.mma_sync_share * (costs.mma_fed_base + costs.mma_fed * fed) * hidden * covered;
  }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    constants.Int("TILE_K", chosen["tile_k"])
        .Int("WARP_M", chosen["warp_m"])
        .Int("WARP_N", chosen["warp_n"]);
  }
  std::string Text(const Chosen&) const override {
    return fmt::format("{}\n{}", embed::kMmaLoopCuh, embed::kTileWalkersCuh);
  }
};

class Simt : public MainLoop {
 public:
  explicit Simt(bool b_transposed) : b_transposed_(b_transposed) {}
  bool OnTensorCores() const override { return false; }

  std::vector<Parameter> Parameters() const override {
    return {
        {"tile_m", Integers({32, 64, 128, 256}), "rows of the result per block"},
        {"tile_n", Integers({32, 64, 128, 256}), "columns of the result per block"},
        {"tile_k", Integers({8, 16, 32}), "depth of one buffer"},
        {"thread_m", Integers({4, 8, 16}), "rows of the result per thread"},
        {"thread_n", Integers({4, 8, 16}), "columns of the result per thread"},
        {"stages", Integers({2, 3, 4}), "buffers in shared memory"},
    };
  }
  std::vector<Constraint> Constraints() const override {
    return {{Expr::MustParse("2 <= " + Warps() + " <= 16"), "64 to 512 threads"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    return {{128, 128, 16, 8, 8, 3}, {128, 128, 8, 8, 8, 3}, {128, 64, 16, 8, 8, 3},
            {64, 128, 16, 8, 8, 3},  {64, 64, 16, 8, 4, 3},  {64, 64, 16, 4, 4, 3},
            {32, 128, 16, 4, 8, 3},  {128, 32, 16, 8, 4, 3}, {32, 64, 16, 4, 4, 3},
            {32, 32, 32, 4, 4, 2}};
  }
  std::string Warps() const override {
    return "((tile_m // thread_m) * (tile_n // thread_n) // 32)";
  }
  /// Sums, the fragments that feed them, and addresses.
  std::string Registers() const override {
    return "(thread_m * thread_n + 4 * thread_m + 2 * thread_n + 32)";
  }
  std::string SharedBytes() const override {
    return fmt::format("(tile_m * (tile_k // 4 + 1) + {}) * 16 * stages",
                       b_transposed_ ? "tile_n * (tile_k // 4 + 1)" : "tile_k * tile_n // 4");
  }
  double Efficiency(const Chosen& chosen, int64_t resident,
                    const DeviceProfile& profile) const override {
    // A thread tile of w × v reads w + v words of shared memory for w · v products.
    const int64_t thread_m = chosen["thread_m"], thread_n = chosen["thread_n"];
    const int64_t warps = chosen["tile_m"] / thread_m * (chosen["tile_n"] / thread_n) / 32;
    const double fed = Real(thread_m * thread_n) / Real(thread_m * thread_n + thread_m + thread_n);
    const CostConstants& costs = CostsOf(profile);
    return fed *
           std::min(1.0, costs.simt_hidden_base + costs.simt_hidden * Real(warps * resident) / 8.0);
  }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    constants.Ints(chosen, {"tile_k", "thread_m", "thread_n"});
  }
  std::string Text(const Chosen&) const override {
    return fmt::format("{}\n{}", embed::kSimtTileCuh, embed::kTileWalkersCuh);
  }

 private:
  bool b_transposed_;
};

}  // namespace

const MainLoop& MmaLoop() {
  static const Mma loop;
  return loop;
}

const MainLoop& SimtLoop(bool b_transposed) {
  static const Simt loops[] = {Simt(false), Simt(true)};
  return loops[b_transposed ? 1 : 0];
}

}  // namespace atunner
