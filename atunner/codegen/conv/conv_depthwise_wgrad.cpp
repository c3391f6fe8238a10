// Depthwise wgrad: gradients by the filter of convolutions whose channels do not mix. They are sums
// over strips and no products for tensor cores (kernels/families/conv/conv_depthwise_wgrad.cu).
#include <fmt/format.h>

#include <cmath>

#include "atunner/codegen/conv/conv_form.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "embed/families.h"

namespace atunner {
namespace {

constexpr int64_t kThreads = 256;
/// Sums that a thread keeps.
constexpr int64_t kMostSums = 64;

std::optional<TensorConvForm> FormOf(const Task& task) {
  const KernelSpec& spec = task.spec();
  const auto read = ReadConv(task);
  if (!read || !IsFilterGradient(*read) || read->filters * read->images.factor() > 1 ||
      read->Phases() > 1)
    return std::nullopt;
  if (!IsFloat(spec.compute_dtype) ||
      (SizeOf(spec.compute_dtype) != 2 && spec.compute_dtype != DType::kFloat32))
    return std::nullopt;
  const TensorConvForm form{*read, read->channels, read->filters};
  const bool counted = form.channels * form.ConvForm::Taps() < INT32_MAX / 2 &&
                       form.axes[2].out <= kMostSums;
  return Dense(form, true, 1) && counted ? std::optional(form) : std::nullopt;
}

class DepthwiseFilters : public BoundTemplate {
 public:
  DepthwiseFilters(const KernelSpec& spec, const DeviceProfile& profile, TensorConvForm form)
      : BoundTemplate(spec, profile), form_(std::move(form)) {
    space_.parameters = {
        {"strip", Integers({1, 2, 4, 8}), "neighbouring positions of a thread"},
        {"rows", Integers({1, 2, 3, 5, 7, 9}), "of taps whose sums a thread keeps"},
        {"split_k", Integers({1, 2, 4, 8, 16, 32, 64, 128}),
         "blocks that divide images and positions"},
    };
    Add(fmt::format("rows <= {}", Rows()), "more rows than there are");
    Add(fmt::format("rows * {} <= {}", form_.axes[2].out, kMostSums), "registers");
    Add(fmt::format("split_k == 1 or split_k * strip * {} <= {}", kThreads, Positions()),
        "too few positions to divide");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants;
    if (!half_precision()) constants.Line("typedef float T;");
    AddArrangement(constants, form_);
    constants.Ints(chosen(configuration), {"strip", "rows", "split_k"});
    LaunchStep step = Step("wgrad", std::to_string(form_.groups), kThreads,
                           {form_.x.name, form_.w.name, "@partial_sums"});
    step.grid[1] = Expr::MustParse("split_k");
    step.grid[2] = Expr::MustParse(fmt::format("ceil_div({}, rows)", Rows()));
    const LaunchStep sum = Step("add_partial_sums",
                                std::to_string(CeilDiv(form_.groups * form_.Outputs(), kThreads)),
                                kThreads, {"@partial_sums", form_.y.name});
    LaunchPlan plan = Plan(configuration, {step, sum});
    plan.workspaces.push_back(
        {"partial_sums",
         Expr::MustParse(fmt::format("{} * split_k", form_.groups * form_.Outputs() * 4))});
    return RenderedKernel{Emit(configuration, constants, {embed::kConvDepthwiseWgradCu}),
                          std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const auto at = [&](const char* name) { return Real(chosen(configuration)[name]); };
    const CostConstants& costs = CostsOf(profile);
    const double across = Real(form_.axes[2].out);
    const double strips = std::ceil(Real(Positions()) / at("strip") / (kThreads * at("split_k")));
    const double blocks = Real(form_.groups) * at("split_k") * std::ceil(Real(Rows()) / at("rows"));
    const double rounds = std::ceil(blocks / (profile.sms * costs.depthwise_resident));
    // A load is followed by its test; lanes that read strips side by side meet more lines.
    const double loads = at("strip") + at("rows") * (at("strip") + across - 1);
    const double instructions = 30 + loads * (3 + at("strip") / 2) +
                                at("rows") * (10 + at("strip") * across);
    const double warps = costs.depthwise_resident * kThreads / 32;
    const double block = strips * instructions + at("rows") * across * 12 + 200;
    return rounds * block * warps / costs.depthwise_issued +
           at("split_k") * costs.depthwise_partial_sum_ns * Real(form_.groups) +
           costs.depthwise_launch_ns;
  }

 private:
  int64_t Rows() const { return form_.axes[0].out * form_.axes[1].out; }
  int64_t Positions() const { return form_.channels * form_.ConvForm::Taps(); }

  TensorConvForm form_;
};

}  // namespace

constinit const Family kDepthwiseFiltersFamily{"depthwise_filters",
                                               TryForm<DepthwiseFilters, FormOf>};

}  // namespace atunner
