// Attention backward on Hopper, in three kernels: statistics of each query, a kernel whose blocks
// own keys (dk, dv), and one whose blocks own queries (dq);
// kernels/families/attention/attention_backward.cu explains them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/attention/attention_form.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

class AttentionBackward : public BoundTemplate {
 public:
  AttentionBackward(const KernelSpec& spec, const DeviceProfile& profile, const AttentionForm& form)
      : BoundTemplate(spec, profile), form_(form), forward_(form.Forward()) {
    space_.parameters = {
        {"k_tile", Integers({16, 32, 48, 64, 80, 96}),
         "queries that stream by a block of keys at once"},
        {"q_tile", Integers({16, 32, 48, 64, 80, 96, 128}),
         "keys that stream by a block of queries at once"},
    };
    AddShared(StreamBytes(std::to_string(OwnKeys()), "k_tile", kLeast));
    AddShared(StreamBytes(std::to_string(kOwnQueries), "q_tile", kLeast));
    // Registers for sums, two products and their rounded values of a thread, and addresses: with
    // more, products wait for each other.
    Add(fmt::format("{} + k_tile + k_tile // 4 + 24 <= 224", form_.Columns() / (roles() ? 2 : 1)),
        "registers of a thread of blocks of keys");
    Add(fmt::format("{} + q_tile + q_tile // 4 + 24 <= 240", form_.Columns() / 2),
        "registers of a thread of blocks of queries");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants = form_.Constants(1);
    constants.Int("TILE_Q", forward_.queries).Int("TILE_K", forward_.keys);
    constants.Int("STAGES", kForwardStages).Int("QUERY_STAGES", 1);
    constants.Bool("TURNS", form_.dim <= 128).Int("PANEL", kPanelUnits);
    constants.Int("ROWS", Rows(), "queries of a head, rounded up to whole tiles");
    constants.Ints(at, {"k_tile", "q_tile"});
    const auto buffers = [&](const std::string& of, int64_t own, int64_t tile) {
      const int64_t all = Buffers(own, tile), first = std::min<int64_t>(all - 1, 3);
      constants.Int(of + "_STAGES", first, "buffers").Int(of + "_PARTNER_STAGES", all - first);
    };
    buffers("K", OwnKeys(), at["k_tile"]);
    buffers("Q", kOwnQueries, at["q_tile"]);
    constants.Bool("K_ROLES", roles(), "one warpgroup per gradient of a block of keys");
    const std::string products = AttentionProducts({forward_.keys, at["k_tile"], at["q_tile"]},
                                                   form_.Columns());
    return RenderedKernel{.source = Emit(configuration, constants,
                                         {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh, products,
                                          embed::kAttentionQueriesCuh, embed::kAttentionTensorCuh,
                                          embed::kTensorCopiesCuh, embed::kAttentionWgmmaCu,
                                          embed::kAttentionBackwardCu}),
                          .plan = PlanOf(configuration)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const CostConstants& costs = CostsOf(profile);
    const double rate = profile.PeakFlops(spec_.compute_dtype, true) *
                        costs.attention_backward_sustained / profile.sms;
    const double columns = Real(form_.Columns());
    // Blocks take turns on the SMs; each begins with its own tiles. A tile of few columns feeds a
    // tensor core slowly.
    const auto seconds = [&](int64_t own, int64_t tile, double products, bool of_keys) {
      const double works = Real(CeilDiv(OwnRows(of_keys), own) * Heads(of_keys)) /
                           Real(profile.sms);
      const double met = form_.SeenKeys() * Real(form_.queries) / Real(OwnRows(of_keys));
      const double rounds = form_.causal ? std::max(works, 1.0) + costs.attention_backward_tail
                                         : std::ceil(works);
      const double fed = 1.0 + costs.attention_backward_fed / Real(tile);
      return rounds * products * 2.0 * columns * Real(own) * (met + Real(tile + own)) * fed / rate;
    };
    const double forward = seconds(forward_.queries, forward_.keys, 2, false);
    const double keys = seconds(OwnKeys(), at["k_tile"], roles() ? 5 : 4, true) *
                        Real(form_.sharing);
    const double queries = seconds(kOwnQueries, at["q_tile"], 3, false);
    return (forward + keys + queries) * 1e9;
  }

 private:
  static constexpr int64_t kForwardStages = 2, kPanelUnits = 8, kLeast = 3, kOwnQueries = 128;

  /// Sums of both gradients of 64 keys exceed a thread's registers.
  bool roles() const { return form_.dim > 128; }
  int64_t OwnKeys() const { return roles() ? 64 : 128; }
  int64_t OwnRows(bool of_keys) const { return of_keys ? form_.keys : form_.queries; }
  int64_t Heads(bool of_keys) const { return form_.heads / (of_keys ? form_.sharing : 1); }
  /// Tiles of queries may reach beyond the last one.
  int64_t Rows() const { return CeilDiv(form_.queries, 64) * 64 + 128; }

  /// Shared memory with this number of buffers for both streaming tensors together.
  std::string StreamBytes(const std::string& own, const std::string& tile, int64_t buffers) const {
    return fmt::format("2 * {} * {} + 16 + {} * ({} * {} + 16)", own, form_.RowBytes(), buffers,
                       tile, form_.RowBytes() + 8);
  }
  /// Three for each, where there is room.
  int64_t Buffers(int64_t own, int64_t tile) const {
    const int64_t room = profile_.shared_per_block - 2 * own * form_.RowBytes() - 16;
    return std::clamp<int64_t>(room / (tile * (form_.RowBytes() + 8) + 16), kLeast, 6);
  }

  /// Blocks of `own` rows of each head.
  LaunchStep Launch(const char* entry, bool of_keys, int64_t own, int64_t groups,
                    const std::string& shared, const Arguments& arguments, double scale) const {
    const std::string heads = of_keys ? form_.KeyHeads() : form_.heads_text;
    LaunchStep step = Step(entry, fmt::format("({}) * {}", heads, CeilDiv(OwnRows(of_keys), own)),
                           (groups + 1) * 128, arguments);
    AddArguments(step, {"i32:" + form_.queries_text, fmt::format("f32:{:.17g}", scale)});
    step.shared_bytes = Expr::MustParse(shared);
    return step;
  }

  LaunchPlan PlanOf(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    const int64_t k_tile = at["k_tile"], q_tile = at["q_tile"];
    const auto map = [&](const char* tensor, bool of_keys, int64_t rows) {
      return form_.Map(tensor, element_, of_keys, rows);
    };
    const int64_t forward_bytes = (forward_.queries + 2 * forward_.keys * kForwardStages) *
                                      form_.RowBytes() +
                                  kForwardStages * 32 + 64;
    LaunchStep forward = Launch(
        "attention", false, forward_.queries, forward_.queries / 64, std::to_string(forward_bytes),
        {map("q", false, 64), map("k", true, forward_.keys), map("v", true, forward_.keys),
         form_.extra, "dy", "@statistics", "i32:" + form_.heads_text},
        form_.scale * 1.4426950408889634);
    if (forward_.one_per_sm)
      forward.grid[0] = Expr::MustParse(
          fmt::format("min({}, {})", forward.grid[0].text(), profile_.sms));
    const auto bytes = [&](int64_t own, int64_t tile) {
      return StreamBytes(std::to_string(own), std::to_string(tile), Buffers(own, tile));
    };
    const LaunchStep keys = Launch("backward_keys", true, OwnKeys(), 2, bytes(OwnKeys(), k_tile),
                                   {map("k", true, 64), map("v", true, 64), map("q", false, k_tile),
                                    map("dy", false, k_tile), "@statistics", "dk", "dv"},
                                   form_.scale);
    const LaunchStep queries = Launch(
        "backward_queries", false, kOwnQueries, 2, bytes(kOwnQueries, q_tile),
        {map("q", false, 64), map("dy", false, 64), map("k", true, q_tile), map("v", true, q_tile),
         "@statistics", "dq"},
        form_.scale);
    LaunchPlan plan = Plan(configuration, {forward, keys, queries});
    plan.workspaces = {
        {"statistics", Expr::MustParse(fmt::format("{} * {}", form_.heads_text, Rows() * 8))}};
    return plan;
  }

  AttentionForm form_;
  ForwardTile forward_;
};

BoundSchedule Bind(const KernelSpec& spec, const AttentionForm& form,
                   const DeviceProfile& profile) {
  if (CapabilitiesOf(profile).wgmma)
    return std::make_unique<AttentionBackward>(spec, profile, form);
  return Fail(ErrorCode::kUnsupported,
              "gradients of attention have kernels of their own on Hopper alone, and " +
                  profile.name + " is none");
}

Binding Try(const Task& task) {
  const KernelSpec& spec = task.spec();
  const bool all = spec.FindArg("dq") && spec.FindArg("dk") && spec.FindArg("dv");
  const auto form = all && SizeOf(spec.compute_dtype) == 2 ? AttentionForm::Of(spec) : std::nullopt;
  if (!form || form->dim % 8 != 0) return {};
  return {.bind = [spec, form = *form](const DeviceProfile& profile) {
    return Bind(spec, form, profile);
  }};
}

}  // namespace

constinit const Family kAttentionBackwardFamily{"attention_backward", Try};

}  // namespace atunner
