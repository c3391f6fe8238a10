// Decoding: one query per sequence over keys in pages. Blocks divide the keys, and a second step joins what they found.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/library_task.h"
#include "embed/families.h"

namespace atunner {
namespace {

class PagedAttention : public BoundTemplate {
 public:
  PagedAttention(const KernelSpec& spec, const DeviceProfile& profile) : BoundTemplate(spec, profile) {
    const std::vector<int64_t> q = ExtentsOf(spec, "q"), pool = ExtentsOf(spec, "k_pool");
    sequences_ = q[0], heads_ = q[1], dim_ = q[2], page_ = pool[1], key_heads_ = pool[2];
    pages_ = ExtentsOf(spec, "table")[1];
    space_.parameters = {
        {"parts", Integers({1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 14, 16,  18,  20,  22,
                            24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 88, 96, 112, 128, 192, 256}),
         "blocks that divide the keys of a sequence"},
        {"warps", Integers({1, 2, 4}), "of a block; each takes sixteen keys at a time"},
        {"octets", Integers({1, 2}), "of the query heads that share a key head, for each block"},
        {"q_registers", Integers({0, 1}), "keep the queries in registers"},
    };
    Add(fmt::format("parts == 1 or parts * warps * 32 <= {}", keys()), "two rounds for each warp at least");
    Add(fmt::format("octets == 1 or {} > 8", group()), "more heads than there are");
    // Keys, values, outputs and queries of a thread, and what addresses and weights take.
    registers_ = Expr::MustParse(fmt::format("8 * {0} + 16 * {1} * (1 + octets) + q_registers * 4 * {0} * octets + 44",
                                             CeilDiv(dim_, 32), CeilDiv(dim_, 64)));
    Add(registers_.text() + " <= 255", "registers of a thread");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Int("HEADS", heads_).Int("KEY_HEADS", key_heads_).Int("DIM", dim_);
    constants.Int("PAGE", page_, "keys of a page").Int("TABLE", pages_, "pages of a sequence");
    constants.Int("PART", Part(configuration), "keys of a block");
    constants.Ints(at, {"warps", "octets"});
    constants.Bool("Q_REGISTERS", at["q_registers"] != 0);
    return RenderedKernel{.source = Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kAttentionPagedCu}),
                          .plan = PlanOf(configuration)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const int64_t tiles = CeilDiv(group(), at["octets"] * 8), parts = at["parts"];
    const double bytes = 4.0 * Real(sequences_ * key_heads_ * keys() * dim_);
    const double joined = parts == 1 ? 0 : 8.0 * Real(sequences_ * heads_ * parts * dim_);
    // Blocks of one length run in rounds, the last of which should be full; each begins and ends slowly. Few warps do
    // not keep an SM's share of the memory busy.
    const int64_t warps = at["warps"];
    const double blocks = Real(sequences_ * key_heads_ * tiles * parts);
    const double resident = Real(65536 / (32 * std::min<int64_t>(Evaluate(registers_, configuration), 255)) / warps);
    const double rounds = blocks / (resident * Real(profile.sms));
    const double uneven = rounds > 1 ? std::ceil(rounds) / rounds : 1.0;
    const double busy = std::min(1.0, rounds) * resident * Real(warps);
    const double ends = 1.0 + 24.0 * Real(warps) / Real(Part(configuration));
    const double repeated = 1.0 + 0.4 * Real(tiles - 1);  // what L2 does not hide
    const double streamed = bytes * repeated * ends * (0.7 + 0.3 * uneven) * std::max(1.0, 7.0 / busy);
    return (streamed + joined) / profile.dram_gbps + (parts == 1 ? 0 : 4000);
  }

 private:
  int64_t group() const { return heads_ / key_heads_; }
  int64_t keys() const { return pages_ * page_; }
  /// Keys of a block: whole steps of sixteen.
  int64_t Part(const Configuration& configuration) const {
    return CeilDiv(CeilDiv(keys(), GetInt(space_, configuration, "parts")), 16) * 16;
  }
  LaunchPlan PlanOf(const Configuration& configuration) const {
    const int64_t octets = GetInt(space_, configuration, "octets");
    const int64_t parts = CeilDiv(keys(), Part(configuration));  // by whole steps sometimes fewer
    const auto times = [&](int64_t count) {
      return fmt::format("({}) * {}", spec_.FindArg("q")->shape[0].text(), count);
    };
    const double scale = SettingOr(spec_, "scale", 1 / std::sqrt(Real(dim_)));
    std::vector<LaunchStep> steps = {Step(
        "decode", times(key_heads_ * CeilDiv(group(), octets * 8)), Expr::MustParse("warps * 32"),
        {"q", "k_pool", "v_pool", "table", "last", "y", "@parts", "@sums",
         "i32:" + spec_.FindArg("k_pool")->shape[0].text(), fmt::format("f32:{:.17g}", scale * 1.4426950408889634)})};
    steps[0].grid[1] = Expr(parts);
    if (parts > 1)
      steps.push_back(Step("combine", times(heads_), Expr(std::min<int64_t>(256, CeilDiv(dim_, 32) * 32)),
                           {"last", "@parts", "@sums", "y"}));
    LaunchPlan plan = Plan(configuration, std::move(steps));
    // A single part goes straight to the result.
    plan.workspaces = {{"parts", Expr::MustParse(parts == 1 ? "16" : times(heads_ * parts * dim_ * 4))},
                       {"sums", Expr::MustParse(parts == 1 ? "16" : times(heads_ * parts * 8))}};
    return plan;
  }

  int64_t sequences_ = 1, heads_ = 1, dim_ = 1, page_ = 1, key_heads_ = 1, pages_ = 1;
  Expr registers_;  ///< of a thread
};

bool Matches(const KernelSpec& spec) {
  if (SizeOf(spec.compute_dtype) != 2 || !IsLibraryTask(spec, "attention_paged", {"q", "k_pool", "table"}))
    return false;
  const std::vector<int64_t> q = ExtentsOf(spec, "q"), pool = ExtentsOf(spec, "k_pool");
  const int64_t keys = ExtentsOf(spec, "table")[1] * pool[1];
  // Whole units of eight elements, and 31-bit counters.
  return q[2] % 8 == 0 && q[2] <= 256 && keys < (1 << 30) && pool[0] * pool[1] < (int64_t{1} << 31) &&
         CeilDiv(keys, 128) < 65536 && q[0] * q[1] < (int64_t{1} << 31);
}
Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  return std::make_unique<PagedAttention>(spec, profile);
}

}  // namespace

const Family& PagedAttentionFamily() {
  static const TaskFamily family("attention_paged", Matches, Bind);
  return family;
}

}  // namespace atunner
