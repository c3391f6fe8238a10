// Convolutions of graphs as matrix products on tensor cores, in any number of dimensions, with groups, transposed, and
// their gradients by the image: a first step puts channels last, then tiles of either operand are gathered.
#include <fmt/format.h>

#include "atunner/codegen/conv_form.h"
#include "atunner/codegen/conv_halo.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/tensor_template.h"
#include "embed/families.h"

namespace atunner {
namespace {

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
    AddArrangement(constants, form_, half_precision());
    AddGeometry(constants);
    LaunchPlan plan = Plan(configuration, {});
    AddArranging(plan, form_, half_precision());
    const std::string pixels = fmt::format("({}) * {}", Images(), form_.Rounded());
    const std::string filters = std::to_string(form_.filters);
    LaunchStep step =
        TileStep(configuration, "conv", form_.pixels_first ? pixels : filters, form_.pixels_first ? filters : pixels);
    step.grid[2] = Expr(form_.groups * form_.Phases());
    step.args = {form_.in_place ? ArgBinding::Tensor(form_.x.name) : ArgBinding::Workspace("arranged_x"),
                 ArgBinding::Workspace("arranged_w"), Destination(configuration, form_.y.name), ImagesOf(form_),
                 LargestOf(half_precision())};
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, form_.y.name, Images(), std::to_string(form_.Results()));
    const std::string kernel = fmt::format("{}\n{}", embed::kConvGatherCu, embed::kConvArrangeCu);
    const std::string places = fmt::format("{}\n{}", embed::kConvScaleCuh, embed::kConvGeometryCuh);
    return RenderedKernel{EmitProduct(configuration, constants, kernel, false, places), std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t pixels = Integer(configuration, form_.pixels_first ? "tile_m" : "tile_n");
    return CheckImages(spec_, form_, pixels / form_.Rounded() + 2);
  }
  SizeFreedom FreeSizes(const Configuration&) const override { return FreeImages(spec_, form_); }

 private:
  /// Of the products of all phases and groups, as if they were one.
  static Extents ExtentsOf(const KernelSpec& spec, const TensorConvForm& form) {
    const int64_t pixels = form.images.Bound(spec.dims).factor() * form.Rounded() * form.Phases() * form.groups;
    const int64_t depth = CeilDiv(form.Taps(), form.Phases()) * form.padded;
    return {.m = form.pixels_first ? pixels : form.filters, .n = form.pixels_first ? form.filters : pixels, .k = depth};
  }
  std::string Images() const { return form_.images.ToString(); }

  void AddGeometry(ConstantBlock& constants) const {
    constants.Int("X_PIXEL", form_.Channels(), "elements from pixel to pixel");
    constants.Line(fmt::format("constexpr long long X_GROUP = {};", form_.padded));
    const auto& y = form_.y;
    const bool dense = !form_.pixels_first && form_.Phases() == 1 && Dense(form_, false, 1);
    const int64_t run = form_.Runs() ? form_.images.factor() * form_.Outputs() : form_.Outputs();
    const int64_t y_step = dense ? StepOf({run, form_.Runs() ? 8 : y.image, y.group, y.filter}) : 1;
    const bool whole =
        form_.pixels_first ? StepOf({form_.filters, y.image, y.group, form_.axes[2].y}) == 8 : y_step == 8;
    constants.Bool("Y_DENSE", dense, "neighbouring pixels of the result lie side by side");
    constants.Bool("Y_RUNS", form_.Runs(), "so do images");
    constants.Bool("Y_WHOLE", whole, "so do eight columns of it, aligned").Int("Y_STEP", y_step, "or so many");
  }

  TensorConvForm form_;
};

class ConvGraph : public FormFamily<TensorConvGraph, TensorConvFormOf> {
 public:
  ConvGraph() : FormFamily("convolution") {}
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    if (profile.cc_major < 8) return Fail(ErrorCode::kUnsupported, "convolutions on tensor cores of " + profile.name);
    if (auto halo = MakeHaloConv(spec, profile)) return halo;
    if (auto filters = MakeFilterGradient(spec, profile)) return filters;
    return FormFamily::Bind(spec, profile);
  }
};

}  // namespace

const Family& ConvGraphFamily() {
  static const ConvGraph family;
  return family;
}

}  // namespace atunner
