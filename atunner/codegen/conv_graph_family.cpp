// Convolutions of graphs as matrix products on tensor cores, in any number of dimensions, with groups, transposed, and
// their gradients by the image: a first step puts channels last, then tiles of either operand are gathered.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/tensor_template.h"
#include "atunner/graph/convolution.h"
#include "atunner/graph/rewrite.h"
#include "atunner/model/accuracy.h"
#include "atunner/operators/graph_operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::ConvAxis;
using graph::ConvForm;
using graph::ConvTensor;

/// Bits that say which taps meet an element.
constexpr int64_t kMostTaps = 64;
/// Channels times filters of a group: below that, tensor cores multiply little but zeros.
constexpr int64_t kLeastProducts = 16;
constexpr int64_t kArrangeThreads = 256;
constexpr int64_t kUnit = 8;
/// Channels that groups are put together for: what a buffer is deep.
constexpr int64_t kTogether = 64;
/// Blocks that look for the largest elements (conv_geometry.cuh).
constexpr int64_t kMeasuring = 256 + 32;

struct TensorConvForm : ConvForm {
  int64_t own_channels = 1, own_filters = 1;  ///< of a group, before small ones were put together
  int64_t padded = 8;                         ///< channels of a group in whole units
  bool last = false;                          ///< x has its channels last,
  bool in_place = false;                      ///< and needs no first step
  bool pixels_first = false;

  int64_t Pixels() const {
    int64_t pixels = 1;
    for (const ConvAxis& axis : axes) pixels *= CeilDiv(axis.out, axis.inner);
    return pixels;
  }
  int64_t Rounded() const { return pixels_first ? Pixels() : CeilDiv(Pixels(), 8) * 8; }
};

/// Are spatial axes side by side in memory, `step` elements from one place to the next?
bool Dense(const ConvForm& form, bool of_x, int64_t step) {
  for (size_t i = form.axes.size(); i-- > 0;) {
    const ConvAxis& axis = form.axes[i];
    const int64_t extent = of_x ? axis.in : axis.out;
    if (extent > 1 && (of_x ? axis.x : axis.y) != step) return false;
    step *= extent;
  }
  return true;
}

/// Small groups become one whose filters have zeros for the others' channels: tensor cores multiply them anyway.
void PutGroupsTogether(TensorConvForm& form) {
  const bool even = form.x.group == form.channels * form.x.channel && form.y.group == form.filters * form.y.filter;
  if (form.groups == 1 || !even) return;
  int64_t count = std::max<int64_t>(1, kTogether / std::max(form.channels, form.filters));
  while (form.groups % count != 0) --count;
  form.groups /= count;
  form.channels *= count;
  form.filters *= count;
  form.x.group *= count;
  form.y.group *= count;
}

/// Elements that are surely side by side and aligned where rows have so many.
int64_t StepOf(std::initializer_list<int64_t> multiples) {
  int64_t step = kUnit;
  for (int64_t each : multiples) {
    while (each % step != 0) step /= 2;
  }
  return step;
}

std::optional<TensorConvForm> FormOf(const KernelSpec& spec) {
  const bool scaled = spec.compute_dtype == DType::kFloat32 && AccuracyOf(spec) == Accuracy::kFast;
  if (!scaled && SizeOf(spec.compute_dtype) != 2) return std::nullopt;
  if (std::ranges::any_of(spec.args, [&](const ArgSpec& arg) { return arg.dtype != spec.compute_dtype; }))
    return std::nullopt;
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto parsed = GraphOf(spec);
  const auto read = parsed ? graph::ConvFormOf(graph::FuseMaps(*parsed)) : std::nullopt;
  if (!read || read->channels * read->filters < kLeastProducts) return std::nullopt;
  TensorConvForm form{*read, read->channels, read->filters};
  PutGroupsTogether(form);
  form.padded = CeilDiv(form.channels, kUnit) * kUnit;
  const int64_t all = form.groups * form.channels;
  form.last = (form.channels == 1 || form.x.channel == 1) && Dense(form, true, all) &&
              (form.groups == 1 || form.x.group == form.channels) &&
              (form.images.one() || form.x.image == all * form.Inputs());
  form.in_place = form.last && form.channels == form.padded && !scaled;
  if (!form.last && !Dense(form, true, 1)) return std::nullopt;
  form.pixels_first = form.y.filter == 1 && form.filters > 1;
  const int64_t taps = form.axes[0].taps + form.axes[1].taps + form.axes[2].taps;
  const int64_t images = form.images.Bound(spec.dims).factor();
  const int64_t most = INT32_MAX / 2;
  const bool counted = images * form.Rounded() < most && form.groups * form.Phases() < 65536 &&
                       images * form.Inputs() * form.groups * (form.padded / kUnit) < most &&
                       form.Taps() * form.padded < most;
  return taps <= kMostTaps && counted ? std::optional(form) : std::nullopt;
}

class TensorConvGraph : public TensorTemplate {
 public:
  TensorConvGraph(const KernelSpec& spec, const DeviceProfile& profile, TensorConvForm form)
      : TensorTemplate(spec, profile, MainLoopFor(profile), ExtentsOf(spec, form)), form_(std::move(form)) {
    if (!half_precision()) operands_ = DType::kFloat16;
    if (form_.Phases() > 1) Add("persistent == 0", "phases have no tile in common");
    if (!half_precision()) Add(space_.Find("in_cluster") < 0 ? "True" : "in_cluster == 0", "sums stay as they are");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants = TileConstants(configuration, true);
    AddGeometry(constants);
    LaunchPlan plan = Plan(configuration, {});
    if (!half_precision()) AddMeasuring(plan);
    AddArranging(plan);
    const std::string pixels = fmt::format("({}) * {}", Images(), form_.Rounded());
    const std::string filters = std::to_string(form_.filters);
    LaunchStep step = TileStep(configuration, "conv", (form_.pixels_first ? pixels : filters).c_str(),
                               (form_.pixels_first ? filters : pixels).c_str());
    step.grid[2] = Expr(form_.groups * form_.Phases());
    step.args = {form_.in_place ? ArgBinding::Tensor(form_.x.name) : ArgBinding::Workspace("arranged_x"),
                 ArgBinding::Workspace("arranged_w"), Destination(configuration, form_.y.name.c_str()), ImagesArg(),
                 Largest()};
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, form_.y.name.c_str(), Images().c_str(), std::to_string(Results()).c_str());
    return RenderedKernel{EmitProduct(configuration, constants, Kernel(), false, embed::kConvGeometryCuh),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t pixels = Integer(configuration, form_.pixels_first ? "tile_m" : "tile_n");
    const int64_t work = Results() * form_.channels * form_.Taps();
    return CheckSizes(spec_, GraphOf(spec_).value(), pixels / form_.Rounded() + 2, 20000000 / work);
  }
  SizeFreedom FreeSizes(const Configuration&) const override {
    if (spec_.dims.size() != 1) return {};
    const auto& [name, most] = *spec_.dims.begin();
    return {{name}, {{Expr::MustParse(fmt::format("{} <= {}", name, most)), "pixels are numbered by 31 bits"}}};
  }

 private:
  /// Of the products of all phases and groups, as if they were one.
  static Extents ExtentsOf(const KernelSpec& spec, const TensorConvForm& form) {
    const int64_t pixels = form.images.Bound(spec.dims).factor() * form.Rounded() * form.Phases() * form.groups;
    const int64_t depth = CeilDiv(form.Taps(), form.Phases()) * form.padded;
    return {.m = form.pixels_first ? pixels : form.filters, .n = form.pixels_first ? form.filters : pixels, .k = depth};
  }
  std::string Images() const { return form_.images.ToString(); }
  ArgBinding ImagesArg() const { return ArgBinding::Scalar(DType::kInt32, Expr::MustParse(Images())); }
  /// Elements of the result of one image.
  int64_t Results() const { return form_.groups * form_.filters * form_.Outputs(); }

  void AddGeometry(ConstantBlock& constants) const {
    constants.Int("GROUPS", form_.groups).Int("CHANNELS", form_.channels, "of a group").Int("C", form_.padded);
    constants.Int("FILTERS", form_.filters, "of a group").Bool("PIXELS_FIRST", form_.pixels_first);
    constants.Int("OWN_CHANNELS", form_.own_channels, "that a filter sees").Int("OWN_FILTERS", form_.own_filters);
    for (size_t i = 0; i < form_.axes.size(); ++i) {
      const ConvAxis& a = form_.axes[i];
      constants.Line(fmt::format(
          "constexpr int IN_{0} = {1}, OUT_{0} = {2}, TAPS_{0} = {3}, STRIDE_{0} = {4}, DILATION_{0} = {5}, "
          "SHIFT_{0} = {6}, INNER_{0} = {7};\nconstexpr long long Y_{0} = {8}, W_{0} = {9};",
          "DHW"[i], a.in, a.out, a.taps, a.stride, a.dilation, a.shift, a.inner, a.y, a.w));
    }
    const auto& [x, y, w] = std::tie(form_.x, form_.y, form_.w);
    constants.Int("X_PIXEL", form_.groups * form_.padded, "elements from pixel to pixel");
    constants.Line(fmt::format("constexpr long long X_GROUP = {};", form_.padded));
    constants.Line(fmt::format(
        "constexpr long long Y_IMAGE = {}, Y_GROUP = {}, Y_FILTER = {}, Y_ELEMENTS = {};\n"
        "constexpr long long X_FROM_IMAGE = {}, X_FROM_GROUP = {}, X_FROM_CHANNEL = {};\n"
        "constexpr long long W_BASE = {}, W_GROUP = {}, W_FILTER = {}, W_CHANNEL = {};",
        y.image, y.group, y.filter, Results(), x.image, x.group, x.channel, w.base, w.group, w.filter, w.channel));
    const bool dense = !form_.pixels_first && form_.Phases() == 1 && Dense(form_, false, 1);
    const int64_t y_step = dense ? StepOf({form_.Outputs(), y.image, y.group, y.filter}) : 1;
    const bool whole =
        form_.pixels_first ? StepOf({form_.filters, y.image, y.group, form_.axes[2].y}) == kUnit : y_step == kUnit;
    constants.Bool("Y_DENSE", dense, "neighbouring pixels of the result lie side by side");
    constants.Bool("Y_WHOLE", whole, "so do eight columns of it, aligned").Int("Y_STEP", y_step, "or so many");
    constants.Bool("ARRANGE_X", !form_.in_place).Bool("X_LAST", form_.last, "x has its channels last");
    const int64_t x_step = form_.last ? 1 : StepOf({form_.Inputs(), x.image, x.group, x.channel});
    constants.Int("X_STEP", std::min(x_step, half_precision() ? kUnit : kUnit / 2),
                  "elements of x that are read at once");
    constants.Define("SCALED", half_precision() ? 0 : 1);
  }

  void AddArranging(LaunchPlan& plan) const {
    const int64_t filters = form_.groups * form_.filters * form_.Taps() * form_.padded;
    plan.workspaces.push_back({"arranged_w", Expr(filters * 2)});
    LaunchStep step;
    step.entry = "arrange";
    step.block[0] = kArrangeThreads;
    std::string blocks = std::to_string(CeilDiv(filters / kUnit, kArrangeThreads));
    if (!form_.in_place) {
      const int64_t total = form_.groups * form_.padded;
      const int64_t lines = std::min<int64_t>(total, 64);
      const int64_t space = lines > 32 ? 64 : lines > 16 ? 128 : lines > 8 ? 256 : 512;
      plan.workspaces.push_back(
          {"arranged_x", Expr::MustParse(fmt::format("({}) * {}", Images(), form_.Inputs() * total * 2))});
      const int64_t tiles = form_.last ? CeilDiv(form_.Inputs() * total / kUnit, kArrangeThreads)
                                       : CeilDiv(form_.Inputs(), space) * CeilDiv(total, lines);
      blocks += fmt::format(" + ({}) * {}", Images(), tiles);
    }
    step.grid[0] = Expr::MustParse(blocks);
    step.args = {ArgBinding::Tensor(form_.x.name),
                 form_.in_place ? ArgBinding::Workspace("arranged_w") : ArgBinding::Workspace("arranged_x"),
                 ArgBinding::Tensor(form_.w.name),
                 ArgBinding::Workspace("arranged_w"),
                 ImagesArg(),
                 Largest()};
    plan.steps.push_back(step);
  }
  /// The largest elements; of 16-bit types nobody asks.
  ArgBinding Largest() const { return ArgBinding::Workspace(half_precision() ? "arranged_w" : "largest"); }
  void AddMeasuring(LaunchPlan& plan) const {
    plan.workspaces.push_back({"largest", Expr(kMeasuring * 4)});
    LaunchStep step;
    step.entry = "measure";
    step.grid[0] = kMeasuring;
    step.block[0] = 512;
    const int64_t each = form_.groups * form_.channels * form_.Inputs();
    step.args = {
        ArgBinding::Tensor(form_.x.name), ArgBinding::Tensor(form_.w.name), ArgBinding::Workspace("largest"),
        ArgBinding::Scalar(DType::kInt64, Expr::MustParse(fmt::format("({}) * {}", Images(), each))),
        ArgBinding::Scalar(DType::kInt64, Expr(form_.groups * form_.filters * form_.own_channels * form_.Taps()))};
    plan.steps.push_back(step);
  }

  static std::string Kernel() { return fmt::format("{}\n{}", embed::kConvGatherCu, embed::kConvArrangeCu); }

  TensorConvForm form_;
};

class ConvGraph : public FormFamily<TensorConvGraph, FormOf> {
 public:
  ConvGraph() : FormFamily("convolution") {}
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    if (profile.cc_major < 8) return Fail(ErrorCode::kUnsupported, "convolutions on tensor cores of " + profile.name);
    return FormFamily::Bind(spec, profile);
  }
};

}  // namespace

const Family& ConvGraphFamily() {
  static const ConvGraph family;
  return family;
}

}  // namespace atunner
