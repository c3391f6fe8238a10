// Decoding with a paged key cache: one query per sequence. Blocks divide the keys, and the block
// that finishes a sequence last joins the parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/codegen/template/bound_template.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/operators/library_task.h"
#include "embed/families.h"

namespace atunner {
namespace {

class PagedAttention : public BoundTemplate {
 public:
  PagedAttention(const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile) {
    const std::vector<int64_t> q = ExtentsOf(spec, "q"), pool = ExtentsOf(spec, "k_pool");
    sequences_ = q[0], heads_ = q[1], dim_ = q[2], page_ = pool[1], key_heads_ = pool[2];
    pages_ = ExtentsOf(spec, "table")[1];
    space_.parameters = {
        {"shares", Integers({1, 2, 3, 4}),
         "blocks for each SM, among which all keys are dealt out"},
        {"warps", Integers({4, 8}), "of a block; each takes sixteen keys at a time"},
        {"passing", Integers({0, 1}), "keys and values leave L2 before what lies there already"},
    };
    Add(fmt::format("shares * warps <= {} and {} <= shares * {}", ResidentWarps(), tracks(),
                    profile.sms),
        "blocks wait until all have begun");
    Add(fmt::format("shares == 1 or shares * warps * 32 <= {}",
                    sequences_ * keys() * key_heads_ / profile.sms),
        "two rounds for each block at least");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Int("HEADS", heads_).Int("KEY_HEADS", key_heads_).Int("DIM", dim_);
    constants.Int("PAGE", page_, "keys of a page").Int("TABLE", pages_, "pages of a sequence");
    constants.Ints(at, {"warps", "shares"})
        .Bool("PASSING", at["passing"] != 0)
        .Int("OCTETS", octets(), "octets of query heads of a block");
    const std::string sequences = spec_.FindArg("q")->shape[0].text();
    const int64_t shares = Shares(configuration);
    const double scale = SettingOr(spec_, "scale", 1 / std::sqrt(Real(dim_)));
    LaunchStep decode = Step("decode", std::to_string(shares * tracks()),
                             Expr::MustParse("warps * 32"),
                             {"q", "k_pool", "v_pool", "table", "last", "@parts", "@tickets", "y",
                              "i32:" + sequences, "i32:" + spec_.FindArg("k_pool")->shape[0].text(),
                              fmt::format("f32:{:.17g}", scale * 1.4426950408889634)});
    decode.cooperative = true;
    LaunchPlan plan = Plan(configuration, {decode});
    const int64_t part = octets() * (256 + CeilDiv(dim_, 64) * 2048);  // as the kernel's Part
    plan.workspaces = {
        {"parts",
         Expr::MustParse(fmt::format("(({}) + {}) * {}", sequences, shares, tracks() * part))},
        {"tickets", Expr::MustParse(fmt::format("({}) * {}", sequences, tracks() * 4))}};
    return RenderedKernel{
        Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kAttentionPagedCu}),
        std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double bytes = 4.0 * Real(sequences_ * key_heads_ * keys() * dim_);
    // As many blocks as an SM can hold are best: with fewer, memory waits for warps. The cost of
    // joining parts only shows where there are few sequences, and so does the cost of evicting
    // dirty lines from L2.
    const double busy = Real(at["shares"] * at["warps"]);
    const CostConstants& costs = CostsOf(profile);
    const bool fits = bytes < costs.paged_l2_sizes * Real(profile.l2_bytes);
    const double room = (at["passing"] != 0) == fits ? 1.0 : costs.paged_l2;
    return bytes * room * (1.0 + 1.0 / (busy * busy)) / profile.dram_gbps +
           costs.paged_part_ns * Real(Shares(configuration)) / Real(sequences_) +
           costs.paged_launch_ns;
  }

 private:
  /// Octets of the query heads that share a key head, as many as a thread's registers can hold.
  int64_t octets() const { return heads_ / key_heads_ > 8 && dim_ <= 192 ? 2 : 1; }
  int64_t keys() const { return pages_ * page_; }
  /// Warps of an SM, in whole blocks of four: a thread's registers hold parts of keys, values and
  /// outputs, and addresses.
  int64_t ResidentWarps() const {
    const int64_t held = 8 * CeilDiv(dim_, 32) + 16 * CeilDiv(dim_, 64) * (1 + octets()) + 40 +
                         24 * octets();
    return 65536 / (32 * std::min<int64_t>(held, 255)) / 4 * 4;
  }
  /// Blocks of a share.
  int64_t tracks() const { return key_heads_ * CeilDiv(heads_ / key_heads_, octets() * 8); }
  int64_t Shares(const Configuration& configuration) const {
    return std::max<int64_t>(1, GetInt(space_, configuration, "shares") * profile_.sms / tracks());
  }

  int64_t sequences_ = 1, heads_ = 1, dim_ = 1, page_ = 1, key_heads_ = 1, pages_ = 1;
};

bool Matches(const KernelSpec& spec) {
  const std::vector<int64_t> q = ExtentsOf(spec, "q"), pool = ExtentsOf(spec, "k_pool"),
                             table = ExtentsOf(spec, "table");
  if (SizeOf(spec.compute_dtype) != 2 || !IsLibraryTask(spec, "attention_paged", {q, pool, table}))
    return false;
  const int64_t keys = table[1] * pool[1];
  // Whole units of eight elements, and 31-bit counters.
  return q[2] % 8 == 0 && q[2] <= 256 && keys < (1 << 30) &&
         pool[0] * pool[1] < (int64_t{1} << 31) && q[0] * CeilDiv(keys, 32) < (int64_t{1} << 31) &&
         q[0] * q[1] < (int64_t{1} << 31);
}
BoundSchedule Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  return std::make_unique<PagedAttention>(spec, profile);
}

}  // namespace

constinit const Family kPagedAttentionFamily{"attention_paged", TryIf<Matches, Bind>};

}  // namespace atunner
