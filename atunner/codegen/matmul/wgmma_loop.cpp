// Main loops on Hopper (wgmma), where every thread copies or where tensor maps copy.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/matmul/main_loop.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// tile_m, tile_n, group_rows, alternate, stages of schedules worth starting from, where tensor
/// maps copy.
constexpr int64_t kMappedTiles[][5] = {
    {128, 256, 64, 0, 4},  {256, 128, 128, 0, 4}, {128, 192, 64, 0, 5}, {192, 128, 64, 0, 5},
    {128, 128, 128, 1, 6}, {128, 128, 128, 0, 6}, {128, 128, 64, 0, 6}, {128, 128, 64, 0, 3},
    {128, 64, 64, 0, 8},   {64, 256, 64, 1, 5},   {64, 256, 64, 0, 5},  {64, 256, 64, 0, 4},
    {64, 192, 64, 0, 6},   {64, 128, 64, 0, 8},   {64, 128, 64, 0, 4},  {64, 64, 64, 0, 12},
    {64, 64, 64, 0, 6}};

/// Groups of four warps, each `group_rows` × tile_n of a tile. Every thread copies; or, with tensor
/// maps, warps that only fetch, and groups that may take tiles in turns.
class Wgmma : public MainLoop {
 public:
  explicit Wgmma(bool maps, Operands operands = Operands::k16Bits)
      : maps_(maps), operands_(operands) {}
  bool Persists() const override { return true; }

  std::vector<Parameter> Parameters() const override {
    std::vector<Parameter> parameters = {
        {"tile_m", Integers({64, 128, 192, 256}), "rows of the result per tile"},
        {"tile_n", Integers({64, 128, 192, 256}), "columns of the result per tile"},
        {"tile_k", Integers({128 / Bytes()}), "depth of one buffer"},
        {"group_rows", Integers({64, 128}), "rows of the result per group of four warps"},
    };
    if (maps_)
      parameters.push_back(
          {"alternate", Integers({0, 1}),
           "two sets of groups take tiles in turns: one multiplies while one stores"});
    if (Promotes())
      parameters.push_back(
          {"promote", Integers({2, 0}), "buffers whose sums are added up in float32; 0 = all"});
    parameters.push_back({"stages",
                          maps_ ? Integers({2, 3, 4, 5, 6, 8, 12}) : Integers({3, 4, 5, 6, 8}),
                          "buffers in shared memory"});
    return parameters;
  }
  std::vector<Constraint> Constraints() const override {
    return {{Expr::MustParse("tile_m % group_rows == 0"), "groups divide the tile"},
            {Expr::MustParse(Multiplying() + (maps_ ? " <= 12" : " <= 16")), "too many groups"}};
  }
  std::vector<std::vector<int64_t>> Starts() const override {
    if (!maps_)
      return {{128, 256, 64, 64, 4},  {256, 128, 64, 128, 4}, {256, 128, 64, 64, 4},
              {128, 192, 64, 64, 4},  {128, 128, 64, 64, 3},  {128, 128, 64, 64, 5},
              {128, 128, 64, 128, 3}, {64, 256, 64, 64, 4},   {128, 64, 64, 64, 4},
              {64, 128, 64, 64, 4},   {64, 64, 64, 64, 4},    {64, 64, 64, 64, 8}};
    std::vector<std::vector<int64_t>> starts;
    for (const int64_t promote : {2, 0}) {
      if (!Promotes() && promote > 0) continue;
      for (const auto& [tile_m, tile_n, group_rows, alternate, stages] : kMappedTiles) {
        starts.push_back({tile_m, tile_n, 128 / Bytes(), group_rows, alternate});
        if (Promotes()) starts.back().push_back(promote);
        starts.back().push_back(stages);
      }
    }
    return starts;
  }
  std::string Warps() const override {
    const std::string fetching = Promotes() ? "(4 if " + HandsOver() + " else 1)" : "1";
    return maps_ ? fmt::format("({} + {})", Multiplying(), fetching) : "(" + Multiplying() + ")";
  }
  std::string Registers() const override {
    return Promotes() ? "(group_rows * tile_n // 128 * (1 + min(promote, 1)) + (24 if promote > 0 "
                        "else 40))"
                      : "(group_rows * tile_n // 128 + 40)";
  }
  std::string RegistersOfBlock() const override {
    if (!Promotes()) return MainLoop::RegistersOfBlock();
    return fmt::format("({} * {} // 4 + 40 if {} else {})", Registers(), Multiplying(), HandsOver(),
                       MainLoop::RegistersOfBlock());
  }
  std::string SharedBytes() const override {
    return fmt::format("((tile_m + tile_n) * 128 * stages + {} * 2048 {})", Multiplying(),
                       maps_ ? "+ stages * 16" : "* persistent");
  }

  double Efficiency(const Chosen& chosen, int64_t resident,
                    const DeviceProfile& profile) const override {
    const CostConstants& costs = CostsOf(profile);
    return maps_ ? MappedEfficiency(chosen, resident, costs)
                 : CopiedEfficiency(chosen, resident, costs);
  }
  double TurnNs(const Chosen& chosen, const CostConstants& costs) const override {
    if (!maps_) return MainLoop::TurnNs(chosen, costs);
    return chosen["alternate"] != 0 ? costs.tma_turn_alternate_ns : costs.tma_turn_ns;
  }

  void AddConstants(const Chosen& chosen, ConstantBlock& constants) const override {
    constants.Int("GROUP_ROWS", chosen["group_rows"]);
    if (maps_) constants.Int("GROUPS", Groups(chosen), "warpgroups that multiply");
    constants.Int("OPERAND_BYTES", Bytes());
    if (maps_) constants.Int("PROMOTE", Promotes() ? chosen["promote"] : 0, "buffers at a time");
    constants.Line(operands_ == Operands::kInt8 ? "typedef int Sum;" : "typedef float Sum;");
  }
  std::string Text(const Chosen& chosen) const override {
    const std::string multiply = WgmmaText({.columns = chosen["tile_n"],
                                            .b_transposed = "B_TRANSPOSED ? 0 : 1",
                                            .operands = operands_});
    const std::string text = fmt::format("{}\n{}\n{}", embed::kWgmmaCommonCuh, multiply,
                                         embed::kWgmmaTileCuh);
    if (!maps_)
      return fmt::format("{}\n{}\n{}", text, embed::kWgmmaLoopCuh, embed::kTileWalkersCuh);
    return fmt::format("{}\n{}\n{}\n{}", text, embed::kTensorCopiesCuh, embed::kBatchesCuh,
                       embed::kMapsLoopCuh);
  }

 private:
  /// A product of 64 × n reads 64 + n rows of shared memory, which narrow ones wait for. A group
  /// keeps two tiles' products in flight; the barrier before them and the copies' latency remain to
  /// be hidden.
  double CopiedEfficiency(const Chosen& chosen, int64_t resident,
                          const CostConstants& costs) const {
    const double fed = std::min(
        1.0, costs.wgmma_fed_base + costs.wgmma_fed * Real(chosen["tile_n"]) / 128.0);
    const double hidden = std::min(
        1.0, costs.wgmma_hidden_base + costs.wgmma_hidden_group * Real(Groups(chosen) * resident));
    const double ahead = Real((chosen["stages"] - 2) * resident);
    const double covered = std::min(1.0,
                                    costs.wgmma_covered_base + costs.wgmma_covered_stage * ahead);
    return costs.wgmma_sustained * fed * hidden * covered;
  }
  /// Narrow products wait for shared memory, a single group of 64 rows for itself.
  double MappedEfficiency(const Chosen& chosen, int64_t resident,
                          const CostConstants& costs) const {
    const int64_t columns = chosen["tile_n"];
    const double fed = columns == 256   ? 1.0
                       : columns == 192 ? costs.tma_fed192
                       : columns == 128 ? costs.tma_fed128
                                        : costs.tma_fed64;
    const bool alone = Groups(chosen) * resident <= 1 && chosen["group_rows"] != 128;
    const double hidden = alone ? costs.tma_one_group : 1.0;
    const int64_t ahead = (chosen["stages"] - 1) * resident;
    const double covered = ahead >= 3 ? 1.0 : ahead == 2 ? costs.tma_ahead2 : costs.tma_ahead1;
    // Additions in float32 stand between products.
    const double added = Promotes() && chosen["promote"] > 0 ? costs.tma_promoted : 1.0;
    return costs.tma_sustained * fed * hidden * covered * added;
  }
  bool Promotes() const { return operands_ == Operands::kFloat8; }
  int64_t Bytes() const { return operands_ == Operands::k16Bits ? 2 : 1; }
  /// Warpgroups that multiply.
  int64_t Groups(const Chosen& chosen) const {
    return chosen["tile_m"] / chosen["group_rows"] * (maps_ ? 1 + chosen["alternate"] : 1);
  }
  /// Their warps.
  std::string Multiplying() const {
    return maps_ ? "tile_m // group_rows * (1 + alternate) * 4" : "tile_m // group_rows * 4";
  }
  /// True if a warpgroup fetches, so that it can give registers to others (maps_loop.cuh).
  std::string HandsOver() const { return "promote > 0 and " + Multiplying() + " > 4"; }

  bool maps_;
  Operands operands_;
};

}  // namespace

const MainLoop& WgmmaLoop() {
  static const Wgmma loop(false);
  return loop;
}

const MainLoop& MapsLoop(Operands operands) {
  static const Wgmma loops[] = {Wgmma(true), Wgmma(true, Operands::kFloat8),
                                Wgmma(true, Operands::kInt8)};
  return loops[static_cast<size_t>(operands)];
}

const MainLoop& CopyingLoop(const DeviceProfile& profile) {
  return CapabilitiesOf(profile).wgmma ? WgmmaLoop() : MmaLoop();
}

}  // namespace atunner
