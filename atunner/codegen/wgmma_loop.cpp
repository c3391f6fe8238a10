#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/main_loop.h"
#include "atunner/codegen/wgmma_text.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Of the tensor-core peak, what a block reaches that never waits: measured on an H200, whose clock falls under this
/// load.
constexpr double kSustained = 0.8;

std::string Instruction(const Chosen& chosen) {
  return WgmmaText({.name = "multiply", .columns = chosen["tile_n"], .b_transposed = "B_TRANSPOSED ? 0 : 1"});
}

class Wgmma : public MainLoop {
 public:
  std::vector<Parameter> Parameters() const override {
    return {
        {"tile_m", Integers({64, 128, 192, 256}), "rows of the result per block"},
        {"tile_n", Integers({64, 128, 192, 256}), "columns of the result per block"},
        {"tile_k", Integers({64}), "depth of one buffer"},
        {"group_rows", Integers({64, 128}), "rows of the result per group of four warps"},
        {"stages", Integers({3, 4, 5, 6, 8}), "buffers in shared memory"},
    };
  }
  std::vector<Constraint> Constraints() const override {
    return {{Expr::MustParse("tile_m % group_rows == 0"), "groups divide the tile"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    return {{128, 256, 64, 64, 4}, {256, 128, 64, 128, 4}, {256, 128, 64, 64, 4},  {128, 192, 64, 64, 4},
            {128, 128, 64, 64, 3}, {128, 128, 64, 64, 5},  {128, 128, 64, 128, 3}, {64, 256, 64, 64, 4},
            {128, 64, 64, 64, 4},  {64, 128, 64, 64, 4},   {64, 64, 64, 64, 4},    {64, 64, 64, 64, 8}};
  }
  std::string Warps() const override { return "(tile_m // group_rows * 4)"; }
  std::string Registers() const override { return "(group_rows * tile_n // 128 + 40)"; }
  std::string SharedBytes() const override { return BuffersAndStaging("tile_n"); }

  double Efficiency(const Chosen& chosen, int64_t resident, const DeviceProfile&) const override {
    // A product of 64 × n reads 64 + n rows of shared memory, which narrow ones wait for. A group keeps two tiles'
    // products in flight; what remains to be hidden are the barrier before them and the copies' latency.
    const double fed = std::min(1.0, 0.6 + 0.4 * static_cast<double>(chosen["tile_n"]) / 128.0);
    const int64_t groups = chosen["tile_m"] / chosen["group_rows"] * resident;
    const double hidden = std::min(1.0, 0.7 + 0.15 * static_cast<double>(groups));
    const auto ahead = static_cast<double>((chosen["stages"] - 2) * resident);
    const double covered = std::min(1.0, 0.8 + 0.1 * ahead);
    return kSustained * fed * hidden * covered;
  }
  /// Without a bound the compiler takes what one block may have.
  int64_t LaunchBound(const Chosen&, int64_t resident) const override { return resident; }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    constants.Int("GROUP_ROWS", chosen["group_rows"]);
  }
  std::string Text(const Chosen& chosen) const override {
    return fmt::format("{}\n{}\n{}\n{}\n{}", embed::kWgmmaCommonCuh, Instruction(chosen), embed::kWgmmaTileCuh,
                       embed::kWgmmaLoopCuh, embed::kTileWalkersCuh);
  }
};

/// Warps that only fetch, and groups that take tiles in turns.
class Maps : public MainLoop {
 public:
  std::vector<Parameter> Parameters() const override {
    return {
        {"tile_m", Integers({64, 128, 192, 256}), "rows of the result per tile"},
        {"tile_n", Integers({64, 128, 192, 256}), "columns of the result per tile"},
        {"tile_k", Integers({64}), "depth of one buffer"},
        {"group_rows", Integers({64, 128}), "rows of the result per group of four warps"},
        {"cluster_m", Integers({1, 2}), "blocks, one below the other, that fetch columns of b together"},
        {"cluster_n", Integers({1, 2}), "blocks, side by side, that fetch rows of a together"},
        {"alternate", Integers({0, 1}), "two sets of groups take tiles in turns: one multiplies while one stores"},
        {"stages", Integers({2, 3, 4, 5, 6, 8, 12}), "buffers in shared memory"},
    };
  }
  std::vector<Constraint> Constraints() const override {
    return {{Expr::MustParse("tile_m % group_rows == 0"), "groups divide the tile"},
            {Expr::MustParse("tile_m // group_rows * (1 + alternate) <= 3"), "too many groups"},
            {Expr::MustParse("cluster_m * cluster_n <= 2"), "larger clusters find no place"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    return {{128, 256, 64, 64, 1, 1, 0, 4}, {128, 256, 64, 64, 2, 1, 0, 4}, {256, 128, 64, 128, 1, 1, 0, 4},
            {128, 192, 64, 64, 1, 1, 0, 5}, {192, 128, 64, 64, 1, 1, 0, 5}, {128, 128, 64, 128, 1, 1, 1, 6},
            {128, 128, 64, 64, 1, 1, 0, 6}, {128, 128, 64, 64, 1, 1, 0, 3}, {128, 64, 64, 64, 1, 1, 0, 8},
            {64, 256, 64, 64, 1, 1, 0, 5},  {64, 256, 64, 64, 1, 1, 0, 4},  {64, 128, 64, 64, 1, 1, 0, 8},
            {64, 128, 64, 64, 1, 1, 0, 4},  {64, 64, 64, 64, 1, 1, 0, 12},  {64, 64, 64, 64, 1, 1, 0, 6}};
  }
  std::string Warps() const override { return "(" + MultiplyingWarps() + " + 1)"; }
  std::string Registers() const override { return "(group_rows * tile_n // 128 + 40)"; }
  std::string SharedBytes() const override {
    return fmt::format("((tile_m + tile_n) * tile_k * 2 * stages + {} * 2048 + stages * 16)", MultiplyingWarps());
  }
  std::string RowsTogether() const override { return "(tile_m * cluster_m)"; }
  std::string ColumnsTogether() const override { return "(tile_n * cluster_n)"; }

  double Efficiency(const Chosen& chosen, int64_t resident, const DeviceProfile&) const override {
    // Seen on an H200: products of 128 columns reach nine tenths of what those of 256 do, as does a single group.
    const int64_t columns = chosen["tile_n"];
    const double fed = columns >= 192 ? 1.0 : columns == 128 ? 0.9 : 0.75;
    const int64_t groups = chosen["tile_m"] / chosen["group_rows"] * (1 + chosen["alternate"]) * resident;
    const double hidden = groups > 1 ? 1.0 : 0.9;
    const int64_t ahead = (chosen["stages"] - 1) * resident;
    const double covered = ahead >= 3 ? 1.0 : ahead == 2 ? 0.93 : 0.75;
    return kSustained * fed * hidden * covered;
  }
  double TurnNs(const Chosen& chosen) const override { return chosen["alternate"] != 0 ? 100 : 700; }
  int64_t LaunchBound(const Chosen&, int64_t resident) const override { return resident; }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    const int64_t groups = chosen["tile_m"] / chosen["group_rows"] * (1 + chosen["alternate"]);
    constants.Int("GROUP_ROWS", chosen["group_rows"]).Int("GROUPS", groups, "of four warps that multiply");
    constants.Int("CLUSTER_M", chosen["cluster_m"]).Int("CLUSTER_N", chosen["cluster_n"]);
  }
  std::string Text(const Chosen& chosen) const override {
    return fmt::format("{}\n{}\n{}\n{}\n{}", embed::kWgmmaCommonCuh, Instruction(chosen), embed::kWgmmaTileCuh,
                       embed::kTensorCopiesCuh, embed::kMapsLoopCuh);
  }

 private:
  static std::string MultiplyingWarps() { return "tile_m // group_rows * (1 + alternate) * 4"; }
};

}  // namespace

const MainLoop& WgmmaLoop() {
  static const Wgmma loop;
  return loop;
}

const MainLoop& MapsLoop() {
  static const Maps loop;
  return loop;
}

const MainLoop& MainLoopFor(const DeviceProfile& profile) { return profile.cc_major == 9 ? WgmmaLoop() : MmaLoop(); }

}  // namespace atunner
