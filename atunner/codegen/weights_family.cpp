// Products of a few rows with weights of 8 or 4 bits (quantized_linear, int4_linear): reading the weights is what takes
// time.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/codegen/library_task.h"
#include "atunner/codegen/wgmma_text.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Rows of x that sums in registers have room for, further ones are other blocks'; those from which on groups of warps
/// multiply on Hopper.
constexpr int64_t kMostRows = 64;
constexpr int64_t kManyRows = 17;
/// ns until a load arrives while DRAM is busy; of L2's rate, what lanes reach that read one row each.
constexpr double kLoadNs = 1000;
constexpr double kL2Share = 0.6;
/// Of k: what groups of warps copy at once (weights_wgmma.cu); of DRAM's rate, what they reach; weights that a
/// multiprocessor widens and multiplies in a ns; ns until a copy arrives, and that a cluster's blocks need to meet.
constexpr int64_t kDepth = 128;
constexpr double kDramShare = 0.82;
constexpr double kWidened8 = 24;
constexpr double kWidened4 = 16;
constexpr double kCopyNs = 1160;
constexpr double kExchangeNs = 1400;

bool OfFourBits(const KernelSpec& spec) { return spec.name == "int4_linear"; }
int64_t GroupOf(const KernelSpec& spec) { return static_cast<int64_t>(SettingOr(spec, "group", 32)); }

/// y[m, n] = x[m, k] · w[n, k].
class WeightsTemplate : public BoundTemplate {
 protected:
  WeightsTemplate(const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        four_(OfFourBits(spec)),
        m_(ExtentsOf(spec, "x")[0]),
        n_(ExtentsOf(spec, "weight")[0]),
        k_(ExtentsOf(spec, "x")[1]) {}

  int64_t At(const Configuration& configuration, const char* name) const { return GetInt(space_, configuration, name); }
  /// Of the task, and `fragments`, which both kernels have.
  ConstantBlock Constants(const Configuration& configuration) const {
    ConstantBlock constants;
    constants.Bool("FOUR_BITS", four_).Int("M", m_).Int("N", n_).Int("K", k_);
    constants.Int("GROUP", four_ ? GroupOf(spec_) : k_, "weights of a scale");
    constants.Int("FRAGMENTS", At(configuration, "fragments"));
    return constants;
  }

  bool four_;
  int64_t m_, n_, k_;
};

/// Few rows.
class Weights : public WeightsTemplate {
 public:
  Weights(const KernelSpec& spec, const DeviceProfile& profile) : WeightsTemplate(spec, profile) {
    space_.parameters = {
        {"fragments", Integers({1, 2}), "of sixteen rows of the weights, for each block"},
        {"warps", Integers({4, 8, 16}), "that divide the depth"},
        {"ahead", Integers({1, 2, 4, 8}), "loads of a row that a lane has under way"},
    };
    Add(fmt::format("warps * {} * (16 * fragments + 4) <= 49152", tokens() * 32), "shared memory");
    Add(fmt::format("fragments * ({} + {} * ahead) + 40 <= min(255, 2048 // warps)", 4 * tokens(), four_ ? 10 : 8),
        "registers of a thread");
    Add(fmt::format("warps * ahead <= {}", std::max<int64_t>(4, k_ / chunk())), "less depth than that");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants = Constants(configuration);
    constants.Int("TOKENS", tokens(), "fragments of eight rows of x");
    constants.Int("WARPS", At(configuration, "warps")).Int("AHEAD", At(configuration, "ahead"));
    LaunchStep step;
    step.entry = "product";
    step.grid[0] = Expr(CeilDiv(n_, 16 * At(configuration, "fragments")));
    step.grid[1] = Expr(CeilDiv(m_, 8 * tokens()));
    step.block[0] = Expr(32 * At(configuration, "warps"));
    for (const char* name : {"x", "weight", "scale", "y"}) step.args.push_back(ArgBinding::Tensor(name));
    return RenderedKernel{
        Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kWeightsWordsCuh, embed::kWeightsCu}),
        Plan(configuration, {step})};
  }

  /// The busiest multiprocessor's share at what its loads under way bring, and x from L2 for every block.
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const int64_t fragments = At(configuration, "fragments");
    const int64_t warps = At(configuration, "warps");
    const int64_t registers = 40 + fragments * (4 * tokens() + (four_ ? 10 : 8) * At(configuration, "ahead"));
    const int64_t per_sm = CeilDiv(CeilDiv(n_, 16 * fragments), profile.sms);
    const int64_t resident = std::min(per_sm, profile.registers_per_sm / (32 * warps * registers));
    const double under_way = 1024.0 * static_cast<double>(resident * warps * fragments * At(configuration, "ahead"));
    const double pace = std::min(0.85 * profile.dram_gbps / profile.sms, under_way / kLoadNs);
    const double weights = static_cast<double>(per_sm * 16 * fragments * k_) / (four_ ? 2 : 1);
    const double x = static_cast<double>(per_sm * tokens() * 16 * k_) * profile.sms;
    return weights / pace + x / (kL2Share * profile.l2_gbps) + 5900;
  }

 private:
  int64_t tokens() const { return CeilDiv(std::min(m_, kMostRows), 8); }
  int64_t chunk() const { return four_ ? 128 : 64; }
};

/// Many rows, on Hopper.
class WeightsOfGroups : public WeightsTemplate {
 public:
  WeightsOfGroups(const KernelSpec& spec, const DeviceProfile& profile)
      : WeightsTemplate(spec, profile),
        stage_(Expr::MustParse(fmt::format("(tile_m * 256 + groups * fragments * {})", four_ ? 4096 : 8192))),
        shared_(Expr::MustParse(fmt::format("stages * ({} + 16)", stage_.text()))),
        registers_(Expr::MustParse(four_ ? "fragments * (tile_m + 32) + 28" : "fragments * (tile_m // 2 + 32) + 32")) {
    const int64_t tile = std::min<int64_t>(CeilDiv(m_, 8) * 8, 128);
    space_.parameters = {
        {"tile_m", m_ > 128 ? Integers({64, 128, 256}) : Integers({tile}), "rows of x"},
        {"fragments", Integers({1, 2}), "of 64 rows of the weights, for each group of four warps"},
        {"groups", Integers({1, 2, 3, 4}), "of four warps that multiply"},
        {"stages", Integers({3, 4, 6, 8}), "buffers in shared memory"},
        {"split", Integers({1, 2, 3, 4, 5, 6, 7, 8}), "blocks of a cluster that divide the depth"},
    };
    Add(fmt::format("{} <= {}", shared_.text(), profile.shared_per_block), "shared memory");
    Add("groups * fragments <= 4", "rows of a box");
    // A quarter of a multiprocessor has a warp of each group, and one of them the warp that fetches.
    Add(fmt::format("{} <= min(255, 512 // (groups + 1) // 8 * 8)", registers_.text()), "registers of a thread");
    Add(fmt::format("split == 1 or 4 * split <= {}", k_ / kDepth), "less depth than that");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const int64_t split = At(configuration, "split"), tile = At(configuration, "tile_m");
    ConstantBlock constants = Constants(configuration);
    constants.Int("TILE_M", tile).Int("GROUPS", At(configuration, "groups"));
    constants.Int("STAGES", At(configuration, "stages")).Int("STAGE_BYTES", Evaluate(stage_, configuration));
    constants.Define("SPLIT", split);
    LaunchStep step;
    step.entry = "product";
    step.grid[0] = Expr(Tiles(configuration));
    step.grid[1] = step.cluster[1] = Expr(split);
    step.block[0] = Expr(128 * At(configuration, "groups") + 32);
    step.shared_bytes = Expr(Evaluate(shared_, configuration));
    const int64_t width = four_ ? kDepth / 2 : kDepth;
    step.args = {Map("x", element_, k_, m_, {Expr(64), Expr(tile)}, 128),
                 Map("weight", four_ ? DType::kUInt8 : DType::kInt8, k_ * width / kDepth, n_,
                     {Expr(width), Expr(Rows(configuration))}, width),
                 ArgBinding::Tensor("scale"), ArgBinding::Tensor("y")};
    std::string products;
    for (const bool accumulates : {true, false})
      products += WgmmaText({.name = accumulates ? "multiply" : "multiply_anew",
                             .columns = tile,
                             .a_in_registers = true,
                             .accumulates = accumulates,
                             .b_transposed = "0"});
    return RenderedKernel{
        Emit(configuration, constants,
             {embed::kMmaCommonCuh, embed::kClusterCuh, embed::kWgmmaCommonCuh, products, embed::kTensorCopiesCuh,
              embed::kRingCuh, embed::kWeightsWordsCuh, embed::kWeightsWgmmaCu}),
        Plan(configuration, {step})};
  }

  /// The busiest multiprocessor's blocks, as long as what takes longest: DRAM, L2, its copies or its products.
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const int64_t split = At(configuration, "split"), groups = At(configuration, "groups");
    // Larger clusters leave multiprocessors of each group of them idle.
    const int64_t per_sm = CeilDiv(Tiles(configuration) * split, split > 2 ? profile.sms * 5 / 6 : profile.sms);
    const int64_t registers = Evaluate(registers_, configuration) * 128 * groups;
    const int64_t shared = Evaluate(shared_, configuration) + profile.shared_reserved_per_block;
    const int64_t resident =
        std::clamp<int64_t>(std::min(profile.registers_per_sm / registers, profile.shared_per_sm / shared), 1, per_sm);
    const auto rows = static_cast<double>(Rows(configuration));
    const auto tokens = static_cast<double>(At(configuration, "tile_m"));
    const double depth = static_cast<double>(k_ * per_sm) / static_cast<double>(split), sms = profile.sms;
    const double weights = rows * depth / (four_ ? 2 : 1);
    const double under_way =
        static_cast<double>(resident * (At(configuration, "stages") - 1) * kDepth) * rows / (four_ ? 2 : 1);
    const double busy = std::min(1.0, 0.5 + 0.125 * static_cast<double>(resident * groups));
    return std::max({weights * sms / (kDramShare * profile.dram_gbps),
                     (weights + tokens * depth * 2) * sms / (kL2Share * profile.l2_gbps), weights * kCopyNs / under_way,
                     rows * depth / (busy * (four_ ? kWidened4 : kWidened8))}) +
           5900 + (split > 1 ? kExchangeNs : 0);
  }

 private:
  static ArgBinding Map(const char* tensor, DType dtype, int64_t columns, int64_t rows, std::vector<Expr> box,
                        int64_t swizzle) {
    return ArgBinding::Map(tensor, dtype,
                           {.dims = {Expr(columns), Expr(rows)},
                            .strides = {Expr(columns)},
                            .box = std::move(box),
                            .swizzle_bytes = Expr(swizzle)});
  }
  int64_t Rows(const Configuration& configuration) const {
    return 64 * At(configuration, "fragments") * At(configuration, "groups");
  }
  int64_t Tiles(const Configuration& configuration) const {
    return CeilDiv(n_, Rows(configuration)) * CeilDiv(m_, At(configuration, "tile_m"));
  }
  int64_t Evaluate(const Expr& expression, const Configuration& configuration) const {
    Bindings bindings;
    const std::vector<std::string> names = space_.Names();
    bindings.Add(names, configuration.values);
    return expression.EvaluateInt(bindings).value();
  }

  Expr stage_, shared_, registers_;
};

class WeightsOfFewBits : public Family {
 public:
  std::string_view name() const override { return "weights"; }
  bool Match(const KernelSpec& spec) const override {
    const std::vector<int64_t> x = ExtentsOf(spec, "x"), weight = ExtentsOf(spec, "weight");
    if (SizeOf(spec.compute_dtype) != 2 || x.size() != 2 || weight.size() != 2) return false;
    if (x[1] % kDepth != 0 || std::max({x[0], x[1], weight[0]}) >= 1 << 30) return false;
    // A lane's sixteen bytes have one scale.
    if (OfFourBits(spec) && GroupOf(spec) % 32 != 0) return false;
    return (OfFourBits(spec) || spec.name == "quantized_linear") &&
           IsLibraryTask(spec, spec.name, {x, {weight[0], x[1]}});
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    const int64_t rows = ExtentsOf(spec, "x")[0];
    if (profile.cc_major == 9 && rows >= kManyRows) return std::make_unique<WeightsOfGroups>(spec, profile);
    if (OfFourBits(spec) && AccuracyOf(spec) == Accuracy::kStrict)
      return Fail(ErrorCode::kUnsupported,
                  "scaled int4 weights are rounded, which strict accuracy forbids on " + profile.name);
    ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
    return std::make_unique<Weights>(spec, profile);
  }
};

}  // namespace

const Family& WeightsFamily() {
  static const WeightsOfFewBits family;
  return family;
}

}  // namespace atunner
