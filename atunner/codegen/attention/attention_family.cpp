// Attention, forward, of any mask, window and sharing of keys: float16 and bfloat16 on tensor cores
// through wgmma or mma.sync, float32 with fused multiply-adds.
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

/// Shared by all kernels: one block per tile of queries of one head, while keys and values stream
/// by.
class AttentionTemplate : public BoundTemplate {
 public:
  AttentionTemplate(const KernelSpec& spec, const DeviceProfile& profile, const AttentionForm& form)
      : BoundTemplate(spec, profile), form_(form) {}

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    if (!any_length()) return {};
    // One query; and tiles of queries and keys that are partly filled, with more heads than one
    // group has.
    const int64_t queries = GetInt(space_, configuration, "tile_q");
    const int64_t keys = GetInt(space_, configuration, "tile_k");
    const int64_t length = std::max(queries, 2 * keys) + 5;
    return {{{"heads", 1}, {"sequence", 1}, {"dim", form_.dim}},
            {{"heads", 2}, {"sequence", length}, {"dim", form_.dim}}};
  }
  ValidSizes FreeSizes(const Configuration&) const override {
    if (!any_length()) return OpenSize();
    return {{"heads", "sequence"},
            {{Expr::MustParse("sequence <= 1073741824"), "31-bit counters"}}};
  }

 protected:
  ConstantBlock Constants(const Configuration& configuration, int64_t head_group = 1) const {
    return form_.Constants(0, head_group).Ints(chosen(configuration), {"tile_q", "tile_k"});
  }

  /// One block per tile of queries; q, k and v as pointers unless `step` has them already.
  RenderedKernel Finish(const Configuration& configuration, SourceUnit source, int64_t threads,
                        LaunchStep step = {}) const {
    step.entry = "attention";
    if (step.args.empty()) step = Step("attention", Works(), 1, {"q", "k", "v"});
    step.block[0] = Expr(threads);
    step.shared_bytes = shared_;
    // Powers of two are what the hardware has: e^x = 2^(x log2 e).
    AddArguments(step, {form_.extra, "y", "i32:" + form_.heads_text, "i32:" + form_.queries_text,
                        fmt::format("f32:{} * 1.4426950408889634", form_.scale_text)});
    return {.source = std::move(source), .plan = Plan(configuration, {step})};
  }
  std::string Works() const {
    return fmt::format("ceil_div({}, tile_q) * {}", form_.queries_text, form_.heads_text);
  }

  /// Adds the limit of shared memory, and allows no tiles larger than the task but for the smallest
  /// ones.
  void AddLimits(const std::string& shared, int64_t least_queries, int64_t least_keys) {
    shared_ = Expr::MustParse(shared);
    AddShared(shared);
    Add(fmt::format("tile_q == {} or tile_q < 2 * {}", least_queries, form_.queries_text),
        "more queries than there are");
    Add(fmt::format("tile_k == {} or tile_k < 2 * {}", least_keys, form_.keys_text),
        "more keys than there are");
  }

  /// Blocks whose shared memory an SM has.
  int64_t SharedFits(const Configuration& configuration) const {
    return profile_.shared_per_sm /
           (Evaluate(shared_, configuration) + profile_.shared_reserved_per_block);
  }
  /// Seconds of the busiest SM: the number of its blocks, one after another, times the time of one
  /// block.
  double BlockSeconds(int64_t tile_q, int64_t resident, double rate_per_sm) const {
    const double blocks = Real(CeilDiv(form_.queries, tile_q) * form_.heads);
    const double waves = std::ceil(blocks / Real(profile_.sms * resident)) * Real(resident);
    return waves * 4.0 * Real(tile_q) * form_.SeenKeys() * Real(form_.dim) / rate_per_sm;
  }
  /// Heads and lengths are sizes of the task; else its sequences alone.
  bool any_length() const { return form_.queries_text == "sequence"; }

  AttentionForm form_;
  Expr shared_;  ///< bytes of a block
};

class MmaAttention : public AttentionTemplate {
 public:
  MmaAttention(const KernelSpec& spec, const DeviceProfile& profile, const AttentionForm& form)
      : AttentionTemplate(spec, profile, form) {
    space_.parameters = {
        {"tile_q", Integers({64, 128, 256}), "queries per block"},
        {"warp_q", Integers({16, 32}), "queries per warp"},
        {"tile_k", Integers({32, 64, 128}), "keys per step"},
        {"stages", Integers({2, 3}), "buffers for keys and values"},
        {"q_registers", Integers({0, 1}), "keep the queries in registers"},
    };
    Add("2 <= tile_q // warp_q <= 16", "2 to 16 warps");
    // Output, scores and queries of a thread, and what addresses take.
    const std::string held = fmt::format(
        "(warp_q // 16 * ({} + tile_k // 2 + (q_registers * {} + 1) * 4 + 4) + 28)", 4 * Units(),
        Units() / 2 - 1);
    Add(held + " <= 255", "registers of a thread");
    Add(held + " * 2 * tile_q // warp_q * 16 <= 65536", "registers of a block");
    AddLimits(fmt::format("(tile_q + 2 * tile_k * stages) * {}", RowBytes()), 64, 32);
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants = Constants(configuration);
    const int64_t threads = at["tile_q"] / at["warp_q"] * 32;
    constants.Int("THREADS", threads).Ints(at, {"warp_q", "stages"});
    constants.Int("PANEL", Units(), "units of 16 bytes in a row of a panel in shared memory");
    constants.Bool("Q_REGISTERS", at["q_registers"] != 0);
    return Finish(configuration,
                  Emit(configuration, constants,
                       {embed::kMmaCommonCuh, embed::kAttentionQueriesCuh,
                        embed::kAttentionTensorCuh, embed::kAttentionMmaCu}),
                  threads);
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const int64_t warps = at["tile_q"] / at["warp_q"];
    const int64_t resident = std::clamp<int64_t>(
        std::min(SharedFits(configuration), 8 / std::min<int64_t>(8, warps)), 1, 4);
    const CostConstants& costs = CostsOf(profile);
    // 16 queries per warp read each key and value from shared memory twice as often as 32 do;
    // longer key tiles mean fewer barriers; a second buffer hides the copies; eight warps per SM
    // hide the softmax behind the products.
    const double fed = at["warp_q"] == 16 ? costs.attention_mma_warp16 : 1.0;
    const double barriers = 1.0 + costs.attention_mma_barrier / Real(at["tile_k"]);
    const double copies = at["stages"] == 3 ? costs.attention_mma_stages3 : 1.0;
    const double hidden = std::min(1.0,
                                   costs.attention_mma_hidden_base +
                                       costs.attention_mma_hidden * Real(warps * resident) / 8.0);
    const double queries = at["q_registers"] == 0 ? costs.attention_mma_reload : 1.0;
    const double rate = profile.PeakFlops(spec_.compute_dtype, true) * profile.mma_sync_share /
                        profile.sms * fed * hidden;
    return BlockSeconds(at["tile_q"], resident, rate) * barriers * copies * queries * 1e9;
  }

 private:
  /// 16-byte units of a row, rounded up to whole steps of 16 elements.
  int64_t Units() const { return (form_.dim + 15) / 16 * 2; }
  /// The function `pitch` of mma_common.cuh.
  int64_t RowBytes() const {
    const int64_t units = Units();
    return (units % 8 == 0 || units == 2 || units == 4 ? units : units + 1) * 16;
  }
};

/// Hopper: one warp loads by tensor maps, groups of four warps multiply.
class WgmmaAttention : public AttentionTemplate {
 public:
  WgmmaAttention(const KernelSpec& spec, const DeviceProfile& profile, const AttentionForm& form)
      : AttentionTemplate(spec, profile, form) {
    space_.parameters = {
        {"tile_q", Integers({64, 128, 192}), "queries per block, 64 for each group of four warps"},
        {"tile_k", Integers({32, 64, 80, 96, 112, 128, 144, 160, 176, 192}), "keys per step"},
        {"order", Integers({0, 1}),
         "one block per tile of queries; or one per SM, with tile after tile"},
    };
    // Registers for output, scores, weights, addresses and the softmax of a thread, against those
    // that the loading warpgroup leaves (kernels/families/attention/attention_wgmma.cu).
    const std::string added = form_.given >= 2 ? "tile_k // 2"
                                               : "tile_k // 4";  // with the elements of a mask
    Add(fmt::format("{} + tile_k // 2 + {} + 24 <= (tile_q == 192 ? 160 : 232)",
                    form_.Columns() / 2, added),
        "registers of a thread");
    AddLimits(SharedText(1), 64, 32);
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    std::vector<Dims> sizes = AttentionTemplate::CheckDims(configuration);
    // Blocks with more than one tile of queries.
    if (!sizes.empty() && GetInt(space_, configuration, "order") != 0)
      sizes[0]["heads"] = profile_.sms + 3;
    return sizes;
  }
  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t keys = at["tile_k"];
    // Heads whose keys and values L2 holds advance together, where nothing else balances blocks of
    // different lengths.
    const bool cached = 16 * form_.keys * form_.dim / form_.sharing <= profile_.l2_bytes * 3 / 4;
    ConstantBlock constants = Constants(configuration, at["order"] == 0 && cached ? 4 : 1);
    // Where a block goes on to another tile of queries, they should be there.
    const Expr twice = Expr::MustParse(SharedText(2));
    const bool ahead = at["order"] != 0 &&
                       Evaluate(twice, configuration) <= profile_.shared_per_block;
    constants.Int("STAGES", kStages, "buffers for keys and values")
        .Int("QUERY_STAGES", ahead ? 2 : 1);
    constants.Bool("TURNS", form_.dim <= 128 && at["tile_q"] > 64,
                   "groups take turns at the tensor cores");
    constants.Int("PANEL", kPanelUnits, "units of 16 bytes in a row of a panel in shared memory");
    const std::string products = AttentionProducts({keys}, form_.Columns());
    LaunchStep step = Step(
        "attention", at["order"] != 0 ? fmt::format("min({}, {})", Works(), profile_.sms) : Works(),
        1);
    step.args = {form_.Map("q", element_, false, 64), form_.Map("k", element_, true, keys),
                 form_.Map("v", element_, true, keys)};
    RenderedKernel kernel = Finish(
        configuration,
        Emit(configuration, constants,
             {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh, products, embed::kAttentionQueriesCuh,
              embed::kAttentionTensorCuh, embed::kTensorCopiesCuh, embed::kAttentionWgmmaCu}),
        at["tile_q"] * 2 + 128, std::move(step));
    if (ahead) kernel.plan.steps[0].shared_bytes = twice;
    return kernel;
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const int64_t groups = at["tile_q"] / 64, tile_k = at["tile_k"];
    // Per score: its part of both products, and an exponential (an SM computes sixteen in the time
    // of 4096 FLOP) with the addition of a mask. Warpgroups hide one behind the other, except for a
    // barrier per tile.
    const CostConstants& costs = CostsOf(profile);
    const double products = 4.0 * Real(form_.Columns());
    const double weights = form_.given >= 2 ? costs.attention_mask_flops
                                            : costs.attention_score_flops;
    const double shown = groups == 1 ? 1.0 : costs.attention_shown / Real(groups - 1);
    const double score = std::max(products, weights) + shown * std::min(products, weights);
    const double barriers = 1.0 + costs.attention_barrier / Real(tile_k);
    const ForwardTile best = form_.Forward();
    const double measured = at["tile_q"] == best.queries && tile_k == best.keys
                                ? costs.attention_best
                                : 1.0;
    const double tile = score * Real(at["tile_q"] * tile_k) * barriers * measured;
    const double rate = profile.PeakFlops(spec_.compute_dtype, true) * costs.attention_sustained /
                        profile.sms;
    return BusiestSm(configuration) * tile / rate * 1e9;
  }

 private:
  static constexpr int64_t kPanelUnits = 8, kStages = 2;

  /// Tiles of keys that the busiest SM computes, including the cost of the beginning and the end of
  /// a tile of queries, in such tiles.
  double BusiestSm(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    const int64_t tile_q = at["tile_q"], tile_k = at["tile_k"];
    const bool one_per_sm = at["order"] == 1;
    const CostConstants& costs = CostsOf(profile_);
    double longest = 0, all = 0;  // of the rows of tiles of a head
    for (int64_t first = 0; first < form_.queries; first += tile_q) {
      const double row = Real(form_.Tiles(first, std::min(tile_q, form_.queries - first), tile_k)) +
                         (one_per_sm ? costs.attention_ends_persistent : costs.attention_ends) /
                             Real(tile_k);
      longest = std::max(longest, row), all += row;
    }
    const double works = Real(CeilDiv(form_.queries, tile_q) * form_.heads) / Real(profile_.sms);
    if (!form_.causal) return std::ceil(works) * longest;
    // Long rows first fill up evenly. Blocks with row after row do so too, but for very long ones.
    const double even = std::max(all * Real(form_.heads) / Real(profile_.sms), longest);
    return one_per_sm
               ? even * (form_.Forward().one_per_sm ? 1.0 : costs.attention_persistent_uneven)
               : even + costs.attention_tail * longest;
  }

  /// Bytes with so many buffers for queries: tiles and barriers.
  std::string SharedText(int64_t buffers) const {
    return fmt::format("({0} * tile_q + {1} * tile_k) * {2} + {1} * 16 + {0} * tile_q // 4",
                       buffers, 2 * kStages, form_.RowBytes());
  }
};

class SimtAttention : public AttentionTemplate {
 public:
  SimtAttention(const KernelSpec& spec, const DeviceProfile& profile, const AttentionForm& form)
      : AttentionTemplate(spec, profile, form) {
    space_.parameters = {
        {"tile_q", Integers({16, 32, 64, 128}), "queries per block"},
        {"thread_q", Integers({1, 2, 4, 8}), "queries of a thread"},
        {"tile_k", Integers({16, 32, 64, 128}), "keys per step"},
    };
    Add("32 <= tile_q // thread_q * 16 <= 512", "32 to 512 threads");
    const std::string held = fmt::format("(thread_q * ({} + tile_k // 16 + 6) + tile_k // 4 + 32)",
                                         CeilDiv(form_.dim, 64) * 4);
    Add(held + " <= 255", "registers of a thread");
    Add(held + " * (tile_q // thread_q) * 16 <= 65536", "registers of a block");
    AddLimits(fmt::format("(tile_q + 2 * tile_k) * {} + tile_q * (tile_k + 4) * 4",
                          ((form_.dim + 3) / 4 | 1) * 16),
              16, 16);
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants = Constants(configuration);
    constants.Int("ROWS", at["thread_q"], "queries of a thread");
    return Finish(
        configuration,
        Emit(configuration, constants, {embed::kAttentionQueriesCuh, embed::kAttentionSimtCu}),
        at["tile_q"] / at["thread_q"] * 16);
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const CostConstants& costs = CostsOf(profile);
    // Per unit a thread reads rows + keys vectors for 4 · rows · keys products; a vector costs the
    // lanes four words.
    const double rows = Real(at["thread_q"]);
    const double keys = Real(at["tile_k"]) / 16;
    const double fed = rows * keys / (rows * keys + rows + keys);
    const int64_t warps = at["tile_q"] / at["thread_q"] / 2;
    const int64_t resident = std::clamp<int64_t>(SharedFits(configuration), 1,
                                                 std::max<int64_t>(1, 16 / warps));
    const double hidden = std::min(
        1.0, costs.attention_simt_hidden_base +
                 costs.attention_simt_hidden * Real(warps * resident) / costs.attention_simt_warps);
    const double barriers = 1.0 + costs.attention_simt_barrier / Real(at["tile_k"]);
    const double rate = profile.PeakFlops(DType::kFloat32, false) / profile.sms * fed * hidden;
    return BlockSeconds(at["tile_q"], resident, rate) * barriers * 1e9;
  }
};

BoundSchedule Bind(const KernelSpec& spec, const AttentionForm& form,
                   const DeviceProfile& profile) {
  ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  if (spec.compute_dtype == DType::kFloat32)
    return std::make_unique<SimtAttention>(spec, profile, form);
  if (CapabilitiesOf(profile).wgmma && form.dim % 8 == 0)
    return std::make_unique<WgmmaAttention>(spec, profile, form);
  return std::make_unique<MmaAttention>(spec, profile, form);
}

Binding Try(const Task& task) {
  const KernelSpec& spec = task.spec();
  const auto form = spec.FindArg("y") ? AttentionForm::Of(spec) : std::nullopt;
  if (!form) return {};
  return {.bind = [spec, form = *form](const DeviceProfile& profile) {
    return Bind(spec, form, profile);
  }};
}

}  // namespace

constinit const Family kAttentionFamily{"attention", Try};

}  // namespace atunner
