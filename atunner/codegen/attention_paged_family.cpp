// Decoding: one query per sequence over keys in pages. Blocks divide the keys; what they found is joined by the blocks
// of a cluster, or by a second step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
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
        {"stages", Integers({2, 3, 4, 6}), "buffers of a warp"},
        {"joined", profile.cc_major >= 9 ? Integers({0, 1}) : Integers({0}),
         "what parts found: by a second step; by the blocks of a cluster"},
    };
    Add(fmt::format("joined == 0 or (1 < parts and parts <= {})", kLargestCluster), "blocks of a cluster");
    Add(fmt::format("parts == 1 or parts * warps * 32 <= {}", keys()), "two rounds for each warp at least");
    Add(fmt::format("octets == 1 or {} > 8", group()), "more heads than there are");
    // Outputs and queries of a thread, and what addresses, keys, values and weights take.
    Add(fmt::format("octets * {} + {} <= 255", HeldRegisters(), OtherRegisters()), "registers of a thread");
    Add(fmt::format("warps * stages * {} <= {}", TileBytes(), profile.shared_per_block), "shared memory");
  }

  Configuration Default() const override { return Cheapest(); }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    ConstantBlock constants;
    constants.Int("HEADS", heads_).Int("KEY_HEADS", key_heads_).Int("DIM", dim_);
    constants.Int("PAGE", page_, "keys of a page").Int("TABLE", pages_, "pages of a sequence");
    constants.Int("PART", Part(configuration), "keys of a block");
    constants.Int("WARPS", integer("warps")).Int("OCTETS", integer("octets")).Int("STAGES", integer("stages"));
    constants.Bool("CLUSTER", Joined(configuration), "a sequence's parts belong to one cluster");
    return RenderedKernel{
        .source = Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kClusterCuh, embed::kAttentionPagedCu}),
        .plan = PlanOf(configuration)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const int64_t tiles = CeilDiv(group(), integer("octets") * 8), parts = integer("parts"), warps = integer("warps");
    const double bytes = 4.0 * static_cast<double>(sequences_ * key_heads_ * keys() * dim_);
    const double joined =
        parts == 1 || Joined(configuration) ? 0 : 8.0 * static_cast<double>(sequences_ * heads_ * parts * dim_);
    // Blocks of one length run together, and SMs should have equally many; or in rounds, of which the last should be
    // full. Each begins and ends slowly. An SM's share of the memory is busy while enough copies are under way.
    const double each = static_cast<double>(sequences_ * key_heads_ * tiles * parts) / static_cast<double>(profile.sms);
    const double resident = static_cast<double>(Resident(configuration, profile));
    const double rounds = each / resident;
    const double uneven = rounds > 1 ? 0.7 + 0.3 * std::ceil(rounds) / rounds : std::ceil(each) / each;
    const double copies =
        std::min(std::ceil(each), resident) * static_cast<double>(warps * (integer("stages") - 1) * TileBytes());
    const double ends = 1.0 + 24.0 * static_cast<double>(warps) / static_cast<double>(Part(configuration));
    const double repeated = 1.0 + 0.4 * static_cast<double>(tiles - 1);  // what L2 does not hide
    const double streamed = bytes * repeated * ends * uneven * std::max(1.0, kCopies / copies);
    return (streamed + joined) / profile.dram_gbps + (parts == 1 ? 0 : Joined(configuration) ? 1000 : 4000);
  }

 private:
  static constexpr int64_t kLargestCluster = 16;
  static constexpr double kCopies = 49152;  ///< bytes under way that keep an SM's share of the memory busy

  bool Joined(const Configuration& configuration) const {
    return GetInt(space_, configuration, "joined") != 0 && Part(configuration) < keys();
  }
  int64_t group() const { return heads_ / key_heads_; }
  int64_t keys() const { return pages_ * page_; }
  /// Keys of a block: whole steps of sixteen.
  int64_t Part(const Configuration& configuration) const {
    return CeilDiv(CeilDiv(keys(), GetInt(space_, configuration, "parts")), 16) * 16;
  }
  /// Keys and values of a warp's step.
  int64_t TileBytes() const { return (2 * CeilDiv(dim_, 32) + 4 * CeilDiv(dim_, 64)) * 512; }
  /// Outputs and queries of an octet.
  int64_t HeldRegisters() const { return 16 * CeilDiv(dim_, 64) + 4 * CeilDiv(dim_, 32); }
  int64_t OtherRegisters() const { return 40 + dim_ / 4; }
  /// Blocks of an SM.
  int64_t Resident(const Configuration& configuration, const DeviceProfile& profile) const {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const int64_t shared = integer("warps") * integer("stages") * TileBytes() + profile.shared_reserved_per_block;
    return std::clamp<int64_t>(
        std::min(profile.shared_per_sm / shared,
                 65536 / (32 * (integer("octets") * HeldRegisters() + OtherRegisters()) * integer("warps"))),
        1, 32);
  }

  LaunchPlan PlanOf(const Configuration& configuration) const {
    const int64_t octets = GetInt(space_, configuration, "octets");
    const int64_t parts = CeilDiv(keys(), Part(configuration));  // by whole steps sometimes fewer
    const Expr sequences = spec_.FindArg("q")->shape[0];
    const auto times = [&](int64_t count) {
      return Expr::MustParse(fmt::format("({}) * {}", sequences.text(), count));
    };
    const auto tensors = [](LaunchStep& step, std::initializer_list<const char*> names) {
      for (const char* name : names) step.args.push_back(ArgBinding::Tensor(name));
    };
    LaunchStep decode;
    decode.entry = "decode";
    decode.grid = {times(key_heads_ * CeilDiv(group(), octets * 8)), Expr(parts), 1};
    decode.block[0] = Expr::MustParse("warps * 32");
    decode.shared_bytes = Expr::MustParse(fmt::format("warps * stages * {}", TileBytes()));
    tensors(decode, {"q", "k_pool", "v_pool", "table", "last", "y"});
    decode.args.push_back(ArgBinding::Workspace("parts"));
    decode.args.push_back(ArgBinding::Workspace("sums"));
    decode.args.push_back(ArgBinding::Scalar(DType::kInt32, spec_.FindArg("k_pool")->shape[0]));
    const double scale = SettingOr(spec_, "scale", 1 / std::sqrt(static_cast<double>(dim_)));
    decode.args.push_back(
        ArgBinding::Scalar(DType::kFloat32, Expr::MustParse(fmt::format("{:.17g}", scale * 1.4426950408889634))));
    std::vector<LaunchStep> steps = {decode};
    const bool joins = parts > 1 && !Joined(configuration);
    if (Joined(configuration)) steps[0].cluster[1] = Expr(parts);
    if (joins) {
      LaunchStep combine;
      combine.entry = "combine";
      combine.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, 128)", times(heads_ * dim_ / 4).text()));
      combine.block[0] = Expr(128);
      tensors(combine, {"last"});
      combine.args.push_back(ArgBinding::Workspace("parts"));
      combine.args.push_back(ArgBinding::Workspace("sums"));
      tensors(combine, {"y"});
      combine.args.push_back(ArgBinding::Scalar(DType::kInt64, times(heads_)));
      steps.push_back(std::move(combine));
    }
    LaunchPlan plan = Plan(configuration, std::move(steps));
    plan.workspaces = {{"parts", joins ? times(heads_ * parts * dim_ * 4) : Expr(16)},
                       {"sums", joins ? times(heads_ * parts * 8) : Expr(16)}};
    return plan;
  }

  int64_t sequences_ = 1, heads_ = 1, dim_ = 1, page_ = 1, key_heads_ = 1, pages_ = 1;
};

class PagedFamily : public Family {
 public:
  std::string_view name() const override { return "attention_paged"; }
  bool Match(const KernelSpec& spec) const override {
    if (SizeOf(spec.compute_dtype) != 2 || !IsLibraryTask(spec, "attention_paged", {"q", "k_pool", "table"}))
      return false;
    const std::vector<int64_t> q = ExtentsOf(spec, "q"), pool = ExtentsOf(spec, "k_pool");
    const int64_t keys = ExtentsOf(spec, "table")[1] * pool[1];
    // Whole units of eight elements, and 31-bit counters.
    return q[2] % 8 == 0 && q[2] <= 256 && keys < (1 << 30) && pool[0] * pool[1] < (int64_t{1} << 31) &&
           CeilDiv(keys, 128) < 65536 && q[0] * q[1] < (int64_t{1} << 31);
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
    return std::make_unique<PagedAttention>(spec, profile);
  }
};

}  // namespace

const Family& PagedAttentionFamily() {
  static const PagedFamily family;
  return family;
}

}  // namespace atunner
