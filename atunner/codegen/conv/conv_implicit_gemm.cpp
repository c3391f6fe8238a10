// Implicit GEMM for convolutions on Hopper: chooses the arrangement of images (native layout or
// arranged rows), phases, merged pixels and tiles. kernels/families/conv/conv_implicit_gemm.cu
// explains the algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "atunner/codegen/conv/conv_form.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Rows of a warp's sums. The number of phases along the last axis must divide it, because lanes
/// write the phases side by side.
constexpr int64_t kWarpRows = 16;
/// Rows of a warpgroup's sums.
constexpr int64_t kRows = 64;
/// Columns between rows of the store's staging buffer that avoid bank conflicts.
constexpr int64_t kStoreApart = 8;

/// Products that tensor cores add before their sums move to registers.
constexpr int64_t kPromotedProducts = 256;
/// The cost of a copy, in positions.
constexpr double kCopyPositions = 4;
/// The largest shift of a tap's sums: lanes get them from a neighbour.
constexpr int64_t kMostShifted = 6;

/// Arranges an axis: into phases whose results read the same elements, or into positions with one
/// pixel for each tap within a stride; false where rows would be left out.
bool Arrange(const graph::ConvAxis& axis, ArrangedAxis& to) {
  const int64_t inner = axis.inner;
  if (inner > 1 ? axis.dilation > 1 : std::gcd(axis.stride, axis.dilation) > 1) return false;
  to.phases = inner;
  to.crop = ((axis.shift - 1) % inner + inner) % inner;
  to.low = -(axis.shift - to.crop + inner - 1) / inner;
  to.taps = CeilDiv(axis.taps, inner);
  to.positions = (axis.out - 1 + to.crop) / inner + 1;
  to.split = axis.stride;
  if (axis.stride > 1) {
    to.padded = std::max(to.positions + axis.dilation * (to.taps - 1) / axis.stride,
                         CeilDiv(axis.in + to.low, axis.stride));
    return to.low >= 0 && to.taps >= axis.stride;
  }
  // The last taps may read the zeros in front of the next row.
  to.padded = std::max(
      {to.positions, axis.in + to.low, to.positions + axis.dilation * (to.taps - 1) - to.low});
  return to.low >= 0;
}

/// Bytes of a row of shared memory for this number of channels of a position, or for some of them.
int64_t RowBytes(int64_t channels) { return channels > 32 ? 128 : 64; }
/// Channels rounded up to whole rows.
int64_t InRows(int64_t channels) {
  return CeilDiv(channels * 2, RowBytes(channels)) * RowBytes(channels) / 2;
}

/// Few filters leave rows of a tensor core empty: neighbouring pixels are merged into one position,
/// whose results become rows of filters of their own, if that saves products.
void Merge(TensorConvForm& form) {
  ArrangedAxis& last = form.arranged[2];
  if (form.groups > 1 || last.taps == 1 || last.phases > 1 || form.axes[2].dilation > 1 ||
      form.Split() > 1)
    return;
  const auto depth = [&](int64_t merged) {
    return CeilDiv(last.taps + merged - 1, merged) * InRows(form.padded * merged);
  };
  while (form.Rows() * 2 <= kRows && last.phases < kWarpRows &&
         depth(form.merged * 2) < depth(form.merged) * 2) {
    form.merged *= 2;
    last.phases *= 2;
  }
  last.split = form.merged;
  last.taps = CeilDiv(last.taps + form.merged - 1, form.merged);
  last.positions = CeilDiv(last.positions, form.merged);
  last.padded = CeilDiv(last.padded, form.merged);
}

class ImplicitGemmConv : public BoundTemplate {
 public:
  ImplicitGemmConv(const KernelSpec& spec, const DeviceProfile& profile, TensorConvForm form)
      : BoundTemplate(spec, profile),
        form_(std::move(form)),
        epilogue_(EpilogueOf(spec, form_)),
        row_bytes_(RowBytes(form_.Depth())),
        functions_(FunctionsOf(form_)) {
    space_.parameters = {
        {"sets", Integers({1, 2}), "sets of warpgroups that alternate between tiles"},
        {"groups_m", Integers({1, 2}), "warpgroups along filters, 64 filters each"},
        {"groups_p", Integers({1, 2}), "warpgroups along pixels, tile_n pixels each"},
        {"tile_n", Direct() ? Tiles() : Integers({64, 96, 128, 160, 192, 224, 256}),
         "pixels of a warpgroup"},
        {"reach", Integers({1, 2}), "axes whose taps share a row segment"},
        {"x_stages", Integers({1, 2, 3, 4}), "row segments in shared memory"},
        {"w_stages", Shifted() ? Integers({2, 3, 4, 6, 9, 12}) : Integers({2, 3, 4, 6, 9}),
         "taps of filters in shared memory (sets of taps where each has its own sums)"},
    };
    Add("sets == 1 or groups_p == 1 or (groups_m == 1 and tile_n <= 64)",
        "tiles side by side are one tile, but for many warps that store");
    const std::string each = fmt::format(
        "(tile_n // 2 * {} + {})", form_.shifts + (form_.parts == 3 ? 1 : 0), Shifted() ? 48 : 52);
    Add(fmt::format("sets * groups_m * groups_p * {0} * 128 <= 61440 and {0} <= 240", each),
        "registers");
    if (Size() == 4 && (functions_ > 0 || epilogue_.arguments.size() > 1))
      Add("sets * groups_m * groups_p < 4 or tile_n <= 64",
          "96 registers, of which epilogues have many");
    Add(fmt::format("groups_m == 1 or {} > 64", form_.Rows()), "more rows than there are");
    AddShared(SharedBytes());
    if (Chunks() * form_.Taps() > 1)
      Add(fmt::format("x_stages > 1 or {} == 1", Segments()), "a segment waits for the next");
    if (Taps(1) == 1) Add("reach == 1", "the same");
    if (form_.pair > 1) Add("reach == 2", "rows of a position are in one segment");
    shared_ = Expr::MustParse(SharedBytes());
    fetched_ = Expr::MustParse(fmt::format("{} * {}", Segments(), SegmentBytes()));
    units_ = Expr::MustParse(Units());
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    if (!half_precision())
      constants.Line("#include <cuda_fp16.h>\n\ntypedef float T;\n#define MMA_TYPE \"f16\"");
    constants.Line(half_precision() ? "typedef T Operand;" : "typedef __half Operand;");
    constants.Line(form_.epilogue < 0 ? "typedef T Staged;" : "typedef float Staged;");
    AddArrangement(constants, form_);
    AddTiles(at, constants);
    LaunchPlan plan = Plan(at, {});
    AddArranging(plan, form_);
    LaunchStep step = Step(
        "conv", fmt::format("min({}, {})", Units(), profile_.sms), Expr::MustParse(Threads()),
        {MapOfX(), MapOfW(), form_.y.name, form_.CountedImages(), form_.Largest()});
    step.shared_bytes = shared_;
    AddArguments(step, {epilogue_.arguments.begin(), epilogue_.arguments.end()});
    plan.steps.push_back(step);
    const std::string multiply = WgmmaText(
        {.columns = at["tile_n"], .b_transposed = "ACROSS ? 1 : 0"});
    return RenderedKernel{
        Emit(at, constants,
             {embed::kMmaCommonCuh, embed::kWgmmaCommonCuh,
              "constexpr bool ACROSS = DIRECT && !X_LAST;", multiply, embed::kTensorCopiesCuh,
              embed::kConvScaleCuh, epilogue_.text, embed::kConvImplicitGemmCu,
              form_.in_place && form_.filters_in_place ? std::string_view()
                                                       : embed::kConvArrangeCu}),
        std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const auto at = [&](const char* name) { return Real(chosen(configuration)[name]); };
    const CostConstants& costs = CostsOf(profile);
    const double groups = at("groups_m") * at("groups_p");
    const double taps = Real(Chunks() * form_.Taps());
    const bool kept = at("w_stages") * Real(form_.shifts) >= taps &&
                      at("groups_m") * 64 >= Real(form_.groups * form_.Rows());
    const double bytes = Real(Evaluate(fetched_, configuration)) +
                         (kept ? 0 : taps * at("groups_m") * 64 * Real(row_bytes_));
    const double elements = groups * 64 * at("tile_n");
    const double stored = elements * Real(Size()) / costs.conv_stored +
                          IdleNs(elements, at("sets"), groups, costs) + costs.conv_turn_ns;
    const double products = groups * taps * Real(Steps()) * at("tile_n") / 2 / costs.conv_cycles;
    const double waited = Shifted() ? costs.conv_waited / std::pow(at("w_stages") - 1, 2)
                                    : costs.conv_filter_stage / at("w_stages");
    const double multiplied = std::max(products, bytes / (Shifted() ? costs.conv_rows_fetched
                                                                    : costs.conv_fetched)) *
                              (1 + costs.conv_image_stage / at("x_stages") + waited);
    const bool turns = at("sets") > 1;
    const double together = std::max(multiplied, (multiplied + stored) / 2) +
                            (Shifted() ? 0 : costs.conv_turn_ns / 2);
    const double rounds = std::ceil(Real(Evaluate(units_, configuration)) / Real(profile.sms));
    const double last = Shifted() ? stored : multiplied + stored;
    return turns ? rounds * together + last + costs.conv_launch_ns
                 : rounds * (multiplied + stored) + costs.conv_launch_ns;
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen values = chosen(configuration);
    return CheckImages(spec_, form_, values["tile_n"] * values["groups_p"] / form_.Positions() + 2);
  }
  ValidSizes FreeSizes(const Configuration&) const override { return FreeImages(form_); }
  /// ns of the default configuration with all its steps.
  double TotalNs() const {
    return Cost(Default(), profile_).value() + ArrangingNs(spec_, form_, CostsOf(profile_));
  }

 private:
  int64_t Size() const { return BytesOf(element_); }
  /// Time in which nothing is issued while a set of warps stores, one float32 after the other: one
  /// warp of a scheduler hides few latencies.
  double IdleNs(double elements, double sets, double groups, const CostConstants& costs) const {
    if (Size() < 4) return 0;
    const double issued = std::min(1.0, costs.conv_store_issue * sets * groups);
    const double functions = costs.conv_store_function * static_cast<double>(functions_);
    return elements / 32 * (costs.conv_store_instructions + functions) * sets /
           (4 * costs.conv_cycles) * (1 / issued - 1);
  }
  /// Functions such as exp that the epilogue computes for an element.
  static int64_t FunctionsOf(const TensorConvForm& form) {
    if (form.epilogue < 0) return 0;
    const auto* map = form.graph->node(form.epilogue).As<graph::Map>();
    return map == nullptr ? 0 : std::ranges::count_if(map->body.nodes(), [](const auto& node) {
      return graph::IsTableOp(node.op) && graph::InfoOf(node.op).rule == graph::ScalarRule::kReal;
    });
  }
  bool Direct() const { return form_.panel > 0; }
  int64_t Depth() const { return row_bytes_ / 2; }
  bool Shifted() const { return form_.shifts > 1; }
  /// Where sums take many registers, the fetching warp is a warpgroup that gives its registers to
  /// two others.
  std::string Threads() const {
    const std::string groups = "sets * groups_m * groups_p";
    return Shifted() ? fmt::format("{0} * 128 + (128 if {0} == 2 else 32)", groups)
                     : groups + " * 128 + 32";
  }
  /// Positions from one row to the next.
  int64_t Line() const { return Shifted() ? form_.arranged[2].padded : Panel(); }
  int64_t Panel() const { return Direct() ? form_.panel : form_.arranged[2].padded; }
  /// Columns of sums that a warp stages at once.
  int64_t StoreColumns() const { return !Direct() ? 32 : 64 % Panel() == 0 ? 64 : Panel(); }
  /// Tile sizes of whole panels.
  std::vector<Value> Tiles() const {
    std::vector<Value> tiles;
    const int64_t step = std::max(StoreColumns(), Shifted() ? Line() : 0);
    for (int64_t positions = step; positions <= (form_.pair > 1 ? step : 256); positions += step)
      tiles.emplace_back(positions);
    return tiles;
  }
  int64_t StagedElements() const {
    return form_.pixels_first ? StoreColumns() * (kWarpRows + kStoreApart)
                              : kWarpRows * (StoreColumns() + kStoreApart);
  }
  /// Elements that are contiguous and aligned wherever a position's results begin; no more than
  /// lanes of a warp need to write one line at a time: writing several lines at once took up to
  /// twice as long on an H200.
  int64_t Piece() const {
    const ArrangedAxis& last = form_.arranged[2];
    const auto& y = form_.y;
    if (form_.pixels_first)
      return std::min(StepOf({form_.filters, y.image, y.group, form_.axes[0].y, form_.axes[1].y,
                              form_.axes[2].y}),
                      16 / Size());
    if (form_.axes[2].y != 1) return 1;
    const int64_t stride = Shifted() ? form_.axes[2].stride : 1;
    const int64_t step = StepOf({Line() / stride * last.phases, form_.axes[2].out, last.crop,
                                 y.image, y.group, y.filter, form_.axes[0].y, form_.axes[1].y});
    return std::min({step, 16 / Size(), StoreColumns() / stride * last.phases / 32});
  }
  /// Products of 16 channels for each tap of a chunk.
  int64_t Steps() const { return CeilDiv(std::min(form_.Depth(), Depth()), 16); }
  int64_t Chunks() const { return CeilDiv(form_.Depth(), Depth()); }
  int64_t Taps(size_t axis) const { return form_.arranged[axis].taps; }
  /// Segments of a row of taps: one for each pixel of a position, or for each tap.
  int64_t Split(size_t axis) const {
    if (Direct() && axis == 2 && !Shifted()) return Taps(2);
    return form_.merged > 1 ? 1 : form_.arranged[axis].split;
  }
  std::string Segments() const {
    return fmt::format("{} * ({} if reach == 1 else {})", Chunks() * Taps(0) * Split(2), Taps(1),
                       Split(1));
  }
  /// Copies of a segment, and rows of a copy.
  std::string Boxes() const {
    return Direct() ? fmt::format("({} // {})", Reached(), Panel())
                    : fmt::format("ceil_div({}, 256)", Reached());
  }
  std::string BoxRows() const {
    return Direct() ? std::to_string(Panel())
                    : fmt::format("(ceil_div(ceil_div({}, {}), 8) * 8)", Reached(), Boxes());
  }
  std::string Reached() const {
    const auto& a = form_.axes;
    const int64_t along = Shifted() ? 0 : (Taps(2) - 1) / Split(2) * a[2].dilation;
    return fmt::format("(groups_p * tile_n * {} + {} + (0 if reach == 1 else {}))", form_.pair,
                       along, (Taps(1) - form_.pair) / Split(1) * a[1].dilation * Line());
  }
  std::string SegmentBytes() const {
    return fmt::format("(ceil_div({} * {} * {}, 1024) * 1024)", Boxes(), BoxRows(), row_bytes_);
  }
  std::string SharedBytes() const {
    return fmt::format(
        "(x_stages * {} + w_stages * groups_m * {} + sets * groups_m * groups_p * {} + (x_stages + "
        "w_stages) * 16)",
        SegmentBytes(), 64 * row_bytes_ * form_.shifts,
        4 * StagedElements() * (form_.epilogue < 0 ? Size() : 4));
  }
  std::string Units() const {
    return fmt::format("ceil_div(({}) * {}, groups_p * tile_n) * ceil_div({}, groups_m * 64) * {}",
                       form_.images.ToString(), form_.ImagePositions(), form_.Rows(), form_.groups);
  }

  void AddTiles(const Chosen& at, ConstantBlock& constants) const {
    for (size_t i = 0; i < form_.arranged.size(); ++i) {
      constants.Line(fmt::format("constexpr int POSITIONS_{0} = {1}, CROP_{0} = {2};", "DHW"[i],
                                 form_.arranged[i].positions, form_.arranged[i].crop));
    }
    constants.Bool("DIRECT", Direct())
        .Int("PANEL", Panel(), "pixels")
        .Int("SHIFTS", form_.shifts)
        .Bool("FLAT", form_.flat)
        .Int("IMAGE", form_.ImagePositions())
        .Int("ROW_BYTES", row_bytes_);
    constants.Int("STORE_N", StoreColumns())
        .Bool("Y_LAST", form_.pixels_first, "filters are neighbours in y");
    constants.Int("Y_PIECE", Piece(), "elements of the result that are written at once");
    constants.Bool("HAS_EPILOGUE", form_.epilogue >= 0)
        .Bool("C_ALIGNED", true, "pieces of the result, and tensors of the same layout");
    constants.Int("PROMOTED", Promoted(at), "segments between additions of sums; 0: at the end");
    constants.Int("SHARED", Evaluate(shared_, at), "bytes");
    constants.Ints(at, {"sets", "groups_m", "groups_p", "tile_n", "reach", "x_stages", "w_stages"});
  }
  /// Split floats are as exact as float32 if tensor cores add few products.
  int64_t Promoted(const Chosen& at) const {
    if (form_.parts < 3) return 0;
    const int64_t taps = CeilDiv(Taps(2), Split(2)) *
                         (at["reach"] == 1 ? 1 : CeilDiv(Taps(1), Split(1)));
    return std::max<int64_t>(1, kPromotedProducts / (taps * Depth()));
  }
  ArgBinding MapOfX() const {
    const std::string images = fmt::format("({}) * ", form_.images.ToString());
    if (!Direct())
      return BoxMap("@arranged_x", form_.operands,
                    {form_.Stored() * form_.merged, form_.groups * form_.Split() / form_.merged,
                     Expr::MustParse(images + std::to_string(form_.Positions()))},
                    {Depth(), 1, Expr::MustParse(BoxRows())}, row_bytes_);
    const auto& a = form_.axes;
    const int64_t depth = form_.flat ? 1 : a[0].in, height = form_.flat ? 1 : a[1].in;
    const int64_t width = form_.flat ? form_.Inputs() : a[2].in;
    const Expr all = Expr::MustParse(images + std::to_string(form_.last ? 1 : form_.groups));
    if (form_.last)
      return BoxMap(form_.x.name, element_,
                    {form_.channels * form_.groups, width, height, depth, all},
                    {Depth(), Panel(), 1, 1, 1}, row_bytes_);
    return BoxMap(form_.x.name, element_, {width, height, depth, form_.channels, all},
                  {Panel(), 1, 1, Depth(), 1}, Panel() * 2);
  }
  ArgBinding MapOfW() const {
    return BoxMap(form_.MultipliedW(), form_.operands,
                  {form_.Depth(), form_.Taps(), form_.groups * form_.Rows()},
                  {Depth(), 1, Expr::MustParse("groups_m * 64")}, row_bytes_);
  }

  TensorConvForm form_;
  graph::EpilogueText epilogue_;
  int64_t row_bytes_;
  int64_t functions_;
  Expr shared_, fetched_, units_;  ///< bytes of a block and of a tile's segments; tiles
};

/// Treats an image as one row of pixels if there are neither taps nor strides, so that panels cross
/// no edge.
void Flatten(TensorConvForm& form) {
  const auto plain = [](const graph::ConvAxis& axis) {
    return axis.taps == 1 && axis.stride == 1 && axis.inner == 1 && axis.shift == 0 &&
           axis.in == axis.out;
  };
  if (!std::ranges::all_of(form.axes, plain) || !Dense(form, true, 1) || !Dense(form, false, 1))
    return;
  const int64_t pixels = form.Inputs();
  form.axes = {graph::ConvAxis{}, graph::ConvAxis{},
               graph::ConvAxis{.in = pixels, .out = pixels, .x = 1, .y = 1}};
}

/// Arranges x as rows of a padded image; false where that would multiply many zeros.
bool UseArrangedRows(TensorConvForm& form) {
  if (form.pixels_first && !form.scaled) return false;
  const bool in_rows = form.parts == 1 || form.padded > 64;
  const int64_t multiplied = in_rows ? InRows(form.padded) : CeilDiv(form.padded, 16) * 16;
  if (form.Split() > 1 && 2 * multiplied > 3 * form.padded) return false;
  Merge(form);
  form.in_place = false;
  return true;
}

/// Merges neighbouring rows, as `Merge` does with pixels.
void PairRows(TensorConvForm& form) {
  const graph::ConvAxis& axis = form.axes[1];
  ArrangedAxis& rows = form.arranged[1];
  if (form.Rows() * 2 > kRows || rows.taps == 1 || rows.phases > 1 || axis.stride > 1 ||
      axis.dilation > 1)
    return;
  form.pair = rows.phases = 2;
  rows.positions = CeilDiv(rows.positions, 2);
  rows.padded = CeilDiv(std::max(axis.in + rows.low, 2 * rows.positions + rows.taps - 1 - rows.low),
                        2);
  rows.taps += 1;
}

/// Reads the image in its native layout, in panels with the least padding; false where copies
/// cannot.
bool UseNativeLayout(TensorConvForm& form) {
  const auto apart = [](const graph::ConvAxis& axis) {
    return axis.stride > 1 && axis.dilation > 1;
  };
  if (std::ranges::any_of(form.axes, apart)) return false;
  ArrangedAxis& last = form.arranged[2];
  const int64_t all = form.groups * form.channels;
  form.flat = form.Taps() == 1 && form.Positions() == form.Inputs();
  // Channels behind those of a group belong to another group.
  const bool pixels = form.last && form.pixels_first && all % 8 == 0 &&
                      (form.groups == 1 || form.channels % 64 == 0);
  // Copies begin at multiples of 16 bytes.
  const bool aligned = last.low % 8 == 0 && (last.taps == 1 || form.axes[2].dilation % 8 == 0) &&
                       (form.flat ? form.Inputs() : form.axes[2].in) % 8 == 0;
  // Where copies cannot begin at every tap, taps of whole rows have sums of their own.
  const graph::ConvAxis& across = form.axes[2];
  const int64_t most = std::max(last.low, (last.taps - 1) * across.dilation - last.low);
  const bool shifted = !pixels && !aligned && HasChannelsFirst(form) && last.taps > 1 &&
                       last.phases == 1 && across.stride <= 2 && most <= kMostShifted &&
                       across.in % 8 == 0;
  if (form.scaled || (form.Split() > 1 && !shifted) ||
      !(pixels ? form.RowPhases() == 1 : shifted || (HasChannelsFirst(form) && aligned)))
    return false;
  if (shifted) form.shifts = last.taps, last.split = 1;
  // Each panel is one copy; where pixels are contiguous, rows of a panel are swizzled.
  double least = form.flat ? 0 : INFINITY;
  if (form.flat) form.panel = 64;
  for (int64_t panel = 8; panel <= 64; panel += 8) {
    const int64_t padded = CeilDiv(shifted ? std::max(across.in, last.positions * across.stride)
                                           : last.positions,
                                   panel) *
                           panel;
    const double weight = Real(padded) * (1 + kCopyPositions / Real(panel));
    if (weight >= least || (!pixels && (panel == 8 || 64 % panel != 0))) continue;
    if (shifted && (padded > 256 || (padded % 64 != 0 && 64 % padded != 0))) continue;
    least = weight;
    form.panel = panel;
    last.padded = padded;
  }
  form.arranged[0].padded = form.arranged[0].positions;
  if (shifted && last.padded > 64) PairRows(form);
  return form.in_place = form.panel > 0;
}

std::unique_ptr<ImplicitGemmConv> MakeIf(bool (*take)(TensorConvForm&), const KernelSpec& spec,
                                         const DeviceProfile& profile, TensorConvForm form) {
  if (!take(form)) return nullptr;
  form.filters_in_place = form.filters_in_place && form.RowPhases() == 1;
  if (form.images.Bound(spec.dims).factor() * form.ImagePositions() * form.pair > INT32_MAX / 2 ||
      (!form.pixels_first && kWarpRows % form.arranged[2].phases != 0))
    return nullptr;
  auto made = std::make_unique<ImplicitGemmConv>(spec, profile, std::move(form));
  return made->Default().values.empty() ? nullptr : std::move(made);
}

}  // namespace

std::unique_ptr<ScheduleTemplate> MakeImplicitGemmConv(const KernelSpec& spec,
                                                       const DeviceProfile& profile,
                                                       TensorConvForm form) {
  if (!CapabilitiesOf(profile).wgmma || IsFilterGradient(form)) return nullptr;
  Flatten(form);
  for (size_t i = 0; i < form.axes.size(); ++i) {
    if (!Arrange(form.axes[i], form.arranged[i])) return nullptr;
  }
  auto rows = MakeIf(UseArrangedRows, spec, profile, form),
       panels = MakeIf(UseNativeLayout, spec, profile, form);
  return panels && (!rows || panels->TotalNs() <= rows->TotalNs()) ? std::move(panels)
                                                                   : std::move(rows);
}

}  // namespace atunner
