// Gradients of attention on Hopper, in three steps: the forward pass for what gradients need of each query, a kernel
// whose blocks own keys (dk, dv), and one whose blocks own queries (dq). No step adds up in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/library_task.h"
#include "atunner/codegen/wgmma_text.h"
#include "embed/families.h"

namespace atunner {
namespace {

class AttentionBackward : public BoundTemplate {
 public:
  AttentionBackward(const KernelSpec& spec, const DeviceProfile& profile) : BoundTemplate(spec, profile) {
    const std::vector<int64_t> q = ExtentsOf(spec, "q"), k = ExtentsOf(spec, "k");
    batch_ = q[0], heads_ = q[1], sequence_ = q[2], dim_ = q[3], key_heads_ = k[1];
    causal_ = SettingOr(spec, "causal", 0) != 0;
    scale_ = SettingOr(spec, "scale", 1 / std::sqrt(Real(dim_)));
    space_.parameters = {
        {"forward_q", Integers({128, 192}), "forward: queries per block"},
        {"forward_k", Integers({64, 80, 96, 112, 128, 176}), "forward: keys per step"},
        {"forward_order", Integers({0, 1}),
         "forward: one block per tile of queries; or one per SM, with tile after tile"},
        {"k_tile", Integers({16, 32, 48, 64, 80, 96, 128}), "queries that stream by a block of keys at once"},
        {"k_stages", Integers({2, 3}), "buffers for queries"},
        {"k_partner_stages", Integers({1, 2, 3}), "buffers for dy"},
        {"q_groups", Integers({2, 3}), "groups of four warps, each with 64 queries"},
        {"q_tile", Integers({16, 32, 48, 64, 80, 96, 128, 176}), "keys that stream by a block of queries at once"},
        {"q_stages", Integers({2, 3}), "buffers for keys"},
        {"q_partner_stages", Integers({1, 2, 3}), "buffers for values"},
        {"head_group", Integers({1, 4, 16}), "heads that advance together"},
    };
    const auto fits = [&](const std::string& bytes, const char* reason) {
      Add(fmt::format("{} <= {}", bytes, profile.shared_per_block), reason);
    };
    fits(ForwardBytes(), "shared memory of the forward pass");
    fits(KeysBytes(), "shared memory of blocks of keys");
    fits(QueriesBytes(), "shared memory of blocks of queries");
    // Sums, two products and their rounded values of a thread, and what addresses take; against what the thread that
    // loads leaves.
    Add(fmt::format("{} + forward_k // 2 + forward_k // 4 + 24 <= (forward_q == 192 ? 160 : 232)", Columns() / 2),
        "registers of a thread of the forward pass");
    Add(fmt::format("{} + k_tile + k_tile // 4 + 24 <= 240", Columns() / (roles() ? 2 : 1)),
        "registers of a thread of blocks of keys");
    Add(fmt::format("{} + q_tile + q_tile // 4 + 24 <= (q_groups == 3 ? 168 : 248)", Columns() / 2),
        "registers of a thread of blocks of queries");
    Add(fmt::format("head_group == 1 or head_group <= {}", batch_ * key_heads_), "more heads than there are");
  }

  /// The steps have nothing to do with each other, so that each finds its own parameters.
  Configuration Default() const override {
    Choices chosen;
    for (const Parameter& parameter : space_.parameters) chosen.push_back({parameter.values[0]});
    constexpr size_t kSteps[] = {0, 3, 6, 10};
    for (size_t step = 0; step + 1 < std::size(kSteps); ++step) {
      Choices choices = chosen;
      for (size_t i = kSteps[step]; i < kSteps[step + 1]; ++i) choices[i] = space_.parameters[i].values;
      const Configuration best = CheapestOf(choices);
      for (size_t i = kSteps[step]; i < kSteps[step + 1]; ++i) chosen[i] = {best.values[i]};
    }
    return CheapestOf(chosen);
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t forward_k = at["forward_k"];
    ConstantBlock constants;
    constants.Define("STATISTICS", 1).Int("DIM", dim_).Bool("CAUSAL", causal_);
    constants.Int("TILE_Q", at["forward_q"]).Int("TILE_K", forward_k);
    constants.Int("STAGES", kForwardStages).Int("QUERY_STAGES", 1);
    constants.Bool("NEGATIVE", scale_ < 0, "the scale's sign: the least score weighs most");
    constants.Bool("TURNS", dim_ <= 128).Bool("PAIRS", false).Int("PANEL", kPanelUnits);
    constants.Int("SHARING", heads_ / key_heads_, "query heads that share a key head");
    constants.Int("ROWS", Rows(), "queries of a head, with room behind");
    constants.Int("K_GROUPS", 2);
    constants.Ints(at, {"head_group", "k_tile", "k_stages", "k_partner_stages", "q_groups", "q_tile", "q_stages",
                        "q_partner_stages"});
    constants.Bool("K_ROLES", roles(), "a group for each gradient of a block of keys");
    const std::string products = AttentionProducts({forward_k, at["k_tile"], at["q_tile"]}, Columns());
    return RenderedKernel{
        .source = Emit(configuration, constants,
                       {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh, products, embed::kAttentionQueriesCuh,
                        embed::kAttentionTensorCuh, embed::kTensorCopiesCuh, embed::kAttentionWgmmaCu,
                        embed::kAttentionBackwardCu}),
        .plan = PlanOf(configuration)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double rate = profile.PeakFlops(spec_.compute_dtype, true) * kSustained / profile.sms;
    const double columns = Real(Columns());
    // Blocks take turns on the SMs; each begins with its own tiles. A tile of few columns feeds a tensor core slowly,
    // one of many needs more registers than there are, and buffers hide the copies.
    const auto seconds = [&](int64_t own, int64_t tile, double sums, double products, int64_t heads) {
      const double works = Real(CeilDiv(sequence_, own) * heads) / Real(profile.sms);
      const double seen = Real(sequence_) * (causal_ ? 0.5 : 1.0) + Real(tile + own);
      const double rounds = causal_ ? std::max(works, 1.0) + 0.3 : std::ceil(works);
      const double registers = sums + 1.25 * Real(tile) + 24;
      const double fed = (1.0 + 24.0 / Real(tile)) * (1.0 + 0.006 * std::max(registers - 208, 0.0));
      return rounds * products * 2.0 * columns * Real(own) * seen * fed / rate;
    };
    const auto buffered = [&](const char* stages, const char* partner) {
      const auto each = [](int64_t count) { return count == 1 ? 1.04 : count == 2 ? 1.02 : 1.0; };
      return each(at[stages]) * each(at[partner]);
    };
    const int64_t heads = batch_ * heads_, key_heads = batch_ * key_heads_;
    const double members = Real(heads_ / key_heads_);
    // Narrow heads wait for exponentials, which three groups hide; blocks with tile after tile balance a mask badly.
    const bool narrow = dim_ <= 64, one_per_sm = at["forward_order"] == 1;
    const double forward = seconds(at["forward_q"], at["forward_k"], columns / 2, 2, heads) *
                           (narrow && at["forward_q"] == 192 ? 0.85 : 1.0) *
                           (one_per_sm ? (causal_ && !narrow ? 1.3 : 0.98) : 1.0);
    const double keys = seconds(OwnKeys(), at["k_tile"], columns / (roles() ? 2 : 1), roles() ? 5 : 4, key_heads) *
                        members * buffered("k_stages", "k_partner_stages");
    const double queries = seconds(at["q_groups"] * 64, at["q_tile"], columns / 2, 3, heads) *
                           buffered("q_stages", "q_partner_stages") * (at["q_groups"] == 3 ? 1.1 : 1.0);
    return (forward + keys + queries) * (at["head_group"] == 1 ? 1.0 : 1.001) * 1e9;
  }

 private:
  static constexpr int64_t kForwardStages = 2, kPanelUnits = 8;
  /// Of the tensor-core peak that long products keep up.
  static constexpr double kSustained = 0.6;

  /// Sums of both gradients of 64 keys exceed a thread's registers.
  bool roles() const { return dim_ > 128; }
  int64_t OwnKeys() const { return roles() ? 64 : 128; }
  /// Columns of the sums, rounded up to whole steps of 16.
  int64_t Columns() const { return CeilDiv(dim_, 16) * 16; }
  int64_t RowBytes() const { return CeilDiv(dim_, 64) * 128; }
  /// Tiles of queries may reach beyond the last one.
  int64_t Rows() const { return CeilDiv(sequence_, 64) * 64 + 128; }

  std::string ForwardBytes() const {
    return fmt::format("((forward_q + 2 * forward_k * {0}) * {1} + {0} * 32 + forward_q // 4)", kForwardStages,
                       RowBytes());
  }
  /// A block's own tiles, those that stream by, and barriers.
  std::string KeysBytes() const {
    return fmt::format(
        "((2 * {} + (k_stages + k_partner_stages) * k_tile) * {} + k_stages * k_tile * 8 + (k_stages + "
        "k_partner_stages) * 16 + 16)",
        OwnKeys(), RowBytes());
  }
  std::string QueriesBytes() const {
    return fmt::format(
        "((2 * q_groups * 64 + (q_stages + q_partner_stages) * q_tile) * {} + (q_stages + q_partner_stages) * 16 + 16)",
        RowBytes());
  }

  Expr Heads(bool of_keys) const {
    const Expr batch = spec_.FindArg("q")->shape[0];
    return Expr::MustParse(fmt::format("({}) * {}", batch.text(), of_keys ? key_heads_ : heads_));
  }
  ArgBinding Map(const char* tensor, bool of_keys, int64_t rows) const {
    return PanelMap(tensor, spec_.compute_dtype, {dim_, sequence_, Heads(of_keys)}, rows);
  }
  /// Blocks of `own` rows of each head.
  LaunchStep Launch(const char* entry, bool of_keys, int64_t own, int64_t groups, const std::string& shared,
                    const Arguments& arguments, double scale) const {
    const std::string heads = Heads(of_keys).text();
    LaunchStep step =
        Step(entry, fmt::format("({}) * {}", heads, CeilDiv(sequence_, own)), (groups + 1) * 128, arguments);
    AddArguments(step, {"i32:" + heads, fmt::format("i32:{}", sequence_), fmt::format("f32:{:.17g}", scale)});
    step.shared_bytes = Expr::MustParse(shared);
    return step;
  }

  LaunchPlan PlanOf(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    const int64_t forward_q = at["forward_q"], k_tile = at["k_tile"], q_tile = at["q_tile"];
    LaunchStep forward = Launch(
        "attention", false, forward_q, forward_q / 64, ForwardBytes(),
        {Map("q", false, 64), Map("k", true, at["forward_k"]), Map("v", true, at["forward_k"]), "dy", "@statistics"},
        scale_ * 1.4426950408889634);
    if (at["forward_order"] == 1)
      forward.grid[0] = Expr::MustParse(fmt::format("min({}, {})", forward.grid[0].text(), profile_.sms));
    const LaunchStep keys = Launch("backward_keys", true, OwnKeys(), 2, KeysBytes(),
                                   {Map("k", true, 64), Map("v", true, 64), Map("q", false, k_tile),
                                    Map("dy", false, k_tile), "@statistics", "dk", "dv"},
                                   scale_);
    const LaunchStep queries = Launch("backward_queries", false, at["q_groups"] * 64, at["q_groups"], QueriesBytes(),
                                      {Map("q", false, 64), Map("dy", false, 64), Map("k", true, q_tile),
                                       Map("v", true, q_tile), "@statistics", "dq"},
                                      scale_);
    LaunchPlan plan = Plan(configuration, {forward, keys, queries});
    plan.workspaces = {{"statistics", Expr::MustParse(fmt::format("({}) * {}", Heads(false).text(), Rows() * 8))}};
    return plan;
  }

  int64_t batch_ = 1, heads_ = 1, key_heads_ = 1, sequence_ = 1, dim_ = 1;
  bool causal_ = false;
  double scale_ = 1;
};

bool Matches(const KernelSpec& spec) {
  if (SizeOf(spec.compute_dtype) != 2 || !IsLibraryTask(spec, "attention_gqa_backward", {"q", "k"})) return false;
  const std::vector<int64_t> q = ExtentsOf(spec, "q"), k = ExtentsOf(spec, "k");
  const bool all = spec.FindArg("dq") && spec.FindArg("dk") && spec.FindArg("dv");
  return all && q[2] == k[2] && SettingOr(spec, "window", 0) == 0 && q[3] % 8 == 0 && q[3] <= 256 && q[2] < (1 << 30);
}
Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  if (profile.cc_major == 9) return std::make_unique<AttentionBackward>(spec, profile);
  return Fail(ErrorCode::kUnsupported,
              "gradients of attention have kernels of their own on Hopper alone, and " + profile.name + " is none");
}

}  // namespace

const Family& AttentionBackwardFamily() {
  static const TaskFamily family("attention_backward", Matches, Bind);
  return family;
}

}  // namespace atunner
