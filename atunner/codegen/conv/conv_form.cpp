#include "atunner/codegen/conv/conv_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/operators/library_task.h"
#include "atunner/operators/operator.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::ConvAxis;

/// Channels times filters of a group: below that, tensor cores multiply little but zeros.
constexpr int64_t kLeastProducts = 16;
constexpr int64_t kArrangeThreads = 256;
/// Largest number of products of a size that is checked: the virtual GPU executes it too, which
/// takes time.
constexpr int64_t kMostChecked = 1'000'000'000;
constexpr int64_t kSoonChecked = 20'000'000;
/// Channels up to which small groups are merged: the depth of a buffer.
constexpr int64_t kTogether = 64;
/// Blocks that look for the largest elements (conv_scale.cuh), and that arrange again what did not
/// fit.
constexpr int64_t kSampling = 256 + 32;
constexpr int64_t kAgain = 264;

void AddSampling(LaunchPlan& plan, const TensorConvForm& form) {
  plan.workspaces.push_back({"largest", Expr((kSampling + 2) * 4)});
  const int64_t each = form.groups * form.channels * form.Inputs();
  const int64_t filters = form.groups * form.filters * form.own_channels * form.ConvForm::Taps();
  plan.steps.push_back(Step("sample", std::to_string(kSampling), 512,
                            {form.x.name, form.w.name, "@largest",
                             fmt::format("i64:({}) * {}", form.images.ToString(), each),
                             fmt::format("i64:{}", filters)}));
}

/// conv2d is the library's convolution with its channels last.
KernelSpec WithChannelsLast(const KernelSpec& spec) {
  OperatorRequest request{
      {ExtentsOf(spec, "x"), ExtentsOf(spec, "w")}, spec.compute_dtype, {{"channels_last", true}}};
  for (const char* each : {"stride", "padding", "dilation"})
    request.attributes[each] = spec.attributes.at(each);
  return FindOperator("conv")->Instantiate(request).value();
}

/// True if filters are stored as they are multiplied: [filter][tap][channel].
bool FiltersHaveLayout(const TensorConvForm& form) {
  if (form.scaled || form.padded != form.own_channels || form.merged > 1 || form.RowPhases() > 1 ||
      form.w.base != 0)
    return false;
  int64_t step = form.padded;
  for (size_t i = form.axes.size(); i-- > 0; step *= form.axes[i].taps) {
    if (form.axes[i].taps > 1 && form.axes[i].w != step) return false;
  }
  return (form.padded == 1 || form.w.channel == 1) &&
         (form.filters == 1 || form.w.filter == step) &&
         (form.groups == 1 || form.w.group == step * form.filters);
}

/// True if the stores finish the sums: pixels are rows and filters columns of the result, or, with
/// channels first, the other way round.
bool IsFinished(const KernelSpec& spec, const graph::ConvForm& form) {
  const bool dense = form.images.one() || form.y.image == form.filters * form.Outputs();
  if (form.groups > 1 || !dense || IsFilterGradient(form)) return false;
  const bool last = form.Phases() == 1 && form.y.filter == 1 && Dense(form, false, form.filters);
  const bool first = form.y.filter == form.Outputs() && Dense(form, false, 1);
  return first || (last && SizeOf(spec.compute_dtype) != 4);
}

}  // namespace

void MergeGroups(TensorConvForm& form) {
  const bool even = form.x.group == form.channels * form.x.channel &&
                    form.y.group == form.filters * form.y.filter;
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

int64_t StepOf(std::initializer_list<int64_t> multiples) {
  int64_t step = 8;
  for (int64_t each : multiples) {
    while (each % step != 0) step /= 2;
  }
  return step;
}

bool HasLayout(const TensorConvForm& form, int64_t pixel, int64_t channel) {
  return Dense(form, true, pixel) && (form.channels == 1 || form.x.channel == channel) &&
         (form.groups == 1 || form.x.group == form.channels * channel) &&
         (form.images.one() || form.x.image == form.groups * form.channels * form.Inputs());
}

std::optional<graph::ConvForm> ReadConv(const Task& task) {
  const KernelSpec& spec = task.spec();
  if (IsOperator(spec, "conv2d")) {
    auto read = ReadConv(Task::Of(WithChannelsLast(spec)));
    if (read) read->images = graph::Extent::Symbol("N");
    return read;
  }
  if (task.graph() == nullptr) return std::nullopt;
  auto read = graph::ConvFormOf(*task.fused());
  // Images that are summed are as many as the task has.
  if (!read)
    read = graph::ConvFormOf(graph::FuseMaps(graph::Specialise(*task.graph(), spec.dims).value()));
  const auto fits = [&](const std::string& name) {
    return spec.FindArg(name)->dtype == spec.compute_dtype;
  };
  if (!read || !fits(read->x.name) || !fits(read->w.name) || !fits(read->y.name))
    return std::nullopt;
  return read->epilogue < 0 || IsFinished(spec, *read) ? read : std::nullopt;
}

bool IsInTf32ByCudnn(const graph::ConvForm& form) {
  constexpr int64_t kLeastChannels = 16, kMostTapsOfStrides = 4;
  const auto strided = [](const ConvAxis& axis) {
    return axis.inner > 1 && axis.taps > kMostTapsOfStrides;
  };
  const bool transposed = form.Phases() > 1;
  return form.groups == 1 && (transposed || form.channels >= kLeastChannels) &&
         std::ranges::none_of(form.axes, strided);
}

std::optional<TensorConvForm> TensorConvFormOf(const Task& task) {
  const KernelSpec& spec = task.spec();
  const bool single = spec.compute_dtype == DType::kFloat32;
  if (!single && SizeOf(spec.compute_dtype) != 2) return std::nullopt;
  const auto read = ReadConv(task);
  if (!read) return std::nullopt;
  const int64_t channels = IsFilterGradient(*read) ? read->images.factor() : read->channels;
  const bool graph = spec.oracle.kind == Oracle::Kind::kGraph;
  if (graph && channels * read->filters < kLeastProducts) return std::nullopt;
  TensorConvForm form{*read, read->channels, read->filters};
  if (task.fused()) form.graph = *task.fused();
  form.scaled = single && graph && AccuracyOf(spec) == Accuracy::kFast;
  form.operands = form.scaled ? DType::kFloat16 : spec.compute_dtype;
  if (form.Unit() == 8) MergeGroups(form);
  form.padded = CeilDiv(form.channels, form.Unit()) * form.Unit();
  form.last = HasChannelsLast(form);
  form.in_place = form.last && form.channels == form.padded && !form.scaled;
  if (!form.last && !Dense(form, true, 1)) return std::nullopt;
  form.pixels_first = form.y.filter == 1 && form.filters > 1;
  for (size_t i = 0; i < form.axes.size(); ++i)
    form.arranged[i] = {.taps = form.axes[i].taps, .padded = form.axes[i].in};
  form.filters_in_place = FiltersHaveLayout(form);
  const int64_t images = form.images.Bound(spec.dims).factor();
  const int64_t most = INT32_MAX / 2;
  const bool counted = images * form.Rounded() < most && form.groups * form.Phases() < 65536 &&
                       images * form.Inputs() * form.groups * (form.padded / form.Unit()) < most &&
                       form.Taps() * form.padded < most;
  return counted ? std::optional(form) : std::nullopt;
}

std::optional<TensorConvForm> SplitFloatForm(const TensorConvForm& form, int64_t parts) {
  const bool single = form.operands == DType::kFloat32 || form.scaled;
  if (!single || !form.graph || form.groups > 1) return std::nullopt;
  TensorConvForm split = form;
  split.scaled = true;
  split.parts = parts;
  split.operands = DType::kFloat16;
  split.padded = CeilDiv(split.parts * split.channels, split.Unit()) * split.Unit();
  split.in_place = split.filters_in_place = false;
  return split;
}

void AddArrangement(ConstantBlock& constants, const TensorConvForm& form) {
  constants.Int("GROUPS", form.groups)
      .Int("CHANNELS", form.channels, "of a group")
      .Int("C", form.padded)
      .Int("FLOAT_PARTS", form.parts, "products of parts of an element")
      .Int("STORED", form.Stored(), "channels of an arranged pixel, of a group")
      .Int("MERGED", form.merged, "pixels that are multiplied as one")
      .Int("PAIR", form.pair, "rows that are multiplied as one");
  constants.Int("FILTERS", form.Rows(), "of a group").Bool("PIXELS_FIRST", form.pixels_first);
  constants.Int("OWN_CHANNELS", form.own_channels, "input channels that a filter sees")
      .Int("OWN_FILTERS", form.own_filters);
  for (size_t i = 0; i < form.axes.size(); ++i) {
    const ConvAxis& a = form.axes[i];
    const ArrangedAxis& b = form.arranged[i];
    constants.Line(
        fmt::format("constexpr int IN_{0} = {1}, OUT_{0} = {2}, FILTER_{0} = {3}, DILATION_{0} = "
                    "{4}, TAPS_{0} = {5}, PHASES_{0} = "
                    "{6}, PADDED_{0} = {7}, LOW_{0} = {8}, SPLIT_{0} = {9}, STRIDE_{0} = {12}, "
                    "SHIFT_{0} = {13}, INNER_{0} = {14};"
                    "\nconstexpr long long Y_{0} = {10}, W_{0} = {11};",
                    "DHW"[i], a.in, a.out, a.taps, a.dilation, b.taps, b.phases, b.padded, b.low,
                    b.split, a.y, a.w, a.stride, a.shift, a.inner));
  }
  const auto& [x, y, w] = std::tie(form.x, form.y, form.w);
  constants.Line(fmt::format(
      "constexpr long long Y_IMAGE = {}, Y_GROUP = {}, Y_FILTER = {}, Y_ELEMENTS = {};\n"
      "constexpr long long X_FROM_IMAGE = {}, X_FROM_GROUP = {}, X_FROM_CHANNEL = {}, X_FROM_PIXEL "
      "= {};\n"
      "constexpr long long W_BASE = {}, W_GROUP = {}, W_FILTER = {}, W_CHANNEL = {};",
      y.image, y.group, y.filter, form.Results(), x.image, x.group, x.channel,
      form.last ? form.groups * form.channels : 1, w.base, w.group, w.filter, w.channel));
  constants.Bool("ARRANGE_X", !form.in_place).Bool("X_LAST", form.last, "x has its channels last");
  const int64_t step = form.last ? 1 : StepOf({form.Inputs(), x.image, x.group, x.channel});
  const bool single = form.scaled || form.operands == DType::kFloat32;
  constants.Int("X_STEP", std::min<int64_t>(step, single ? 4 : 8),
                "elements of x that are read at once");
  constants.Define("SCALED", form.scaled ? 1 : 0);
}

std::string AddArrangedImage(LaunchPlan& plan, const TensorConvForm& form, const char* workspace) {
  const std::string images = form.images.ToString();
  const int64_t total = form.Channels();
  const int64_t lines = std::min<int64_t>(total, 64);
  const int64_t space = lines > 16 ? 128 : lines > 8 ? 256 : 512;
  const int64_t bytes = form.Cells() * total * BytesOf(form.operands);
  plan.workspaces.push_back({workspace, Expr::MustParse(fmt::format("({}) * {}", images, bytes))});
  std::string blocks = fmt::format("({}) * {}", images,
                                   CeilDiv(form.Inputs(), space) * CeilDiv(total, lines));
  if (form.Cells() > form.Inputs())
    blocks += fmt::format(" + ceil_div(({}) * {}, {})", images, form.Cells(), kArrangeThreads);
  return blocks;
}

void AddArranging(LaunchPlan& plan, const TensorConvForm& form) {
  if (form.in_place && form.filters_in_place) return;
  if (form.scaled) AddSampling(plan, form);
  std::string blocks = form.in_place ? "0" : AddArrangedImage(plan, form, "arranged_x");
  if (!form.filters_in_place) {
    const int64_t filters = form.groups * form.Rows() * form.Taps() * form.Depth();
    plan.workspaces.push_back({"arranged_w", Expr(filters * BytesOf(form.operands))});
    blocks += fmt::format(" + {}", CeilDiv(filters / form.Unit(), kArrangeThreads));
  }
  LaunchStep step = Step("arrange", blocks, kArrangeThreads,
                         {form.x.name, form.MultipliedX(), form.w.name, form.MultipliedW(),
                          form.CountedImages(), form.Largest()});
  plan.steps.push_back(step);
  if (!form.scaled) return;
  step.entry = "arrange_again";
  step.args.push_back(ArgBinding::Scalar(DType::kInt32, step.grid[0]));
  step.grid[0] = Expr::MustParse(fmt::format("min({}, {})", blocks, kAgain));
  plan.steps.push_back(step);
}

graph::EpilogueText EpilogueOf(const KernelSpec& spec, const TensorConvForm& form) {
  if (form.epilogue < 0) return {.text = std::string(embed::kPlainEpilogueCuh)};
  const graph::ValidGraph& graph = form.graph.value();
  const graph::Node& product = graph.node(form.product);
  const std::string letters = graph::ParsedEquation(product.As<graph::Contract>()->equation).result;
  const graph::ProductForm matrix{
      .product = form.product,
      .axes = {.m = letters.substr(0, letters.size() - 1), .n = letters.substr(letters.size() - 1)},
      .letters = letters,
      .shape = product.type.shape};
  const std::string_view narrow = NarrowText(spec, graph);
  if (form.pixels_first) return graph::TextOfEpilogue(graph, matrix, -1, form.epilogue, narrow);
  auto turned = graph::TextOfEpilogue(graph, matrix, -1, form.epilogue, narrow, "PixelEpilogue");
  turned.text += embed::kConvTurnedEpilogueCuh;
  return turned;
}

double ArrangingNs(const KernelSpec& spec, const TensorConvForm& form, const CostConstants& costs) {
  if (form.in_place) return form.filters_in_place ? 0 : costs.conv_arrange_ns;
  const int64_t read = form.groups * form.channels * form.Inputs() * BytesOf(spec.compute_dtype);
  const int64_t written = form.Cells() * form.Channels() * BytesOf(form.operands);
  return costs.conv_arrange_ns +
         Real(form.images.Bound(spec.dims).factor() * (read + written)) / costs.conv_arranged;
}

std::vector<Dims> CheckImages(const KernelSpec& spec, const TensorConvForm& form, int64_t several) {
  const int64_t work = form.Results() * form.channels * form.Taps();
  if (form.images.constant() || work > kMostChecked) return {};
  const std::string& name = form.images.symbols()[0];
  const int64_t least = form.graph ? form.graph->symbols().at(name).low : 1;
  std::vector<Dims> sizes(1, spec.dims);
  sizes[0][name] = least;
  const int64_t few = std::min(
      {several, std::max<int64_t>(1, kSoonChecked / work), spec.dims.at(name)});
  if (few > least) sizes.push_back(spec.dims), sizes[1][name] = few;
  return sizes;
}

ValidSizes FreeImages(const TensorConvForm& form) {
  if (form.images.constant()) return {};
  const int64_t counted = std::max({form.Rounded(), form.ImagePositions() * form.pair, form.Cells(),
                                    form.Inputs() * form.groups * (form.padded / form.Unit())});
  const std::string& name = form.images.symbols()[0];
  return {{name},
          {{Expr::MustParse(
                fmt::format("({}) * {} <= {}", form.images.ToString(), counted, INT32_MAX / 2)),
            "pixels are numbered by 31 bits"}}};
}

}  // namespace atunner
