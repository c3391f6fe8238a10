// Products of a few rows with weights of 8 or 4 bits (quantized_linear, int4_linear). They are
// bound by reading the weights.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/value/capabilities.h"
#include "atunner/operators/library_task.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// The number of rows of x that sums in registers have room for (further rows go to other blocks);
/// and the number from which on warpgroups multiply on Hopper.
constexpr int64_t kMostRows = 64;
constexpr int64_t kManyRows = 17;
/// Elements along k that warpgroups copy at once (quantized_weights_wgmma.cu).
constexpr int64_t kDepth = 128;

bool OfFourBits(const KernelSpec& spec) { return spec.name == "int4_linear"; }
int64_t GroupOf(const KernelSpec& spec) {
  return static_cast<int64_t>(SettingOr(spec, "group", 32));
}

/// y[m, n] = x[m, k] · w[n, k].
class WeightsTemplate : public BoundTemplate {
 protected:
  WeightsTemplate(const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        four_(OfFourBits(spec)),
        m_(ExtentsOf(spec, "x")[0]),
        n_(ExtentsOf(spec, "weight")[0]),
        k_(ExtentsOf(spec, "x")[1]) {}

  /// Constants of the task, and `fragments`, which both kernels have.
  ConstantBlock Constants(const Chosen& at) const {
    ConstantBlock constants;
    constants.Bool("FOUR_BITS", four_).Int("M", m_).Int("N", n_).Int("K", k_);
    constants.Int("GROUP", four_ ? GroupOf(spec_) : k_, "weights that share a scale");
    return constants.Ints(at, {"fragments"});
  }

  bool four_;
  int64_t m_, n_, k_;
};

/// Few rows.
class QuantizedWeights : public WeightsTemplate {
 public:
  QuantizedWeights(const KernelSpec& spec, const DeviceProfile& profile)
      : WeightsTemplate(spec, profile) {
    space_.parameters = {
        {"fragments", Integers({1, 2}), "of sixteen rows of the weights, for each block"},
        {"warps", Integers({4, 8, 16}), "that divide the depth"},
        {"ahead", Integers({1, 2, 4, 8}), "loads of a row that a lane has under way"},
    };
    Add(fmt::format("warps * {} * (16 * fragments + 4) <= 49152", tokens() * 32), "shared memory");
    Add(fmt::format("fragments * ({} + {} * ahead) + 40 <= min(255, 2048 // warps)", 4 * tokens(),
                    four_ ? 10 : 8),
        "registers of a thread");
    Add(fmt::format("warps * ahead <= {}", std::max<int64_t>(4, k_ / chunk())),
        "less depth than that");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants = Constants(at);
    constants.Int("TOKENS", tokens(), "fragments of eight rows of x").Ints(at, {"warps", "ahead"});
    LaunchStep step = Step("product", fmt::format("ceil_div({}, 16 * fragments)", n_),
                           Expr::MustParse("32 * warps"), {"x", "weight", "scale", "y"});
    step.grid[1] = Expr(CeilDiv(m_, 8 * tokens()));
    return RenderedKernel{
        Emit(at, constants,
             {embed::kMmaCommonCuh, embed::kQuantizedWordsCuh, embed::kQuantizedWeightsCu}),
        Plan(at, {step})};
  }

  /// ns: the busiest SM's weights at the rate that its loads in flight reach, and x from L2 for
  /// every block.
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const CostConstants& costs = CostsOf(profile);
    const int64_t fragments = at["fragments"], warps = at["warps"], ahead = at["ahead"];
    const int64_t registers = 40 + fragments * (4 * tokens() + (four_ ? 10 : 8) * ahead);
    const int64_t per_sm = CeilDiv(CeilDiv(n_, 16 * fragments), profile.sms);
    const int64_t resident = std::min(per_sm, profile.registers_per_sm / (32 * warps * registers));
    const double under_way = 1024.0 * Real(resident * warps * fragments * ahead);
    const double pace = std::min(costs.weights_lanes_dram_share * profile.dram_gbps / profile.sms,
                                 under_way / costs.weights_load_ns);
    const double weights = Real(per_sm * 16 * fragments * k_) / (four_ ? 2 : 1);
    const double x = Real(per_sm * tokens() * 16 * k_) * profile.sms;
    return weights / pace + x / (costs.weights_l2_share * profile.l2_gbps) + costs.gemm_launch_ns;
  }

 private:
  int64_t tokens() const { return CeilDiv(std::min(m_, kMostRows), 8); }
  int64_t chunk() const { return four_ ? 128 : 64; }
};

/// Many rows, on Hopper.
class QuantizedWeightsWgmma : public WeightsTemplate {
 public:
  QuantizedWeightsWgmma(const KernelSpec& spec, const DeviceProfile& profile)
      : WeightsTemplate(spec, profile),
        stage_(Expr::MustParse(
            fmt::format("(tile_m * 256 + groups * fragments * {})", four_ ? 4096 : 8192))),
        shared_(Expr::MustParse(fmt::format("stages * ({} + 16)", stage_.text()))),
        registers_(Expr::MustParse(four_ ? "fragments * (tile_m + 32) + 28"
                                         : "fragments * (tile_m // 2 + 32) + 32")) {
    const int64_t tile = std::min<int64_t>(CeilDiv(m_, 8) * 8, 128);
    space_.parameters = {
        {"tile_m", m_ > 128 ? Integers({64, 128, 256}) : Integers({tile}), "rows of x"},
        {"fragments", Integers({1, 2}), "of 64 rows of the weights, for each group of four warps"},
        {"groups", Integers({1, 2, 3, 4}), "warpgroups that multiply"},
        {"stages", Integers({3, 4, 6, 8}), "buffers in shared memory"},
        {"split", Integers({1, 2, 3, 4, 5, 6, 7, 8}), "blocks of a cluster that divide the depth"},
    };
    AddShared(shared_.text());
    Add("groups * fragments <= 4", "rows of a box");
    // A quarter of a multiprocessor has a warp of each group, and one of them the warp that
    // fetches.
    Add(fmt::format("{} <= min(255, 512 // (groups + 1) // 8 * 8)", registers_.text()),
        "registers of a thread");
    Add(fmt::format("split == 1 or 4 * split <= {}", k_ / kDepth), "less depth than that");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t split = at["split"], tile = at["tile_m"], width = four_ ? kDepth / 2 : kDepth;
    ConstantBlock constants = Constants(at);
    constants.Ints(at, {"tile_m", "groups", "stages"}).Int("STAGE_BYTES", Evaluate(stage_, at));
    constants.Int("SPLIT", split);
    LaunchStep step = Step("product", std::to_string(Tiles(at)),
                           Expr::MustParse("128 * groups + 32"),
                           {BoxMap("x", element_, {k_, m_, 1}, {64, tile, 1}),
                            BoxMap("weight", four_ ? DType::kUInt8 : DType::kInt8,
                                   {k_ * width / kDepth, n_, 1}, {width, Rows(at), 1}, width),
                            "scale", "y"});
    step.grid[1] = step.cluster[1] = Expr(split);
    step.shared_bytes = shared_;
    const std::string products = WgmmaText(
        {.columns = tile, .a_in_registers = true, .b_transposed = "0"});
    return RenderedKernel{
        Emit(at, constants,
             {embed::kMmaCommonCuh, embed::kClusterCuh, embed::kWgmmaCommonCuh, products,
              embed::kTensorCopiesCuh, embed::kQuantizedWordsCuh, embed::kQuantizedWeightsWgmmaCu}),
        Plan(at, {step})};
  }

  /// ns: the slowest of DRAM, L2, and the copies or the products of the busiest SM.
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const CostConstants& costs = CostsOf(profile);
    const int64_t split = at["split"], groups = at["groups"];
    // Larger clusters leave multiprocessors of each group of them idle.
    const int64_t per_sm = CeilDiv(Tiles(at) * split,
                                   split > 2 ? profile.sms * 5 / 6 : profile.sms);
    const int64_t registers = Evaluate(registers_, at) * 128 * groups;
    const int64_t shared = Evaluate(shared_, at) + profile.shared_reserved_per_block;
    const int64_t resident = std::clamp<int64_t>(
        std::min(profile.registers_per_sm / registers, profile.shared_per_sm / shared), 1, per_sm);
    const double rows = Real(Rows(at)), tokens = Real(at["tile_m"]);
    const double depth = Real(k_ * per_sm) / Real(split), sms = profile.sms;
    const double weights = rows * depth / (four_ ? 2 : 1);
    const double under_way = Real(resident * (at["stages"] - 1) * kDepth) * rows / (four_ ? 2 : 1);
    const double busy = std::min(
        1.0, costs.weights_busy_base + costs.weights_busy_group * Real(resident * groups));
    return std::max(
               {weights * sms / (costs.gemm_dram_share * profile.dram_gbps),
                (weights + tokens * depth * 2) * sms / (costs.weights_l2_share * profile.l2_gbps),
                weights * costs.gemm_copy_ns / under_way,
                rows * depth /
                    (busy * (four_ ? costs.weights_widened4 : costs.weights_widened8))}) +
           costs.gemm_launch_ns + (split > 1 ? costs.gemm_exchange_ns : 0);
  }

 private:
  static int64_t Rows(const Chosen& at) { return 64 * at["fragments"] * at["groups"]; }
  int64_t Tiles(const Chosen& at) const {
    return CeilDiv(n_, Rows(at)) * CeilDiv(m_, at["tile_m"]);
  }

  Expr stage_, shared_, registers_;
};

bool Matches(const KernelSpec& spec) {
  const std::vector<int64_t> x = ExtentsOf(spec, "x"), weight = ExtentsOf(spec, "weight");
  if (SizeOf(spec.compute_dtype) != 2 || x.size() != 2 || weight.size() != 2) return false;
  if (x[1] % kDepth != 0 || std::max({x[0], x[1], weight[0]}) >= 1 << 30) return false;
  // A lane's sixteen bytes have one scale.
  if (OfFourBits(spec) && GroupOf(spec) % 32 != 0) return false;
  return (OfFourBits(spec) || spec.name == "quantized_linear") &&
         IsLibraryTask(spec, spec.name, {x, {weight[0], x[1]}});
}

BoundSchedule Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  if (CapabilitiesOf(profile).wgmma && ExtentsOf(spec, "x")[0] >= kManyRows)
    return std::make_unique<QuantizedWeightsWgmma>(spec, profile);
  if (OfFourBits(spec) && AccuracyOf(spec) == Accuracy::kStrict)
    return Fail(
        ErrorCode::kUnsupported,
        "scaled int4 weights are rounded, which strict accuracy forbids on " + profile.name);
  ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  return std::make_unique<QuantizedWeights>(spec, profile);
}

}  // namespace

constinit const Family kWeightsFamily{"weights", TryIf<Matches, Bind>};

}  // namespace atunner
