#include "atunner/codegen/conv_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/rewrite.h"
#include "atunner/model/accuracy.h"
#include "atunner/operators/graph_operator.h"

namespace atunner {
namespace {

using graph::ConvAxis;

/// Channels times filters of a group: below that, tensor cores multiply little but zeros.
constexpr int64_t kLeastProducts = 16;
constexpr int64_t kArrangeThreads = 256;
constexpr int64_t kUnit = 8;
/// Products of a size that is checked: the virtual GPU executes it too, and whoever tunes waits for that.
constexpr int64_t kMostChecked = 1'000'000'000;
/// Channels that groups are put together for: what a buffer is deep.
constexpr int64_t kTogether = 64;
/// Blocks that look for the largest elements (conv_scale.cuh), and that arrange again what did not fit.
constexpr int64_t kSampling = 256 + 32;
constexpr int64_t kAgain = 264;

void AddSampling(LaunchPlan& plan, const TensorConvForm& form) {
  plan.workspaces.push_back({"largest", Expr((kSampling + 2) * 4)});
  LaunchStep step;
  step.entry = "sample";
  step.grid[0] = kSampling;
  step.block[0] = 512;
  const int64_t each = form.groups * form.channels * form.Inputs();
  const int64_t filters = form.groups * form.filters * form.own_channels * form.ConvForm::Taps();
  step.args = {
      ArgBinding::Tensor(form.x.name), ArgBinding::Tensor(form.w.name), ArgBinding::Workspace("largest"),
      ArgBinding::Scalar(DType::kInt64, Expr::MustParse(fmt::format("({}) * {}", form.images.ToString(), each))),
      ArgBinding::Scalar(DType::kInt64, Expr(filters))};
  plan.steps.push_back(step);
}

}  // namespace

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

int64_t TensorConvForm::Pixels() const {
  int64_t pixels = 1;
  for (const ConvAxis& axis : axes) pixels *= CeilDiv(axis.out, axis.inner);
  return pixels;
}

bool Dense(const graph::ConvForm& form, bool of_x, int64_t step) {
  for (size_t i = form.axes.size(); i-- > 0;) {
    const ConvAxis& axis = form.axes[i];
    const int64_t extent = of_x ? axis.in : axis.out;
    if (extent > 1 && (of_x ? axis.x : axis.y) != step) return false;
    step *= extent;
  }
  return true;
}

int64_t StepOf(std::initializer_list<int64_t> multiples) {
  int64_t step = kUnit;
  for (int64_t each : multiples) {
    while (each % step != 0) step /= 2;
  }
  return step;
}

bool IsFilterGradient(const graph::ConvForm& form) { return form.images.constant() && form.Taps() > form.Outputs(); }

bool HasChannelsLast(const TensorConvForm& form) {
  const int64_t all = form.groups * form.channels;
  return (form.channels == 1 || form.x.channel == 1) && Dense(form, true, all) &&
         (form.groups == 1 || form.x.group == form.channels) &&
         (form.images.one() || form.x.image == all * form.Inputs());
}

std::optional<graph::ConvForm> ReadConv(const KernelSpec& spec) {
  if (std::ranges::any_of(spec.args, [&](const ArgSpec& arg) { return arg.dtype != spec.compute_dtype; }))
    return std::nullopt;
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto parsed = GraphOf(spec);
  if (!parsed) return std::nullopt;
  auto read = graph::ConvFormOf(graph::FuseMaps(*parsed));
  // Images that are summed are as many as the task has.
  if (!read) read = graph::ConvFormOf(graph::FuseMaps(graph::Specialise(*parsed, spec.dims).value()));
  return read;
}

std::optional<TensorConvForm> TensorConvFormOf(const KernelSpec& spec) {
  const bool scaled = spec.compute_dtype == DType::kFloat32 && AccuracyOf(spec) == Accuracy::kFast;
  if (!scaled && SizeOf(spec.compute_dtype) != 2) return std::nullopt;
  const auto read = ReadConv(spec);
  if (!read) return std::nullopt;
  const int64_t channels = IsFilterGradient(*read) ? read->images.factor() : read->channels;
  if (channels * read->filters < kLeastProducts) return std::nullopt;
  TensorConvForm form{*read, read->channels, read->filters};
  PutGroupsTogether(form);
  form.padded = CeilDiv(form.channels, kUnit) * kUnit;
  form.last = HasChannelsLast(form);
  form.in_place = form.last && form.channels == form.padded && !scaled;
  if (!form.last && !Dense(form, true, 1)) return std::nullopt;
  form.pixels_first = form.y.filter == 1 && form.filters > 1;
  for (size_t i = 0; i < form.axes.size(); ++i)
    form.arranged[i] = {.taps = form.axes[i].taps, .padded = form.axes[i].in};
  const int64_t images = form.images.Bound(spec.dims).factor();
  const int64_t most = INT32_MAX / 2;
  const bool counted = images * form.Rounded() < most && form.groups * form.Phases() < 65536 &&
                       images * form.Inputs() * form.groups * (form.padded / kUnit) < most &&
                       form.Taps() * form.padded < most;
  return counted ? std::optional(form) : std::nullopt;
}

void AddArrangement(ConstantBlock& constants, const TensorConvForm& form, bool half) {
  constants.Int("GROUPS", form.groups)
      .Int("CHANNELS", form.channels, "of a group")
      .Int("C", form.padded)
      .Int("MERGED", form.merged, "pixels that are multiplied as one");
  constants.Int("FILTERS", form.Rows(), "of a group").Bool("PIXELS_FIRST", form.pixels_first);
  constants.Int("OWN_CHANNELS", form.own_channels, "that a filter sees").Int("OWN_FILTERS", form.own_filters);
  for (size_t i = 0; i < form.axes.size(); ++i) {
    const ConvAxis& a = form.axes[i];
    const ArrangedAxis& b = form.arranged[i];
    constants.Line(fmt::format(
        "constexpr int IN_{0} = {1}, OUT_{0} = {2}, FILTER_{0} = {3}, DILATION_{0} = {4}, TAPS_{0} = {5}, PHASES_{0} = "
        "{6}, PADDED_{0} = {7}, LOW_{0} = {8}, SPLIT_{0} = {9}, STRIDE_{0} = {12}, SHIFT_{0} = {13}, INNER_{0} = {14};"
        "\nconstexpr long long Y_{0} = {10}, W_{0} = {11};",
        "DHW"[i], a.in, a.out, a.taps, a.dilation, b.taps, b.phases, b.padded, b.low, b.split, a.y, a.w, a.stride,
        a.shift, a.inner));
  }
  const auto& [x, y, w] = std::tie(form.x, form.y, form.w);
  constants.Line(fmt::format(
      "constexpr long long Y_IMAGE = {}, Y_GROUP = {}, Y_FILTER = {}, Y_ELEMENTS = {};\n"
      "constexpr long long X_FROM_IMAGE = {}, X_FROM_GROUP = {}, X_FROM_CHANNEL = {};\n"
      "constexpr long long W_BASE = {}, W_GROUP = {}, W_FILTER = {}, W_CHANNEL = {};",
      y.image, y.group, y.filter, form.Results(), x.image, x.group, x.channel, w.base, w.group, w.filter, w.channel));
  constants.Bool("ARRANGE_X", !form.in_place).Bool("X_LAST", form.last, "x has its channels last");
  const int64_t step = form.last ? 1 : StepOf({form.Inputs(), x.image, x.group, x.channel});
  constants.Int("X_STEP", std::min(step, half ? kUnit : kUnit / 2), "elements of x that are read at once");
  constants.Define("SCALED", half ? 0 : 1);
}

std::string AddArrangedImage(LaunchPlan& plan, const TensorConvForm& form, const char* workspace) {
  const std::string images = form.images.ToString();
  const int64_t total = form.Channels();
  const int64_t lines = std::min<int64_t>(total, 64);
  const int64_t space = lines > 16 ? 128 : lines > 8 ? 256 : 512;
  plan.workspaces.push_back({workspace, Expr::MustParse(fmt::format("({}) * {}", images, form.Cells() * total * 2))});
  const int64_t tiles = form.last ? CeilDiv(form.Inputs() * total / kUnit, kArrangeThreads)
                                  : CeilDiv(form.Inputs(), space) * CeilDiv(total, lines);
  std::string blocks = fmt::format("({}) * {}", images, tiles);
  if (form.Cells() > form.Inputs())
    blocks += fmt::format(" + ceil_div(({}) * {}, {})", images, form.Cells(), kArrangeThreads);
  return blocks;
}

void AddArranging(LaunchPlan& plan, const TensorConvForm& form, bool half) {
  if (!half) AddSampling(plan, form);
  const int64_t filters = form.groups * form.Rows() * form.Taps() * form.Depth();
  plan.workspaces.push_back({"arranged_w", Expr(filters * 2)});
  LaunchStep step;
  step.entry = "arrange";
  step.block[0] = kArrangeThreads;
  std::string blocks = std::to_string(CeilDiv(filters / kUnit, kArrangeThreads));
  if (!form.in_place) blocks += " + " + AddArrangedImage(plan, form, "arranged_x");
  step.grid[0] = Expr::MustParse(blocks);
  step.args = {ArgBinding::Tensor(form.x.name),
               form.in_place ? ArgBinding::Workspace("arranged_w") : ArgBinding::Workspace("arranged_x"),
               ArgBinding::Tensor(form.w.name),
               ArgBinding::Workspace("arranged_w"),
               ImagesOf(form),
               LargestOf(half)};
  plan.steps.push_back(step);
  if (half) return;
  step.entry = "arrange_again";
  step.args.push_back(ArgBinding::Scalar(DType::kInt32, step.grid[0]));
  step.grid[0] = Expr::MustParse(fmt::format("min({}, {})", blocks, kAgain));
  plan.steps.push_back(step);
}

std::vector<Dims> CheckImages(const KernelSpec& spec, const TensorConvForm& form, int64_t several) {
  const int64_t work = form.Results() * form.channels * form.Taps();
  if (form.images.constant() || work > kMostChecked) return {};
  return CheckSizes(spec, GraphOf(spec).value(), several, 20000000 / work);
}

SizeFreedom FreeImages(const KernelSpec& spec, const TensorConvForm& form) {
  if (spec.dims.size() != 1 || form.images.constant()) return {};
  const auto& [name, most] = *spec.dims.begin();
  return {{name}, {{Expr::MustParse(fmt::format("{} <= {}", name, most)), "pixels are numbered by 31 bits"}}};
}

ArgBinding ImagesOf(const TensorConvForm& form) {
  return ArgBinding::Scalar(DType::kInt32, Expr::MustParse(form.images.ToString()));
}
/// Of 16-bit types nobody asks.
ArgBinding LargestOf(bool half) { return ArgBinding::Workspace(half ? "arranged_w" : "largest"); }

}  // namespace atunner
