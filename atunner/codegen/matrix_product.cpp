#include "atunner/codegen/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "atunner/codegen/form_family.h"
#include "atunner/codegen/planes_gemm.h"
#include "atunner/codegen/simt_template.h"
#include "atunner/codegen/tensor_template.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Operands of fewer rows and columns than this are read by few blocks.
constexpr int64_t kMostStreamed = 1024;

int64_t Number(const std::string& text, const KernelSpec& spec) {
  return Expr::MustParse(text).EvaluateInt(Bindings(spec.dims)).value();
}

Operands KindOf(const MatrixProduct& product) {
  if (SizeOf(product.a.dtype) == 2) return Operands::k16Bits;
  return IsFloat(product.a.dtype) ? Operands::kFloat8 : Operands::kInt8;
}

/// As wgmma calls it.
std::string_view ProductType(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3:
      return "e4m3";
    case DType::kFloat8E5M2:
      return "e5m2";
    default:
      return dtype == DType::kInt8 ? "s8" : "u8";
  }
}

/// Of the depth, what of a triangle's rows counts in the mean.
double Reached(int64_t triangle, double m, double k) {
  if (triangle == 0) return 1;
  const double below = m <= k ? m / (2 * k) : 1 - k / (2 * m);
  return triangle == 1 ? below : 1 - below;
}

/// The product at the task's own sizes, for Base = TensorTemplate or SimtTemplate, and the sizes that are open.
template <class Base>
class OfMatrices : public Base {
 protected:
  using typename Base::Extents;
  static Extents ExtentsOf(const KernelSpec& spec, const MatrixProduct& product) {
    const int64_t m = Number(product.m, spec), k = Number(product.k, spec);
    return {.m = m,
            .n = Number(product.n, spec),
            .k = k,
            .batch = Number(product.batch, spec),
            .reached = Reached(product.triangle, Real(m), Real(k))};
  }
  template <class... More>
  OfMatrices(const KernelSpec& spec, const DeviceProfile& profile, MatrixProduct product, More&&... more)
      : Base(spec, profile, std::forward<More>(more)...), product_(std::move(product)) {}

  /// Elements of whose multiples k and n are where the source of this configuration is right.
  struct Steps {
    int64_t k, n;
  };
  virtual Steps StepsOf(const Configuration& configuration) const = 0;
  /// Rows of a tile that are fetched.
  virtual int64_t Rows(const Configuration& configuration) const { return this->Integer(configuration, "tile_m"); }

  /// One row and column; and partly filled tiles, more than one, whose depth goes through all buffers more than once.
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const auto at = [&](const char* name) { return this->Integer(configuration, name); };
    const auto [k_step, n_step] = StepsOf(configuration);
    const int64_t rows = Rows(configuration);
    const Dims small = OpenSizes(1, n_step, k_step, 1);
    if (small.empty()) return {};
    return {small, OpenSizes(rows < at("tile_m") ? rows - 3 : rows + 3, at("tile_n") / 2 + n_step,
                             (at("stages") + 2) * at("tile_k") + k_step, 2)};
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    SizeFreedom freedom;
    for (const auto& [name, size] : OpenSizes(1, 1, 1, 1)) freedom.dims.push_back(name);
    if (freedom.dims.empty()) return {};
    const auto [k_step, n_step] = StepsOf(configuration);
    const auto add = [&](const std::string& extent, int64_t step) {
      if (!this->spec_.dims.contains(extent)) return;
      freedom.constraints.push_back(
          {Expr::MustParse(fmt::format("{} <= {}", extent, INT32_MAX / 2)), "31-bit counters"});
      if (step > 1) freedom.constraints.push_back(WholeSteps(extent, step));
    };
    add(product_.m, 1);
    add(product_.k, k_step);
    add(product_.n, n_step);
    const int64_t rows = Rows(configuration);
    if (rows < this->Integer(configuration, "tile_m"))
      freedom.constraints.push_back(
          {Expr::MustParse(fmt::format("{} <= {}", product_.m, rows)), "the rows of the only tile that are fetched"});
    return freedom;
  }

  Arguments FinishArguments() const override { return product_.finish_arguments; }
  std::string FinishText() const {
    return product_.finish.empty() ? std::string(embed::kPlainFinishCuh) : product_.finish;
  }
  /// What batches.cuh expects.
  void AddBatches(ConstantBlock& constants) const {
    constants.Bool("BATCHED", product_.batch != "1");
    constants.Bool("A_BATCHED", product_.a_batched).Bool("B_BATCHED", product_.b_batched);
    constants.Int("TRIANGLE", product_.triangle, "of a that counts: 1 = below its diagonal, 2 = above");
  }
  /// Rows of the result, of all matrices.
  std::string AllRows() const {
    return product_.batch == "1" ? product_.m : fmt::format("({}) * ({})", product_.batch, product_.m);
  }
  Arguments ExtentArguments() const {
    return {"i64:" + product_.m, "i64:" + product_.n, "i64:" + product_.k, "i64:" + product_.batch};
  }

  MatrixProduct product_;

 private:
  /// For the dims that are these extents, as far as the task allows; none where the task has others too.
  Dims OpenSizes(int64_t m, int64_t n, int64_t k, int64_t batch) const {
    Dims sizes;
    const KernelSpec& spec = this->spec_;
    for (const auto& [extent, size] :
         {std::pair(product_.m, m), {product_.n, n}, {product_.k, k}, {product_.batch, batch}}) {
      const auto own = spec.dims.find(extent);
      if (own == spec.dims.end()) continue;
      const auto least = product_.least.find(extent);
      const bool graph = spec.oracle.kind == Oracle::Kind::kGraph;
      const int64_t most = graph ? own->second : INT64_MAX;
      sizes[extent] = std::min(most, std::max(size, least == product_.least.end() ? 1 : least->second));
    }
    return sizes.size() == spec.dims.size() ? sizes : Dims{};
  }
};

/// On tensor cores: by tensor maps on Hopper, or with copies by every thread.
class TensorProduct : public OfMatrices<TensorTemplate> {
 public:
  TensorProduct(const KernelSpec& spec, const DeviceProfile& profile, const MatrixProduct& product, bool maps)
      : OfMatrices(
            spec, profile, product, maps ? MapsLoop(KindOf(product)) : MainLoopFor(profile), ExtentsOf(spec, product),
            maps ? fmt::format("tile_m // group_rows * (1 + alternate) * tile_n * {}", product.column_bytes) : "0"),
        maps_(maps),
        bytes_(static_cast<int64_t>(SizeOf(product.a.dtype))),
        a_align_(Alignment(extents_.k, 16 / bytes_)),
        b_align_(Alignment(product.b_transposed ? extents_.k : extents_.n, 16 / bytes_)) {
    operands_ = product.a.dtype;
    element_ = product.c.dtype;
    if (!half_precision()) Add(profile.cc_major < 9 ? "True" : "in_cluster == 0", "a cluster stores 16 bits");
    if (maps_)
      AddMaps();
    else
      AddWalks();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto& [a, b, c, m, n, k, batch, a_batched, b_batched, b_transposed, triangle, finish, more, bytes, least] =
        product_;
    const bool wide_a = WideA(configuration), wide_b = WideB(configuration);
    const auto rows_of = [&](const std::string& rows, bool batched) {
      return batched ? fmt::format("({}) * ({})", batch, rows) : rows;
    };
    const std::string &b_rows = b_transposed ? n : k, &b_width = b_transposed ? k : n;
    std::vector<Widened> widened;
    if (wide_a) widened.push_back({a.tensor, rows_of(m, a_batched), k});
    if (wide_b) widened.push_back({b.tensor, rows_of(b_rows, b_batched), b_width});
    LaunchPlan plan = Plan(configuration, {});
    AddWidening(plan, widened, bytes_);
    LaunchStep step = TileStep(configuration, "gemm", m, n, batch);
    if (maps_) {
      step.args = {Map(wide_a, a, {k, m, a_batched ? batch : "1"}, Rows(configuration)),
                   Map(wide_b, b, {b_width, b_rows, b_batched ? batch : "1"},
                       Integer(configuration, b_transposed ? "tile_n" : "tile_k"))};
    } else {
      AddArguments(step, {wide_a ? "@wide_" + a.tensor : a.tensor, wide_b ? "@wide_" + b.tensor : b.tensor});
    }
    AddArguments(step, {Destination(configuration, c.tensor)});
    AddArguments(step, ExtentArguments());
    if (!maps_)
      AddArguments(step, {"i64:" + (wide_a ? Wide(k, 2) : k), "i64:" + (wide_b ? Wide(b_width, 2) : b_width)});
    AddArguments(step, FinishArguments());
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, c.tensor, AllRows(), n);
    return RenderedKernel{Source(configuration, wide_a, wide_b), std::move(plan)};
  }

 protected:
  std::string Finish() const override { return FinishText(); }
  Steps StepsOf(const Configuration& configuration) const override {
    // Widened operands are aligned at any size. What stays as it is keeps the alignment of the task's.
    const int64_t a = WideA(configuration) ? 1 : a_align_, b = WideB(configuration) ? 1 : b_align_;
    const int64_t c = extents_.n % 8 == 0 ? 8 : 1;
    return product_.b_transposed ? Steps{std::max(a, b), c} : Steps{a, std::max(b, c)};
  }
  int64_t Rows(const Configuration& configuration) const override {
    return maps_ ? RowsFetched(configuration) : Integer(configuration, "tile_m");
  }
  /// The larger operand is what would drive others out.
  bool Streams(const Configuration& configuration) const override {
    return maps_ && Integer(configuration, "stream") >= (extents_.m > extents_.n ? 2 : 1);
  }

 private:
  bool WideA(const Configuration& configuration) const { return a_align_ * bytes_ != 16 && Widens(configuration); }
  bool WideB(const Configuration& configuration) const { return b_align_ * bytes_ != 16 && Widens(configuration); }
  bool Widens(const Configuration& configuration) const { return maps_ || Integer(configuration, "widen") != 0; }

  void AddWalks() {
    const bool aligned = a_align_ == 8 && b_align_ == 8;
    space_.parameters.push_back({"widen", aligned ? Integers({0}) : Integers({1, 0}),
                                 "copy operands whose rows are no multiples of 16 bytes into ones that are"});
    if (product_.triangle != 0) Add("persistent == 0", "tiles of different depths");
  }
  void AddMaps() {
    // What many blocks read at different times should stay in L2.
    const bool streams = std::min(extents_.m, extents_.n) <= kMostStreamed;
    space_.parameters.push_back({"stream", streams ? Integers({1, 2, 0}) : Integers({0}),
                                 "operands whose elements leave L2 first: b, both, none"});
    // Sums in the tensor core keep 14 bits. The plain kernel has those of 128 products; of 256 they err twice as much.
    const bool rough = AccuracyOf(spec_) == Accuracy::kFast || spec_.tolerance.relative;
    if (KindOf(product_) == Operands::kFloat8 && !rough) {
      Add(fmt::format("1 <= promote <= {}", AccuracyOf(spec_) == Accuracy::kStrict ? 1 : 2),
          "longer sums in the tensor core are too rough");
    }
    Add("alternate == 0 or persistent == 1", "one tile needs no turns");
  }

  /// Boxes as wide as a swizzled row of an operand, and `box_rows` high; of `dims` the innermost is first.
  ArgBinding Map(bool wide, const MatrixProduct::Part& part, std::array<std::string, 3> dims, int64_t box_rows) const {
    const std::string row = wide ? Wide(dims[0], bytes_) : dims[0];
    TensorView view{.dims = {Expr::MustParse(dims[0]), Expr::MustParse(dims[1])},
                    .strides = {Expr::MustParse(row)},
                    .box = {Expr(128 / bytes_), Expr(box_rows)},
                    .swizzle_bytes = 128};
    if (product_.batch != "1") {
      view.dims.push_back(Expr::MustParse(dims[2]));
      view.strides.push_back(Expr::MustParse(fmt::format("({}) * ({})", row, dims[1])));
      view.box.emplace_back(1);
    }
    return wide ? ArgBinding::WorkspaceMap("wide_" + part.tensor, part.dtype, std::move(view))
                : ArgBinding::Map(part.tensor, part.dtype, std::move(view));
  }

  SourceUnit Source(const Configuration& configuration, bool wide_a, bool wide_b) const {
    ConstantBlock constants = TileConstants(configuration, product_.b_transposed);
    AddBatches(constants);
    if (maps_) {
      constants.Int("STREAM", Integer(configuration, "stream"), "operands that leave L2 first: 1 = b, 2 = both");
      constants.Int("A_ROWS", RowsFetched(configuration), "of a's tile that are fetched");
    } else {
      constants.Int("A_ALIGN", wide_a ? 8 : a_align_, "elements at whose multiples rows of a start");
      constants.Int("B_ALIGN", wide_b ? 8 : b_align_);
    }
    if (bytes_ == 1)
      constants.Line(fmt::format("#define A_TYPE \"{}\"\n#define B_TYPE \"{}\"", ProductType(product_.a.dtype),
                                 ProductType(product_.b.dtype)));
    const std::string walking = fmt::format("{}\n{}", embed::kBatchesCuh, embed::kGemmTensorCu);
    return EmitProduct(configuration, constants, maps_ ? embed::kGemmMapsCu : walking, wide_a || wide_b);
  }

  bool maps_;
  int64_t bytes_;  ///< of an operand's element
  int64_t a_align_, b_align_;
};

class SimtProduct : public OfMatrices<SimtTemplate> {
 public:
  SimtProduct(const KernelSpec& spec, const DeviceProfile& profile, const MatrixProduct& product)
      : OfMatrices(spec, profile, product, ExtentsOf(spec, product), product.b_transposed) {}

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto [k_step, n_step] = StepsOf(configuration);
    ConstantBlock constants = TileConstants(configuration);
    AddBatches(constants);
    constants.Int("A_ALIGN", k_step, "elements at whose multiples rows of a start");
    constants.Int("B_ALIGN", product_.b_transposed ? k_step : n_step);
    LaunchPlan plan = Plan(configuration, {});
    LaunchStep step = ProductStep(configuration, "gemm", product_.m, product_.n, product_.batch);
    AddArguments(step, {product_.a.tensor, product_.b.tensor, Destination(configuration, product_.c.tensor)});
    AddArguments(step, ExtentArguments());
    AddArguments(step, FinishArguments());
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, product_.c.tensor, AllRows(), product_.n);
    const std::string finish = FinishText();
    return RenderedKernel{
        Emit(configuration, constants,
             {embed::kTileOrderCuh, embed::kBatchesCuh, embed::kSimtTileCuh, embed::kTileWalkersCuh, finish,
              embed::kGemmSimtCu, Split(configuration) ? embed::kSplitCuh : std::string_view()}),
        std::move(plan)};
  }

 protected:
  Steps StepsOf(const Configuration&) const override {
    return {extents_.k % 4 == 0 ? 4 : 1, extents_.n % 4 == 0 ? 4 : 1};
  }
};

/// Can tensor maps copy these operands, and would that pay? Widening reads an operand and writes it once more.
bool MapsPay(const DeviceProfile& profile, const KernelSpec& spec, const MatrixProduct& product) {
  constexpr int64_t kOften = 256;
  const int64_t m = Number(product.m, spec), n = Number(product.n, spec), k = Number(product.k, spec);
  // Coordinates have 31 bits.
  if (profile.cc_major != 9 || std::max({m, n, k}) > INT32_MAX / 2) return false;
  const auto bytes = static_cast<int64_t>(SizeOf(product.a.dtype));
  const auto pays = [&](int64_t width, int64_t reads) { return width * bytes % 16 == 0 || reads >= kOften; };
  return pays(k, n) && pays(product.b_transposed ? k : n, m);
}

}  // namespace

Result<std::unique_ptr<ScheduleTemplate>> BindProduct(const KernelSpec& spec, const DeviceProfile& profile,
                                                      const MatrixProduct& product) {
  const size_t bytes = SizeOf(product.a.dtype);
  if (bytes == 2) ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  if (bytes < 4 && MapsPay(profile, spec, product))
    return std::make_unique<TensorProduct>(spec, profile, product, /*maps=*/true);
  if (bytes == 1)
    return Fail(ErrorCode::kUnsupported, "no schedule family computes '" + spec.name + "' on " + profile.name +
                                             ": products of 8 bits take Hopper");
  // Steps along k are counted in 31 bits.
  if (const int64_t k = Number(product.k, spec); k > INT32_MAX / 2)
    return Fail(ErrorCode::kUnsupported, fmt::format("matmul over a depth of {}", k), "", "split K");
  if (bytes == 2) return std::make_unique<TensorProduct>(spec, profile, product, /*maps=*/false);
  auto simt = std::make_unique<SimtProduct>(spec, profile, product);
  return product.Plain() && IsOperator(spec, "matmul") ? PlanesOr(std::move(simt), profile) : std::move(simt);
}

namespace {

Result<std::unique_ptr<ScheduleTemplate>> BindMatmul(const KernelSpec& spec, const DeviceProfile& profile) {
  const DType type = spec.compute_dtype;
  return BindProduct(spec, profile,
                     {.a = {"a", type}, .b = {"b", type}, .c = {"c", type}, .m = "M", .n = "N", .k = "K"});
}

}  // namespace

const Family& GemmFamily() {
  static const TaskFamily family("gemm", [](const KernelSpec& spec) { return IsOperator(spec, "matmul"); }, BindMatmul);
  return family;
}

}  // namespace atunner
