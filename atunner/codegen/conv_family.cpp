// Convolutions, channels last, as matrix products whose left operand is gathered: float16 and bfloat16 on tensor cores,
// float32 with fused multiply-adds.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/family.h"
#include "atunner/codegen/simt_template.h"
#include "atunner/codegen/tensor_template.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Row and column masks of the filter share one 64-bit word.
constexpr int64_t kMostFilterExtents = 64;

/// A small image that exercises partly filled tiles and every edge of the filter, for the source of this filter.
Dims SmallImage(const KernelSpec& spec, int64_t pixels, int64_t filters) {
  const auto at = [&](const char* name) { return spec.dims.find(name)->second; };
  const auto attribute = [&](const char* name) {
    return static_cast<int64_t>(ToDouble(spec.attributes.find(name)->second));
  };
  const int64_t stride = attribute("stride");
  const int64_t padding = attribute("padding");
  const auto extent = [&](int64_t taps, int64_t outputs) {
    return std::max<int64_t>(1, (outputs - 1) * stride + attribute("dilation") * (taps - 1) + 1 - 2 * padding);
  };
  const auto outputs = [&](int64_t in, int64_t taps) {
    return (in + 2 * padding - attribute("dilation") * (taps - 1) - 1) / stride + 1;
  };
  const int64_t h = extent(at("R"), 3);
  const int64_t w = extent(at("S"), 5);
  const int64_t p = outputs(h, at("R"));
  const int64_t q = outputs(w, at("S"));
  return {{"N", std::max<int64_t>(1, pixels / (p * q))},
          {"H", h},
          {"W", w},
          {"C", at("C")},
          {"K", filters},
          {"R", at("R")},
          {"S", at("S")},
          {"P", p},
          {"Q", q}};
}

/// Any image and any number of filters of this geometry that the sources' 31-bit counters reach.
SizeFreedom FreeImages(int64_t filter_step) {
  const auto outputs = [](const char* out, const char* in, const char* taps) {
    return Constraint{
        Expr::MustParse(fmt::format("{} == ({} + 2 * padding - dilation * ({} - 1) - 1) // stride + 1", out, in, taps)),
        "the outputs of this filter"};
  };
  SizeFreedom freedom{{"N", "H", "W", "K", "P", "Q"}, {outputs("P", "H", "R"), outputs("Q", "W", "S")}};
  for (const char* count : {"N * P * Q", "N * (H + 64) * (W + 64) * ceil_div(C, 4)", "K"}) {
    freedom.constraints.push_back({Expr::MustParse(fmt::format("{} <= {}", count, INT32_MAX)), "31-bit counters"});
  }
  if (filter_step > 1) freedom.constraints.push_back(WholeSteps("K", filter_step));
  return freedom;
}

/// The filter's geometry, which the sources bake in; the image's size comes at run time.
void AddFilter(ConstantBlock& constants, const KernelSpec& spec, int64_t channels) {
  constants.Int("C", channels).Int("R", spec.dims.at("R")).Int("S", spec.dims.at("S"));
  constants.Int("STEP", static_cast<int64_t>(ToDouble(spec.attributes.at("stride"))));
  constants.Int("PADDING", static_cast<int64_t>(ToDouble(spec.attributes.at("padding"))));
  constants.Int("DILATION", static_cast<int64_t>(ToDouble(spec.attributes.at("dilation"))));
}

void AddImageArguments(LaunchStep& step) {
  for (const char* extent : {"N", "H", "W", "K", "P", "Q"}) {
    step.args.push_back(ArgBinding::Scalar(DType::kInt32, Expr::MustParse(extent)));
  }
}

class TensorCoreConv : public TensorTemplate {
 public:
  TensorCoreConv(const KernelSpec& spec, const DeviceProfile& profile)
      : TensorTemplate(spec, profile, MainLoopFor(profile),
                       {.m = spec.dims.at("N") * spec.dims.at("P") * spec.dims.at("Q"),
                        .n = spec.dims.at("K"),
                        .k = spec.dims.at("R") * spec.dims.at("S") * Channels(spec)}) {}

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants = TileConstants(configuration, true);
    AddFilter(constants, spec_, Channels(spec_));
    LaunchPlan plan = Plan(configuration, {});
    const bool widened = Channels(spec_) != dim("C");
    const Widened both[] = {{"x", "N * H * W", "C", 16}, {"w", "K * R * S", "C", 16}};
    if (widened) AddWidening(plan, both);
    LaunchStep step = TileStep(configuration, "conv2d", "N * P * Q", "K");
    step.args = {widened ? ArgBinding::Workspace("wide_x") : ArgBinding::Tensor("x"),
                 widened ? ArgBinding::Workspace("wide_w") : ArgBinding::Tensor("w"), Destination(configuration, "y")};
    AddImageArguments(step);
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, "y", "N * P * Q", "K");
    return RenderedKernel{EmitProduct(configuration, constants,
                                      fmt::format("{}\n{}", embed::kConvPixelsCuh, embed::kConvTensorCu), widened),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t step = extents_.n % 8 == 0 ? 8 : 1;
    return {SmallImage(spec_, 1, step),
            SmallImage(spec_, Integer(configuration, "tile_m") + 20, Integer(configuration, "tile_n") / 2 + step)};
  }
  SizeFreedom FreeSizes(const Configuration&) const override { return FreeImages(extents_.n % 8 == 0 ? 8 : 1); }

 private:
  /// Channels of the images that the kernel reads: rounded up to whole 16-byte units.
  static int64_t Channels(const KernelSpec& spec) { return (spec.dims.at("C") + 7) / 8 * 8; }
};

class SimtConv : public SimtTemplate {
 public:
  SimtConv(const KernelSpec& spec, const DeviceProfile& profile)
      : SimtTemplate(spec, profile,
                     {.m = spec.dims.at("N") * spec.dims.at("P") * spec.dims.at("Q"),
                      .n = spec.dims.at("K"),
                      .k = spec.dims.at("R") * spec.dims.at("S") * spec.dims.at("C")},
                     true) {}

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants = TileConstants(configuration);
    AddFilter(constants, spec_, dim("C"));
    LaunchPlan plan = Plan(configuration, {});
    LaunchStep step = ProductStep(configuration, "conv2d", "N * P * Q", "K");
    step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("w"), Destination(configuration, "y")};
    AddImageArguments(step);
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, "y", "N * P * Q", "K");
    return RenderedKernel{Emit(configuration, constants,
                               {embed::kTileOrderCuh, embed::kSimtTileCuh, embed::kTileWalkersCuh,
                                embed::kConvPixelsCuh, embed::kConvSimtCu, embed::kPlainFinishCuh,
                                Split(configuration) ? embed::kSplitCuh : std::string_view()}),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t step = extents_.n % 4 == 0 ? 4 : 1;
    return {SmallImage(spec_, 1, step),
            SmallImage(spec_, Integer(configuration, "tile_m") + 20, Integer(configuration, "tile_n") / 2 + step)};
  }
  SizeFreedom FreeSizes(const Configuration&) const override { return FreeImages(extents_.n % 4 == 0 ? 4 : 1); }
};

class Conv : public Family {
 public:
  std::string_view name() const override { return "conv"; }
  bool Match(const KernelSpec& spec) const override {
    return spec.oracle.kind == Oracle::Kind::kOperator && spec.name == "conv2d";
  }
  Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) const override {
    ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
    const auto at = [&](const char* name) { return spec.dims.at(name); };
    if (at("R") + at("S") > kMostFilterExtents) {
      return Fail(ErrorCode::kUnsupported, fmt::format("conv2d with a filter of {} x {}", at("R"), at("S")), "",
                  fmt::format("rows and columns together may be at most {}", kMostFilterExtents));
    }
    // Pixels are counted, and places in the image addressed, in 31 bits.
    if (at("N") * at("P") * at("Q") > INT32_MAX ||
        at("N") * (at("H") + 64) * (at("W") + 64) * ((at("C") + 3) / 4) > INT32_MAX ||
        at("R") * at("S") * at("C") > INT32_MAX / 2) {
      return Fail(ErrorCode::kUnsupported, "conv2d on images of 2^31 or more units", "", "split the batch");
    }
    if (spec.compute_dtype == DType::kFloat32) return std::make_unique<SimtConv>(spec, profile);
    return std::make_unique<TensorCoreConv>(spec, profile);
  }
};

}  // namespace

const Family& ConvFamily() {
  static const Conv family;
  return family;
}

}  // namespace atunner
