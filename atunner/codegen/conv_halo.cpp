#include "atunner/codegen/conv_halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/wgmma_text.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Rows of a warp's sums, which phases along the last axis must divide: lanes write them side by side.
constexpr int64_t kWarpRows = 16;
/// Of a group of four warps.
constexpr int64_t kRows = 64;
/// What keeps banks of the store's staging apart, in columns.
constexpr int64_t kStoreApart = 8;

/// Seen on an H200: cycles of a tensor core per ns, bytes per ns that a multiprocessor fetches and stores; ns between
/// tiles, and of a launch.
constexpr double kCycles = 1.4;
constexpr double kFetched = 48;
constexpr double kStored = 32;
constexpr double kTurnNs = 800;
constexpr double kLaunchNs = 4000;

/// Groups places so that the phases of one see the same elements, or pixels so that each place of the result is one of
/// x; false where rows would be left out.
bool Arrange(const graph::ConvAxis& axis, ArrangedAxis& to) {
  const int64_t inner = axis.inner;
  if (axis.dilation != 1 && (inner > 1 || axis.stride > 1)) return false;
  to.phases = inner;
  to.crop = ((axis.shift - 1) % inner + inner) % inner;
  to.low = -(axis.shift - to.crop + inner - 1) / inner;
  to.taps = CeilDiv(axis.taps, inner);
  to.places = (axis.out - 1 + to.crop) / inner + 1;
  to.split = axis.stride;
  if (axis.stride > 1) {
    to.padded = std::max(to.places + (to.taps - 1) / axis.stride, CeilDiv(axis.in + to.low, axis.stride));
    return to.low >= 0 && to.taps >= axis.stride;
  }
  // Where the last taps reach over the edge, the zeros before the next row follow.
  to.padded = std::max({to.places, axis.in + to.low, to.places + axis.dilation * (to.taps - 1) - to.low});
  return to.low >= 0;
}

/// Bytes of a row in shared memory that has so many of a place's channels, or some of them.
int64_t RowBytes(int64_t channels) { return channels > 32 ? 128 : 64; }
/// Channels with what fills the last row up.
int64_t InRows(int64_t channels) { return CeilDiv(channels * 2, RowBytes(channels)) * RowBytes(channels) / 2; }

/// Few filters leave rows of a tensor core empty: neighbouring pixels become one place, whose results are rows of
/// filters of their own, where that leaves less to multiply.
void Merge(TensorConvForm& form) {
  ArrangedAxis& last = form.arranged[2];
  if (form.groups > 1 || last.taps == 1 || last.phases > 1 || form.axes[2].dilation > 1 || form.Split() > 1) return;
  const auto depth = [&](int64_t merged) {
    return CeilDiv(last.taps + merged - 1, merged) * InRows(form.padded * merged);
  };
  while (form.Rows() * 2 <= kRows && last.phases < kWarpRows && depth(form.merged * 2) < depth(form.merged) * 2) {
    form.merged *= 2;
    last.phases *= 2;
  }
  last.split = form.merged;
  last.taps = CeilDiv(last.taps + form.merged - 1, form.merged);
  last.places = CeilDiv(last.places, form.merged);
  last.padded = CeilDiv(last.padded, form.merged);
}

class HaloConv : public BoundTemplate {
 public:
  HaloConv(const KernelSpec& spec, const DeviceProfile& profile, TensorConvForm form)
      : BoundTemplate(spec, profile), form_(std::move(form)), row_bytes_(Direct() ? 128 : RowBytes(form_.Depth())) {
    space_.parameters = {
        {"sets", Integers({1, 2}), "of groups of warps that take tiles in turns"},
        {"groups_m", Integers({1, 2}), "groups of four warps below each other, 64 filters each"},
        {"groups_p", Integers({1, 2}), "groups side by side, tile_n places each"},
        {"tile_n", Direct() ? Integers({64, 128, 192, 256}) : Integers({64, 96, 128, 160, 192, 224, 256}),
         "places per group"},
        {"reach", Integers({1, 2}), "axes whose taps share a stretch of rows"},
        {"x_stages", Integers({1, 2, 3, 4}), "stretches in shared memory"},
        {"w_stages", Integers({2, 3, 4, 6, 9}), "taps of filters in shared memory"},
    };
    Add("sets == 1 or groups_p == 1", "tiles side by side are one tile");
    Add("sets * groups_m * groups_p * (tile_n // 2 + 52) * 128 <= 61440", "registers");
    Add(fmt::format("groups_m == 1 or {} > 64", form_.Rows()), "more rows than there are");
    Add(fmt::format("{0} <= {1}", SharedBytes(), profile.shared_per_block), "shared memory");
    if (Chunks() * Taps(0) * Taps(1) > 1)
      Add(fmt::format("x_stages > 1 or {} == 1", Stretches()), "a stretch waits for the next");
    if (Taps(1) == 1) Add("reach == 1", "the same");
    shared_ = Expr::MustParse(SharedBytes());
    fetched_ = Expr::MustParse(fmt::format("{} * {}", Stretches(), StretchBytes()));
    units_ = Expr::MustParse(Units(form_.images.ToString()));
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants;
    if (!half_precision()) constants.Line("#include <cuda_fp16.h>\n\ntypedef float T;\n#define MMA_TYPE \"f16\"");
    constants.Line(half_precision() ? "typedef T Operand;" : "typedef __half Operand;");
    AddArrangement(constants, form_, half_precision());
    AddTiles(configuration, constants);
    LaunchPlan plan = Plan(configuration, {});
    AddArranging(plan, form_, half_precision());
    LaunchStep step;
    step.entry = "conv";
    step.grid[0] = Expr::MustParse(fmt::format("min({}, {})", Units(form_.images.ToString()), profile_.sms));
    step.block[0] = Expr::MustParse("sets * groups_m * groups_p * 128 + 32");
    step.shared_bytes = shared_;
    step.args = {MapOfX(), MapOfW(), ArgBinding::Tensor(form_.y.name), ImagesOf(form_), LargestOf(half_precision())};
    plan.steps.push_back(step);
    const std::string multiply = WgmmaText(
        {.name = "multiply", .columns = GetInt(space_, configuration, "tile_n"), .b_transposed = "DIRECT ? 1 : 0"});
    return RenderedKernel{Emit(configuration, constants,
                               {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh, multiply, embed::kTensorCopiesCuh,
                                embed::kConvScaleCuh, embed::kConvHaloCu, embed::kConvArrangeCu}),
                          std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto at = [&](const char* name) { return static_cast<double>(GetInt(space_, configuration, name)); };
    const double groups = at("groups_m") * at("groups_p");
    const auto taps = static_cast<double>(Chunks() * form_.Taps());
    const bool kept = at("w_stages") >= taps && at("groups_m") * 64 >= static_cast<double>(form_.groups * form_.Rows());
    const double bytes =
        Number(fetched_, configuration) + (kept ? 0 : taps * at("groups_m") * 64 * static_cast<double>(row_bytes_));
    const double stored = groups * 64 * at("tile_n") * static_cast<double>(SizeOf(element_)) / kStored + kTurnNs;
    const int64_t steps = row_bytes_ / 32;
    const double products = groups * taps * static_cast<double>(steps) * at("tile_n") / 2 / kCycles;
    const double ahead = 1 + 0.05 / at("x_stages") + 0.05 / at("w_stages");
    const double multiplied = std::max(products, bytes / kFetched) * ahead;
    const bool turns = at("sets") > 1;
    const double unit = turns ? std::max(multiplied, (multiplied + stored) / 2) + kTurnNs / 2 : multiplied + stored;
    const double rounds = std::ceil(Number(units_, configuration) / static_cast<double>(profile.sms));
    return rounds * unit + (turns ? multiplied + stored : 0) + kLaunchNs;
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t places = GetInt(space_, configuration, "tile_n") * GetInt(space_, configuration, "groups_p");
    return CheckImages(spec_, form_, places / form_.Places() + 2);
  }
  SizeFreedom FreeSizes(const Configuration&) const override { return FreeImages(spec_, form_); }

 private:
  double Number(const Expr& expression, const Configuration& configuration) const {
    Bindings bindings;
    const std::vector<std::string> names = space_.Names();
    bindings.Add(spec_.dims).Add(names, configuration.values);
    return static_cast<double>(expression.EvaluateInt(bindings).value());
  }
  bool Direct() const { return form_.in_place; }
  int64_t Depth() const { return row_bytes_ / 2; }
  /// Of sums that a warp stages at once.
  int64_t StoreColumns() const { return Direct() ? 64 : 32; }
  /// Elements that are side by side and aligned wherever a place's results begin; no more than lanes of a warp need to
  /// write one line at a time: writing several at once took up to twice as long on an H200.
  int64_t Piece() const {
    const ArrangedAxis& last = form_.arranged[2];
    const auto& y = form_.y;
    if (form_.axes[2].y != 1) return 1;
    const int64_t step = StepOf({last.padded * last.phases, form_.axes[2].out, last.crop, y.image, y.group, y.filter,
                                 form_.axes[0].y, form_.axes[1].y});
    return std::min({step, 16 / static_cast<int64_t>(SizeOf(element_)), StoreColumns() * last.phases / 32});
  }
  int64_t Chunks() const { return CeilDiv(form_.Depth(), Depth()); }
  int64_t Taps(size_t axis) const { return form_.arranged[axis].taps; }
  /// Pixels of a place that stretches of their own have.
  int64_t Split(size_t axis) const { return form_.merged > 1 ? 1 : form_.arranged[axis].split; }
  std::string Stretches() const {
    return fmt::format("{} * ({} if reach == 1 else {})", Chunks() * Taps(0) * Split(2), Taps(1), Split(1));
  }
  /// Boxes of a stretch, and rows of a box.
  std::string Boxes() const {
    return Direct() ? "(groups_p * tile_n // 64)" : fmt::format("ceil_div({}, 256)", Reached());
  }
  std::string BoxRows() const {
    return Direct() ? "64" : fmt::format("(ceil_div(ceil_div({}, {}), 8) * 8)", Reached(), Boxes());
  }
  std::string Reached() const {
    const auto& a = form_.axes;
    const int64_t along = (Taps(2) - 1) / Split(2) * a[2].dilation;
    return fmt::format("(groups_p * tile_n + {} + (0 if reach == 1 else {}))", along,
                       (Taps(1) - 1) / Split(1) * a[1].dilation * form_.arranged[2].padded);
  }
  std::string StretchBytes() const {
    return fmt::format("(ceil_div({} * {} * {}, 1024) * 1024)", Boxes(), BoxRows(), row_bytes_);
  }
  std::string SharedBytes() const {
    return fmt::format(
        "(x_stages * {} + w_stages * groups_m * {} + sets * groups_m * groups_p * {} + (x_stages + w_stages) * 16)",
        StretchBytes(), 64 * row_bytes_,
        4 * kWarpRows * (StoreColumns() + kStoreApart) * static_cast<int64_t>(SizeOf(element_)));
  }
  std::string Units(const std::string& images) const {
    const std::string whole = fmt::format("({}) * ", images);
    const std::string tiles = fmt::format("{}ceil_div({}{}, groups_p * tile_n)", Direct() ? whole : "",
                                          Direct() ? "" : whole, form_.Places());
    return fmt::format("{} * ceil_div({}, groups_m * 64) * {}", tiles, form_.Rows(), form_.groups);
  }

  void AddTiles(const Configuration& configuration, ConstantBlock& constants) const {
    for (size_t i = 0; i < form_.arranged.size(); ++i) {
      constants.Line(fmt::format("constexpr int PLACES_{0} = {1}, CROP_{0} = {2};", "DHW"[i], form_.arranged[i].places,
                                 form_.arranged[i].crop));
    }
    constants.Bool("DIRECT", Direct()).Int("ROW_BYTES", row_bytes_).Int("STORE_N", StoreColumns());
    constants.Int("Y_PIECE", Piece(), "elements of the result that are written at once");
    constants.Int("SHARED", static_cast<int64_t>(Number(shared_, configuration)), "bytes");
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"SETS", "sets"},   {"GROUPS_M", "groups_m"}, {"GROUPS_P", "groups_p"}, {"TILE_N", "tile_n"},
        {"REACH", "reach"}, {"X_STAGES", "x_stages"}, {"W_STAGES", "w_stages"}};
    for (const auto& [name, parameter] : kNames) constants.Int(name, GetInt(space_, configuration, parameter));
  }
  ArgBinding MapOfX() const {
    const Expr images =
        Expr::MustParse(fmt::format("({}) * {}", form_.images.ToString(), Direct() ? form_.groups : form_.Places()));
    const DType dtype = half_precision() ? element_ : DType::kFloat16;
    if (!Direct()) {
      return ArgBinding::WorkspaceMap(
          "arranged_x", dtype,
          {.dims = {Expr(form_.Depth()), Expr(form_.groups * form_.Split() / form_.merged), images},
           .strides = {Expr(form_.Depth()), Expr(form_.Channels() * form_.Split())},
           .box = {Expr(Depth()), Expr(1), Expr::MustParse(BoxRows())},
           .swizzle_bytes = Expr(row_bytes_)});
    }
    return ArgBinding::Map(form_.x.name, dtype,
                           {.dims = {Expr(form_.Inputs()), Expr(form_.channels), images},
                            .strides = {Expr(form_.Inputs()), Expr(form_.channels * form_.Inputs())},
                            .box = {Expr(64), Expr(Depth()), Expr(1)},
                            .swizzle_bytes = Expr(row_bytes_)});
  }
  ArgBinding MapOfW() const {
    return ArgBinding::WorkspaceMap(
        "arranged_w", half_precision() ? element_ : DType::kFloat16,
        {.dims = {Expr(form_.Depth()), Expr(form_.Taps()), Expr(form_.groups * form_.Rows())},
         .strides = {Expr(form_.Depth()), Expr(form_.Taps() * form_.Depth())},
         .box = {Expr(Depth()), Expr(1), Expr::MustParse("groups_m * 64")},
         .swizzle_bytes = Expr(row_bytes_)});
  }

  TensorConvForm form_;
  int64_t row_bytes_;
  Expr shared_, fetched_, units_;  ///< bytes of a block and of a tile's stretches; tiles
};

/// Without taps or steps an image is one row of pixels, whose pieces cross no edge.
void Flatten(TensorConvForm& form) {
  const auto plain = [](const graph::ConvAxis& axis) {
    return axis.taps == 1 && axis.stride == 1 && axis.inner == 1 && axis.shift == 0 && axis.in == axis.out;
  };
  if (!std::ranges::all_of(form.axes, plain) || !Dense(form, true, 1) || !Dense(form, false, 1)) return;
  const int64_t pixels = form.Inputs();
  form.axes = {graph::ConvAxis{}, graph::ConvAxis{}, graph::ConvAxis{.in = pixels, .out = pixels, .x = 1, .y = 1}};
}

/// The form as rows of a padded image, or, where each phase has one tap, of the image as it lies; nullopt where that
/// would leave rows out or multiply much for nothing.
std::optional<TensorConvForm> HaloFormOf(const KernelSpec& spec, const DeviceProfile& profile) {
  auto form = TensorConvFormOf(spec);
  if (!form || profile.cc_major != 9 || form->pixels_first || form->last || IsFilterGradient(*form))
    return std::nullopt;
  Flatten(*form);
  for (size_t i = 0; i < form->axes.size(); ++i) {
    if (!Arrange(form->axes[i], form->arranged[i])) return std::nullopt;
  }
  if (form->Split() > 1 && 2 * InRows(form->padded) > 3 * form->padded) return std::nullopt;
  Merge(*form);
  const int64_t places = form->images.Bound(spec.dims).factor() * form->Places();
  if (places > INT32_MAX / 2 || kWarpRows % form->arranged[2].phases != 0) return std::nullopt;
  const bool dense = form->x.channel == form->Inputs() &&
                     (form->groups == 1 || form->x.group == form->channels * form->Inputs()) &&
                     (form->images.one() || form->x.image == form->groups * form->channels * form->Inputs());
  form->in_place = form->Taps() == 1 && form->Places() == form->Inputs() && dense && form->Inputs() % 8 == 0 &&
                   SizeOf(spec.compute_dtype) == 2;
  return form;
}

}  // namespace

std::unique_ptr<ScheduleTemplate> MakeHaloConv(const KernelSpec& spec, const DeviceProfile& profile) {
  auto form = HaloFormOf(spec, profile);
  if (!form) return nullptr;
  auto made = std::make_unique<HaloConv>(spec, profile, *std::move(form));
  return made->Default().values.empty() ? nullptr : std::move(made);
}

}  // namespace atunner
