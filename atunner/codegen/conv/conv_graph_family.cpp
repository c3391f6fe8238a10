// Convolutions as gathered matrix products: graphs in any number of dimensions, grouped,
// transposed, dgrad, and conv2d. A first step puts channels last, then tiles of either operand are
// gathered.
#include <fmt/format.h>

#include "atunner/codegen/conv/conv_form.h"
#include "atunner/codegen/matmul/product_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// On tensor cores, or with fused multiply-adds.
class GatheredConv : public ProductTemplate {
 public:
  GatheredConv(const KernelSpec& spec, const DeviceProfile& profile, TensorConvForm form)
      : ProductTemplate(spec, profile,
                        form.operands == DType::kFloat32 ? SimtLoop(true) : CopyingLoop(profile),
                        ExtentsOf(spec, form), form.operands, spec.compute_dtype),
        form_(std::move(form)),
        epilogue_(EpilogueOf(spec, form_)) {
    if (form_.Phases() > 1 && loop_.Persists())
      Add("persistent == 0", "phases have no tile in common");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants = TileConstants(at, true);
    AddArrangement(constants, form_);
    AddGeometry(constants);
    LaunchPlan plan = Plan(at, {});
    AddArranging(plan, form_);
    const std::string images = form_.images.ToString();
    const std::string pixels = fmt::format("({}) * {}", images, form_.Rounded());
    const std::string filters = std::to_string(form_.filters);
    LaunchStep step = form_.pixels_first ? TileStep(at, "conv", pixels, filters)
                                         : TileStep(at, "conv", filters, pixels);
    step.grid[2] = Expr(form_.groups * form_.Phases());
    AddArguments(step, {form_.MultipliedX(), form_.MultipliedW(), Destination(at, form_.y.name),
                        form_.CountedImages(), form_.Largest()});
    AddArguments(step, EpilogueArguments());
    plan.steps.push_back(step);
    FinishSplit(at, plan, form_.y.name, images, std::to_string(form_.Results()));
    const std::string kernel = fmt::format("{}\n{}", embed::kConvGatherCu, embed::kConvArrangeCu);
    const std::string positions = fmt::format("{}\n{}", embed::kConvScaleCuh,
                                              embed::kConvGeometryCuh);
    return RenderedKernel{EmitProduct(at, constants, kernel, false, positions), std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t pixels = chosen(configuration)[form_.pixels_first ? "tile_m" : "tile_n"];
    return CheckImages(spec_, form_, pixels / form_.Rounded() + 2);
  }
  ValidSizes FreeSizes(const Configuration&) const override { return FreeImages(form_); }

 private:
  /// The extents of the products of all phases and groups, as if they were one product.
  static Extents ExtentsOf(const KernelSpec& spec, const TensorConvForm& form) {
    const int64_t pixels = form.images.Bound(spec.dims).factor() * form.Rounded() * form.Phases() *
                           form.groups;
    const int64_t depth = CeilDiv(form.Taps(), form.Phases()) * form.padded;
    return {.m = form.pixels_first ? pixels : form.filters,
            .n = form.pixels_first ? form.filters : pixels,
            .k = depth};
  }

  void AddGeometry(ConstantBlock& constants) const {
    constants.Int("X_PIXEL", form_.Channels(), "elements from pixel to pixel");
    constants.Line(fmt::format("constexpr long long X_GROUP = {};", form_.padded));
    const auto& y = form_.y;
    const bool dense = !form_.pixels_first && form_.Phases() == 1 && Dense(form_, false, 1);
    const int64_t run = form_.Runs() ? form_.images.factor() * form_.Outputs() : form_.Outputs();
    const int64_t y_step = dense ? StepOf({run, form_.Runs() ? 8 : y.image, y.group, y.filter}) : 1;
    const bool whole = form_.pixels_first
                           ? StepOf({form_.filters, y.image, y.group, form_.axes[2].y}) == 8
                           : y_step == 8;
    constants.Bool("Y_DENSE", dense, "neighbouring pixels of the result lie side by side");
    constants.Bool("Y_RUNS", form_.Runs(), "so do images");
    constants.Bool("Y_WHOLE", whole, "so do eight columns of it, aligned")
        .Int("Y_STEP", y_step, "or so many");
  }

  std::string Epilogue() const override { return epilogue_.text; }
  Arguments EpilogueArguments() const override {
    return {epilogue_.arguments.begin(), epilogue_.arguments.end()};
  }

  TensorConvForm form_;
  graph::EpilogueText epilogue_;
};

/// ns of the default configuration with the arrangement of its operands.
double TotalNs(const ScheduleTemplate& schedule, const KernelSpec& spec, const TensorConvForm& form,
               const DeviceProfile& profile) {
  return schedule.Cost(schedule.Default(), profile).value_or(0) +
         ArrangingNs(spec, form, CostsOf(profile));
}

/// As exact as float32.
constexpr int64_t kProductsOfFloat32 = 3;

BoundSchedule Bind(const KernelSpec& spec, const TensorConvForm& form,
                   const DeviceProfile& profile) {
  if (form.operands != DType::kFloat32) {
    if (!CapabilitiesOf(profile).mma_16bit)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{} on tensor cores of {}", spec.name, profile.name), "",
                  "they need compute capability 8.0 or later; float32 without request.accuracy "
                  "fast is served");
    if (auto implicit_gemm = MakeImplicitGemmConv(spec, profile, form)) return implicit_gemm;
    if (auto filters = MakeWgrad(spec, profile, form)) return filters;
  }
  auto gathered = std::make_unique<GatheredConv>(spec, profile, form);
  if (const auto split = SplitFloatForm(form, kProductsOfFloat32)) {
    auto implicit_gemm = MakeImplicitGemmConv(spec, profile, *split);
    if (implicit_gemm &&
        TotalNs(*implicit_gemm, spec, *split, profile) < TotalNs(*gathered, spec, form, profile))
      return implicit_gemm;
  }
  return gathered;
}

Binding Try(const Task& task) {
  auto form = TensorConvFormOf(task);
  if (!form) return {};
  return {.bind = [spec = task.spec(), form = *std::move(form)](const DeviceProfile& profile) {
    return Bind(spec, form, profile);
  }};
}

}  // namespace

constinit const Family kConvGraphFamily{"convolution", Try};

}  // namespace atunner
