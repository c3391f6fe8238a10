// Products of a few rows with weights of 8 or 4 bits (quantized_linear, int4_linear): what reading the weights once
// takes.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/family.h"
#include "atunner/codegen/library_task.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Rows of x that sums in registers and shares in shared memory have room for.
constexpr int64_t kMostRows = 64;

class Weights : public BoundTemplate {
 public:
  Weights(const KernelSpec& spec, const DeviceProfile& profile, bool four)
      : BoundTemplate(spec, profile),
        four_(four),
        m_(ExtentsOf(spec, "x")[0]),
        n_(ExtentsOf(spec, "weight")[0]),
        k_(ExtentsOf(spec, "x")[1]) {
    space_.parameters = {
        {"fragments", Integers({1, 2}), "of sixteen rows of the weights, for each warp"},
        {"warps_n", Integers({1, 2, 4}), "warps side by side along the rows of the weights"},
        {"warps_k", Integers({2, 4, 8, 16}), "warps that divide the depth"},
        {"ahead", Integers({1, 2, 4, 8}), "loads of a row that a lane has under way"},
    };
    Add("4 <= warps_n * warps_k <= 16", "4 to 16 warps");
    Add(fmt::format("{} <= 49152", SharedBytes()), "shared memory");
    Add(fmt::format("{} <= min(255, 2048 // (warps_n * warps_k))", Registers()), "registers of a thread");
    Add(fmt::format("warps_k * ahead <= {}", std::max<int64_t>(8, k_ / chunk())), "less depth than that");
  }

  Configuration Default() const override { return Cheapest(); }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants;
    constants.Bool("FOUR_BITS", four_).Int("M", m_).Int("N", n_).Int("K", k_);
    constants.Int("GROUP", four_ ? static_cast<int64_t>(SettingOr(spec_, "group", 32)) : k_, "weights of a scale");
    constants.Int("TOKENS", tokens(), "fragments of eight rows of x");
    for (const auto& [constant, parameter] : {std::pair("FRAGMENTS", "fragments"), std::pair("WARPS_N", "warps_n"),
                                              std::pair("WARPS_K", "warps_k"), std::pair("AHEAD", "ahead")})
      constants.Int(constant, GetInt(space_, configuration, parameter));
    constants.Line(element_ == DType::kBFloat16 ? "typedef __nv_bfloat162 Pair;" : "typedef __half2 Pair;");
    LaunchStep step;
    step.entry = "product";
    step.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, 16 * fragments * warps_n)", n_));
    step.block[0] = Expr::MustParse("32 * warps_n * warps_k");
    for (const char* name : {"x", "weight", "scale", "y"}) step.args.push_back(ArgBinding::Tensor(name));
    return RenderedKernel{Emit(configuration, constants, {embed::kMmaCommonCuh, embed::kWeightsCu}),
                          Plan(configuration, {step})};
  }

  /// Multiprocessors that have nothing to do, or too little under way to keep the memory busy.
  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    const int64_t rows = 16 * integer("fragments") * integer("warps_n");
    const int64_t warps = integer("warps_n") * integer("warps_k");
    const int64_t registers = Evaluate(Registers(), configuration);
    const int64_t shared = Evaluate(SharedBytes(), configuration) + profile.shared_reserved_per_block;
    const int64_t resident = std::max<int64_t>(
        1, std::min({profile.registers_per_sm / (registers * 32 * warps), profile.shared_per_sm / shared, 64 / warps}));
    const int64_t per_sm = CeilDiv(CeilDiv(n_, rows), profile.sms);
    const auto at_once = static_cast<double>(std::min(resident, per_sm));
    // Bytes per ns of a multiprocessor: what is under way arrives after a while.
    constexpr double kLoadNs = 1000;
    const double under_way = at_once * static_cast<double>(warps * integer("fragments") * integer("ahead")) * 1024;
    const double pace = std::min(0.92 * profile.dram_gbps / profile.sms, under_way / kLoadNs);
    // x comes to each block that needs it.
    const double bytes = static_cast<double>(per_sm * rows * k_) / (four_ ? 2 : 1);
    const double x = static_cast<double>(per_sm * integer("warps_n") * tokens() * 8 * k_ * 2);
    return bytes / pace + x * profile.sms / profile.l2_gbps + 3000;
  }

 private:
  int64_t tokens() const { return CeilDiv(m_, 8); }
  int64_t chunk() const { return four_ ? 128 : 64; }
  std::string SharedBytes() const {
    return fmt::format("(warps_k * {} * (16 * fragments * warps_n + 4))", tokens() * 8 * 4);
  }
  std::string Registers() const {
    return fmt::format("({} * fragments + {} * fragments * ahead + 48)", 4 * tokens(), four_ ? 10 : 8);
  }
  int64_t Evaluate(const std::string& expression, const Configuration& configuration) const {
    Bindings bindings;
    const std::vector<std::string> names = space_.Names();
    bindings.Add(names, configuration.values);
    return Expr::MustParse(expression).EvaluateInt(bindings).value();
  }

  bool four_;
  int64_t m_, n_, k_;
};

class WeightsOfFewBits : public Family {
 public:
  std::string_view name() const override { return "weights"; }
  bool Match(const KernelSpec& spec) const override {
    if (SizeOf(spec.compute_dtype) != 2 || (spec.name != "quantized_linear" && !IsFour(spec))) return false;
    const std::vector<int64_t> x = ExtentsOf(spec, "x"), weight = ExtentsOf(spec, "weight");
    if (x.size() != 2 || weight.size() != 2 || x[0] > kMostRows || x[1] % 128 != 0) return false;
    // A lane's sixteen bytes have one scale; scaled weights are rounded.
    if (IsFour(spec) &&
        (static_cast<int64_t>(SettingOr(spec, "group", 32)) % 32 != 0 || AccuracyOf(spec) == Accuracy::kStrict))
      return false;
    return std::max(x[1], weight[0]) < (1 << 30) && IsLibraryTask(spec, spec.name, {x, {weight[0], x[1]}});
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    if (profile.cc_major < 8) return ElementsFamily().Bind(spec, profile);
    return std::make_unique<Weights>(spec, profile, IsFour(spec));
  }

 private:
  static bool IsFour(const KernelSpec& spec) { return spec.name == "int4_linear"; }
};

}  // namespace

const Family& WeightsFamily() {
  static const WeightsOfFewBits family;
  return family;
}

}  // namespace atunner
