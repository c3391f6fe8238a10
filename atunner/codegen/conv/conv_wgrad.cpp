// Wgrad on Hopper: gradients of convolutions by the filter, as a product that sums over positions
// (kernels/families/conv/conv_wgrad.cu).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/conv/conv_form.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Filters or channels of a panel of 128 bytes.
constexpr int64_t kPanel = 64;
/// Panels of one instruction.
constexpr int64_t kMostPanels = 4;
/// Groups with fewer filters or channels leave too much of a panel empty.
constexpr int64_t kLeast = 16;

/// Both tensors as images with their channels last and the same positions.
struct Gradient {
  TensorConvForm x, dy;
  bool direct = false;  ///< 1 x 1 filters: both are read in their native layout

  int64_t Taps() const { return x.Outputs(); }
  int64_t Taps(size_t axis) const { return x.axes[axis].out; }
  /// Taps of a row that read the same pixel of a position.
  int64_t Seen() const { return CeilDiv(Taps(2), x.arranged[2].split); }
  int64_t Along() const { return x.arranged[2].split > 1 ? 1 : x.axes[2].dilation; }
  int64_t Down() const { return x.axes[1].dilation * x.arranged[2].padded; }
  int64_t Positions() const { return x.images.factor() * x.Positions(); }
};

std::optional<Gradient> GradientOf(const KernelSpec& spec, const DeviceProfile& profile,
                                   const TensorConvForm& form) {
  if (!CapabilitiesOf(profile).wgmma || !IsFilterGradient(form) || form.Phases() > 1 ||
      SizeOf(spec.compute_dtype) != 2)
    return std::nullopt;
  Gradient gradient{form, form};
  TensorConvForm &x = gradient.x, &dy = gradient.dy;
  const int64_t images = form.channels;
  x.images = dy.images = graph::Extent(images);
  x.channels = x.own_channels = form.images.factor();
  std::swap(x.x.image, x.x.channel);
  MergeGroups(x);
  if (std::min(x.filters, x.channels) < kLeast) return std::nullopt;
  dy.groups = x.groups;
  dy.channels = dy.own_channels = x.filters;
  dy.x = {.name = form.w.name,
          .image = form.w.channel,
          .group = form.w.group * (form.groups / x.groups),
          .channel = form.w.filter};
  x.padded = CeilDiv(x.channels, 8) * 8;
  dy.padded = CeilDiv(dy.channels, 8) * 8;
  for (size_t i = 0; i < form.axes.size(); ++i) {
    const graph::ConvAxis& axis = form.axes[i];
    const int64_t step = axis.dilation;
    const int64_t low = -axis.shift;
    const int64_t reach = axis.stride * (axis.out - 1);
    if (low < 0 || (step > 1 && axis.stride > 1)) return std::nullopt;
    x.axes[i].dilation = axis.stride;
    dy.axes[i] = {.in = axis.taps, .x = axis.w};
    // The zeros behind a row are those in front of the next row.
    const int64_t padded = step > 1
                               ? std::max(axis.taps + reach / step, CeilDiv(axis.in + low, step))
                               : std::max({axis.taps, axis.in + low, axis.taps + reach - low});
    x.arranged[i] = {.padded = padded, .low = low, .split = step};
    dy.arranged[i] = {.padded = padded};
  }
  for (TensorConvForm* each : {&x, &dy}) {
    each->last = HasChannelsLast(*each);
    if (!each->last && !Dense(*each, true, 1)) return std::nullopt;
  }
  if (images * x.Cells() > INT32_MAX / 2) return std::nullopt;
  // Tensor maps take steps of multiples of 16 bytes.
  gradient.direct = x.Outputs() == 1 && x.Positions() == x.Inputs() &&
                    x.Positions() == dy.Inputs() && x.Inputs() % 8 == 0 && HasChannelsFirst(x) &&
                    HasChannelsFirst(dy);
  return gradient;
}

class WgradTemplate : public BoundTemplate {
 public:
  WgradTemplate(const KernelSpec& spec, const DeviceProfile& profile, Gradient gradient)
      : BoundTemplate(spec, profile), at_(std::move(gradient)) {
    const bool several = at_.Seen() > 1;
    const int64_t parts = CeilDiv(at_.Seen(), kMostPanels);
    space_.parameters = {
        {"groups_m", Integers({1, 2}), "warpgroups along filters, 64 filters each"},
        {"groups_c", Integers({1, 2}),
         "warpgroups along channels, 64 channels each, or as many panels"},
        {"groups_r",
         at_.x.arranged[1].split == 1 && at_.Taps(1) > 1 && at_.Taps(1) < 4
             ? Integers({1, at_.Taps(1)})
             : Integers({1}),
         "rows of taps of a block"},
        {"panels", several ? Integers({CeilDiv(at_.Seen(), parts), 1}) : Integers({1, 2, 4}),
         "of 64 columns: neighbouring taps, or of one tap channels"},
        {"depth", at_.direct ? Integers({64}) : Integers({64, 128}), "positions of a buffer"},
        {"stages", Integers({2, 3, 4, 5, 6}), "buffers in shared memory"},
        {"split_k",
         Integers({1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 16, 18, 22, 26, 33, 44, 66, 88, 132}),
         "blocks that divide the positions"},
    };
    AddLimits();
    shared_ = Expr::MustParse(SharedBytes());
    tiles_ = Expr::MustParse(Tiles());
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Line("typedef T Operand;");
    constants.Ints(at, {"groups_m", "groups_c", "groups_r", "depth", "stages", "split_k"});
    constants.Define("DIRECT", at_.direct ? 1 : 0);
    const int64_t panels = at["panels"];
    constants.Int("TAP_PANELS", at_.Seen() > 1 ? panels : 1)
        .Int("CHANNEL_PANELS", at_.Seen() > 1 ? 1 : panels);
    constants.Int("STAGE_BYTES", StageBytes(at));
    LaunchPlan plan = Plan(at, {});
    const std::string texts = Arranging(plan);
    AddProduct(plan);
    const std::string multiply = WgmmaText({.columns = panels * kPanel,
                                            .a_transposed = !at_.direct,
                                            .b_transposed = at_.direct ? "0" : "1"});
    return RenderedKernel{Emit(at, constants,
                               {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh, multiply,
                                embed::kTensorCopiesCuh, texts, embed::kConvWgradCu}),
                          std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const auto at = [&](const char* name) { return Real(chosen(configuration)[name]); };
    const CostConstants& costs = CostsOf(profile);
    const double split = at("split_k");
    const double tiles = Real(Evaluate(tiles_, configuration) * at_.x.groups);
    const double rounds = std::ceil(tiles * split / Real(profile.sms));
    const double steps = std::ceil(std::ceil(Real(at_.Positions()) / at("depth")) / split);
    const double groups = at("groups_m") * at("groups_c") * at("groups_r");
    // One instruction takes the longer of its products and of its operands' way out of shared
    // memory.
    const double instruction = std::max(at("panels") * 32, (1 + at("panels")) * 16);
    const double products = groups * at("depth") / 16 * instruction / costs.conv_cycles;
    const double fetched = Real(StageBytes(chosen(configuration))) / costs.wgrad_fetched;
    const double ahead = 1 + (groups > 1 ? costs.wgrad_groups_wait : costs.wgrad_group_wait) /
                                 (at("stages") - 1);
    const double elements = Real(at_.x.groups * at_.dy.channels * at_.Taps() * at_.x.padded);
    return rounds * (steps * std::max(products, fetched) * ahead + costs.wgrad_block_ns) +
           elements * split * 8 / costs.wgrad_partial_sums + costs.wgrad_launch_ns;
  }

 private:
  void AddLimits() {
    Add("groups_m * groups_c * groups_r <= 4", "groups");
    Add("(panels * 32 + 48) * (groups_m * groups_c * groups_r * 128 + 32) <= 65536", "registers");
    Add(fmt::format("(groups_m == 1 or groups_m * 32 < {})", at_.dy.channels),
        "more filters than there are");
    Add(fmt::format("(groups_c * {0} == 1 or groups_c * {0} * 32 < {1})",
                    at_.Seen() > 1 ? "1" : "panels", at_.x.channels),
        "more channels than there are");
    AddShared(SharedBytes());
    Add(fmt::format("split_k == 1 or split_k * depth * 4 <= {}", at_.Positions()),
        "too few positions to divide");
    Add(fmt::format("split_k == 1 or {} * split_k <= {}", Tiles(), 4 * profile_.sms),
        "enough blocks without");
  }
  /// The product, and the step that adds its partial sums.
  void AddProduct(LaunchPlan& plan) const {
    const int64_t elements = at_.x.groups * at_.dy.channels * at_.Taps() * at_.x.padded;
    plan.workspaces.push_back(
        {"partial_sums", Expr::MustParse(fmt::format("{} * split_k", elements * 4))});
    LaunchStep step = Step(
        "wgrad", Tiles(), Expr::MustParse("groups_m * groups_c * groups_r * 128 + 32"),
        {Map(at_.x, "@arranged_x", XRows()), Map(at_.dy, "@arranged_dy", "depth"), "@partial_sums",
         at_.x.CountedImages()});
    step.grid[1] = Expr::MustParse("split_k");
    step.grid[2] = Expr(at_.x.groups);
    step.shared_bytes = shared_;
    plan.steps.push_back(step);
    // Channels that a block adds up: CHUNK of conv_wgrad.cu.
    const int64_t chunk = at_.Taps() <= 32 ? 64 : at_.Taps() <= 128 ? 16 : 4;
    plan.steps.push_back(
        Step("add_partial_sums",
             std::to_string(at_.x.groups * at_.dy.channels * CeilDiv(at_.x.padded, chunk)), 256,
             {"@partial_sums", at_.x.y.name}));
  }
  int64_t StageBytes(const Chosen& at) const { return Evaluate(shared_, at) / at["stages"] - 16; }
  /// Panels along channels.
  std::string ChannelPanels() const { return at_.Seen() > 1 ? "1" : "panels"; }
  std::string Reached() const {
    return fmt::format("(depth + {} + (groups_r - 1) * {})",
                       at_.Seen() > 1 ? fmt::format("(panels - 1) * {}", at_.Along()) : "0",
                       at_.Down());
  }
  std::string Boxes() const { return fmt::format("ceil_div({}, 256)", Reached()); }
  /// Rows of a copy of x.
  std::string XRows() const {
    return fmt::format("(ceil_div(ceil_div({}, {}), 8) * 8)", Reached(), Boxes());
  }
  std::string SharedBytes() const {
    return fmt::format("(stages * (groups_m * depth * 128 + groups_c * {} * {} * {} * 128 + 16))",
                       ChannelPanels(), Boxes(), XRows());
  }
  std::string Tiles() const {
    const int64_t rows = at_.Taps(0) * at_.Taps(1) * std::min(at_.x.arranged[2].split, at_.Taps(2));
    return fmt::format(
        "(ceil_div({}, groups_m * 64) * ceil_div({}, groups_c * {} * 64) * {} // groups_r * "
        "ceil_div({}, {}))",
        at_.dy.channels, at_.x.padded, ChannelPanels(), rows, at_.Seen(),
        at_.Seen() > 1 ? "panels" : "1");
  }

  /// Both tensors' constants in namespaces of their own, and, unless they are read as they lie, the
  /// step that arranges them.
  std::string Arranging(LaunchPlan& plan) const {
    const auto space = [&](const TensorConvForm& form, const char* name) {
      ConstantBlock constants;
      AddArrangement(constants, form);
      return fmt::format("namespace {} {{\n{}\n{}\n{}}}\n", name, constants.text(),
                         embed::kConvScaleCuh,
                         at_.direct ? std::string_view() : embed::kConvArrangeCu);
    };
    const std::string texts = "#define ARRANGED_APART\n" + space(at_.x, "of_x") +
                              space(at_.dy, "of_dy");
    if (at_.direct) return texts;
    const std::string of_x = AddArrangedImage(plan, at_.x, "arranged_x");
    const std::string of_dy = AddArrangedImage(plan, at_.dy, "arranged_dy");
    plan.steps.push_back(Step("arrange", of_x + " + " + of_dy, 256,
                              {at_.x.x.name, "@arranged_x", at_.dy.x.name, "@arranged_dy",
                               at_.x.CountedImages(), "i32:" + of_x}));
    return texts;
  }
  ArgBinding Map(const TensorConvForm& form, const char* workspace, const std::string& rows) const {
    if (at_.direct)
      return BoxMap(form.x.name, element_,
                    {form.Inputs(), form.groups * form.channels, form.images.factor()},
                    {64, kPanel, 1});
    return BoxMap(workspace, element_, {form.padded, form.groups * form.Split(), at_.Positions()},
                  {kPanel, 1, Expr::MustParse(rows)});
  }

  Gradient at_;
  Expr shared_, tiles_;  ///< bytes of a block; tiles of a group's result
};

}  // namespace

std::unique_ptr<ScheduleTemplate> MakeWgrad(const KernelSpec& spec, const DeviceProfile& profile,
                                            const TensorConvForm& form) {
  auto gradient = GradientOf(spec, profile, form);
  if (!gradient) return nullptr;
  auto made = std::make_unique<WgradTemplate>(spec, profile, *std::move(gradient));
  return made->Default().values.empty() ? nullptr : std::move(made);
}

}  // namespace atunner
