// Products of a few rows with weights of 8 or 4 bits (quantized_linear, int4_linear): reading the weights is what takes
// time.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/codegen/library_task.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Rows of x that sums in registers have room for.
constexpr int64_t kMostRows = 64;
/// ns until a load arrives while DRAM is busy.
constexpr double kLoadNs = 1000;
/// Of L2's rate, what lanes reach that read one row each.
constexpr double kL2Share = 0.6;

bool OfFourBits(const KernelSpec& spec) { return spec.name == "int4_linear"; }
int64_t GroupOf(const KernelSpec& spec) { return static_cast<int64_t>(SettingOr(spec, "group", 32)); }

class Weights : public BoundTemplate {
 public:
  Weights(const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile),
        four_(OfFourBits(spec)),
        m_(ExtentsOf(spec, "x")[0]),
        n_(ExtentsOf(spec, "weight")[0]),
        k_(ExtentsOf(spec, "x")[1]) {
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
    ConstantBlock constants;
    constants.Bool("FOUR_BITS", four_).Int("M", m_).Int("N", n_).Int("K", k_);
    constants.Int("GROUP", four_ ? GroupOf(spec_) : k_, "weights of a scale");
    constants.Int("TOKENS", tokens(), "fragments of eight rows of x");
    constants.Int("FRAGMENTS", At(configuration, "fragments")).Int("WARPS", At(configuration, "warps"));
    constants.Int("AHEAD", At(configuration, "ahead"));
    LaunchStep step;
    step.entry = "product";
    step.grid[0] = Expr(CeilDiv(n_, 16 * At(configuration, "fragments")));
    step.block[0] = Expr(32 * At(configuration, "warps"));
    for (const char* name : {"x", "weight", "scale", "y"}) step.args.push_back(ArgBinding::Tensor(name));
    return RenderedKernel{Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kWeightsCu}),
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
  int64_t At(const Configuration& configuration, const char* name) const { return GetInt(space_, configuration, name); }
  int64_t tokens() const { return CeilDiv(m_, 8); }
  int64_t chunk() const { return four_ ? 128 : 64; }

  bool four_;
  int64_t m_, n_, k_;
};

class WeightsOfFewBits : public Family {
 public:
  std::string_view name() const override { return "weights"; }
  bool Match(const KernelSpec& spec) const override {
    const std::vector<int64_t> x = ExtentsOf(spec, "x"), weight = ExtentsOf(spec, "weight");
    if (SizeOf(spec.compute_dtype) != 2 || x.size() != 2 || weight.size() != 2) return false;
    if (x[0] > kMostRows || x[1] % 128 != 0 || std::max(x[1], weight[0]) >= 1 << 30) return false;
    // A lane's sixteen bytes have one scale, and what is scaled is rounded.
    if (OfFourBits(spec) && (GroupOf(spec) % 32 != 0 || AccuracyOf(spec) == Accuracy::kStrict)) return false;
    return (OfFourBits(spec) || spec.name == "quantized_linear") &&
           IsLibraryTask(spec, spec.name, {x, {weight[0], x[1]}});
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    if (profile.cc_major < 8) return ElementsFamily().Bind(spec, profile);
    return std::make_unique<Weights>(spec, profile);
  }
};

}  // namespace

const Family& WeightsFamily() {
  static const WeightsOfFewBits family;
  return family;
}

}  // namespace atunner
