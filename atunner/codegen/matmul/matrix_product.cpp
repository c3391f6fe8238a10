#include "atunner/codegen/matmul/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "atunner/codegen/matmul/product_template.h"
#include "atunner/codegen/template/family.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Operands with fewer rows and columns than this are read by few blocks.
constexpr int64_t kMostStreamed = 1024;

Operands KindOf(const MatrixProduct& product) {
  if (SizeOf(product.a.dtype) == 2) return Operands::k16Bits;
  return IsFloat(product.a.dtype) ? Operands::kFloat8 : Operands::kInt8;
}

/// The type's name in wgmma.
const char* ProductType(DType dtype) {
  if (IsFloat(dtype)) return dtype == DType::kFloat8E4M3 ? "e4m3" : "e5m2";
  return dtype == DType::kInt8 ? "s8" : "u8";
}

/// Products that make an element of the result: 2 for a pair of products.
int64_t Sums(const MatrixProduct& product) { return product.twin.empty() ? 1 : 2; }

/// The share of the depth that the mean row of a triangle has.
double Reached(int64_t triangle, double m, double k) {
  if (triangle == 0) return 1;
  const double below = m <= k ? m / (2 * k) : 1 - k / (2 * m);
  return triangle == 1 ? below : 1 - below;
}

/// For the dims that these extents are multiples of, as far as the task allows; none where the task
/// has others too.
Dims OpenSizes(const KernelSpec& spec, const MatrixProduct& product, Sizes sizes) {
  Dims open;
  for (const auto& [extent, size] : {std::pair(product.m, sizes.m),
                                     {product.n, sizes.n},
                                     {product.k, sizes.k},
                                     {product.batch, sizes.batch}}) {
    const Expr count = Expr::MustParse(extent);
    const std::vector<std::string> names = count.Names();
    if (names.size() != 1) continue;
    const auto least = product.least.find(names[0]);
    const int64_t most = spec.oracle.kind == Oracle::Kind::kGraph ? spec.dims.at(names[0])
                                                                  : INT64_MAX;
    const Dims one{{names[0], 1}};
    const int64_t wanted = CeilDiv(size, count.EvaluateInt(Bindings(one)).value());
    open[names[0]] = std::min(most,
                              std::max(wanted, least == product.least.end() ? 1 : least->second));
  }
  return open.size() == spec.dims.size() ? open : Dims{};
}

/// Elements of whose multiples rows of `extent` elements of `bytes` are, 16 bytes at most.
int64_t Alignment(int64_t extent, int64_t bytes) {
  int64_t most = 16 / bytes;
  while (extent % most != 0) most /= 2;
  return most;
}

/// The expression of a row's elements where it is widened: whole boxes of tensor maps.
std::string Wide(const std::string& width, int64_t bytes) {
  return fmt::format("(ceil_div({0}, {1}) * {1})", width, 128 / bytes);
}

/// A tensor of `rows` × `width` elements, as expressions over the task's dims.
struct Widened {
  std::string tensor, rows, width;
};
/// A step that copies each tensor into workspace "wide_" + its name with wider rows (widen.cuh).
/// Two at most, of elements of `bytes`.
void AddWidening(LaunchPlan& plan, const std::vector<Widened>& tensors, int64_t bytes) {
  if (tensors.empty()) return;
  std::string blocks = "1";
  for (const auto& [from, rows, width] : tensors) {
    const std::string wide = Wide(width, bytes);
    plan.workspaces.push_back(
        {"wide_" + from, Expr::MustParse(fmt::format("{} * {} * {}", rows, wide, bytes))});
    blocks = fmt::format("max({}, ceil_div({} * {}, {}))", blocks, rows, wide, 4096 / bytes);
  }
  LaunchStep step = Step("widen", fmt::format("min({}, 4096)", blocks), 256);
  step.grid[1] = Expr(static_cast<int64_t>(tensors.size()));
  // The kernel widens two tensors; a single one is given twice.
  for (const auto& [from, rows, width] : {tensors.front(), tensors.back()})
    AddArguments(
        step, {from, "@wide_" + from, "i64:" + rows, "i32:" + width, "i32:" + Wide(width, bytes)});
  plan.steps.push_back(step);
}

/// Tiles that are copied by tensor maps on Hopper, or by every thread.
class MatrixTemplate : public ProductTemplate {
 public:
  MatrixTemplate(const KernelSpec& spec, const DeviceProfile& profile, const MatrixProduct& product,
                 const MainLoop& loop, bool maps)
      : ProductTemplate(spec, profile, loop, ExtentsOf(spec, product), product.a.dtype,
                        product.c.dtype,
                        maps ? fmt::format("tile_m // group_rows * (1 + alternate) * tile_n * {}",
                                           product.column_bytes)
                             : "0"),
        product_(product),
        maps_(maps),
        bytes_(BytesOf(product.a.dtype)),
        a_align_(Alignment(extents_.k, bytes_)),
        b_align_(Alignment(product.b_transposed ? extents_.k : extents_.n, bytes_)) {
    if (maps_)
      AddMaps();
    else if (loop_.OnTensorCores())
      AddWalks();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const MatrixProduct& p = product_;
    const bool wide_a = Widens(at, a_align_), wide_b = Widens(at, b_align_);
    std::vector<Widened> widened;
    if (wide_a) widened.push_back({p.a.tensor, RowsOf(p.m, p.a_batched), p.k});
    if (wide_b) widened.push_back({p.b.tensor, RowsOf(BRows(), p.b_batched), BWidth()});
    LaunchPlan plan = Plan(at, {});
    AddWidening(plan, widened, bytes_);
    plan.steps.push_back(GemmStep(at, wide_a, wide_b));
    FinishSplit(at, plan, p.c.tensor, RowsOf(p.m, true), p.n);
    return RenderedKernel{Source(at, wide_a, wide_b), std::move(plan)};
  }

  /// Partly filled tiles, more than one, whose depth goes through all buffers more than once.
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const Sizes steps = StepsOf(at);
    const int64_t rows = Rows(at);
    return CheckSizes(spec_, product_, steps,
                      {rows < at["tile_m"] ? rows - 3 : rows + 3, at["tile_n"] / 2 + steps.n,
                       (at["stages"] + 2) * at["tile_k"] + steps.k});
  }
  ValidSizes FreeSizes(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t rows = Rows(at);
    return FreeSizesOf(spec_, product_, StepsOf(at), INT32_MAX / 2, rows < at["tile_m"] ? rows : 0);
  }

 protected:
  std::string Epilogue() const override { return product_.EpilogueText(); }
  Arguments EpilogueArguments() const override { return product_.epilogue_arguments; }
  /// The larger operand would evict the other one.
  bool Streams(const Chosen& at) const override {
    return maps_ && at["stream"] >= (extents_.m > extents_.n ? 2 : 1);
  }

 private:
  static Extents ExtentsOf(const KernelSpec& spec, const MatrixProduct& product) {
    const int64_t m = SizeOf(product.m, spec), k = SizeOf(product.k, spec);
    return {.m = m,
            .n = SizeOf(product.n, spec) * Sums(product),
            .k = k,
            .batch = SizeOf(product.batch, spec),
            .reached = Reached(product.triangle, Real(m), Real(k))};
  }
  /// Widened operands are aligned at any size. What stays as it is keeps the alignment of the
  /// task's.
  Sizes StepsOf(const Chosen& at) const {
    const int64_t a = Widens(at, a_align_) ? 1 : a_align_;
    const int64_t b = Widens(at, b_align_) ? 1 : b_align_;
    const auto unit = static_cast<int64_t>(16 / SizeOf(element_)),
               c = extents_.n % unit == 0 ? unit : 1;
    return product_.b_transposed ? Sizes{1, c, std::max(a, b)} : Sizes{1, std::max(b, c), a};
  }
  /// Rows of a tile that are fetched.
  int64_t Rows(const Chosen& at) const { return maps_ ? RowsFetched(at) : at["tile_m"]; }
  bool Widens(const Chosen& at, int64_t alignment) const {
    return alignment * bytes_ != 16 && loop_.OnTensorCores() && (maps_ || at["widen"] != 0);
  }

  void AddWalks() {
    const bool aligned = a_align_ == 8 && b_align_ == 8;
    space_.parameters.push_back(
        {"widen", aligned ? Integers({0}) : Integers({1, 0}),
         "copy operands whose rows are no multiples of 16 bytes into ones that are"});
    if (loop_.Persists()) Add("persistent == 0", "a block ends with its tile");
  }
  void AddMaps() {
    // An operand that many blocks read at different times should stay in L2.
    const bool streams = std::min(extents_.m, extents_.n) <= kMostStreamed;
    space_.parameters.push_back({"stream", streams ? Integers({1, 2, 0}) : Integers({0}),
                                 "operands whose elements leave L2 first: b, both, none"});
    // Sums in the tensor core keep 14 bits: the plain kernel has those of as many products as are
    // promoted at a time.
    const bool rough = AccuracyOf(spec_) == Accuracy::kFast || spec_.tolerance.relative;
    if (KindOf(product_) == Operands::kFloat8 && !rough)
      Add("promote > 0", "longer sums in the tensor core are too rough");
    Add("alternate == 0 or persistent == 1", "one tile needs no turns");
    if (!product_.twin.empty()) {
      Add("split_k == 1 or in_cluster == 1", "partial sums in memory are of one product");
      if (!product_.b_transposed) Add("tile_n % 128 == 0", "columns are copied 64 at a time");
    }
  }

  /// Boxes as wide as a swizzled row of an operand, and `box_rows` high; of `dims` the innermost is
  /// first.
  ArgBinding Map(bool wide, const MatrixProduct::Part& part, std::array<std::string, 3> dims,
                 int64_t box_rows) const {
    const std::string row = wide ? Wide(dims[0], bytes_) : dims[0];
    return BoxMap((wide ? "@wide_" : "") + part.tensor, part.dtype,
                  {Expr::MustParse(row), Expr::MustParse(dims[1]), Expr::MustParse(dims[2])},
                  {128 / bytes_, box_rows, 1});
  }

  /// Rows of an operand as it is stored, over all matrices.
  std::string RowsOf(const std::string& rows, bool batched) const {
    return batched && product_.batch != "1" ? fmt::format("({}) * ({})", product_.batch, rows)
                                            : rows;
  }
  const std::string& BRows() const { return product_.b_transposed ? product_.n : product_.k; }
  const std::string& BWidth() const { return product_.b_transposed ? product_.k : product_.n; }
  /// The argument for b, or for the second b of a pair, as a tensor map.
  ArgBinding MapOfB(const Chosen& at, const std::string& tensor, bool wide) const {
    const MatrixProduct& p = product_;
    return Map(wide, {tensor, p.b.dtype}, {BWidth(), BRows(), p.b_batched ? p.batch : "1"},
               p.b_transposed ? at["tile_n"] / Sums(p) : at["tile_k"]);
  }
  LaunchStep GemmStep(const Chosen& at, bool wide_a, bool wide_b) const {
    const MatrixProduct& p = product_;
    LaunchStep step = TileStep(at, "gemm", p.m, p.twin.empty() ? p.n : "2 * " + p.n, p.batch);
    if (maps_) {
      step.args = {Map(wide_a, p.a, {p.k, p.m, p.a_batched ? p.batch : "1"}, RowsFetched(at)),
                   MapOfB(at, p.b.tensor, wide_b)};
    } else {
      AddArguments(step, {wide_a ? "@wide_" + p.a.tensor : p.a.tensor,
                          wide_b ? "@wide_" + p.b.tensor : p.b.tensor});
    }
    AddArguments(step, {Destination(at, p.c.tensor), "i64:" + p.m, "i64:" + p.n, "i64:" + p.k,
                        "i64:" + p.batch});
    if (!maps_)
      AddArguments(step, {"i64:" + (wide_a ? Wide(p.k, 2) : p.k),
                          "i64:" + (wide_b ? Wide(BWidth(), 2) : BWidth())});
    AddArguments(step, EpilogueArguments());
    if (!p.twin.empty()) step.args.push_back(MapOfB(at, p.twin, wide_b));
    return step;
  }

  void AddMapConstants(const Chosen& at, bool wide_b, ConstantBlock& constants) const {
    constants.Int("STREAM", at["stream"], "operands that leave L2 first: 1 = b, 2 = both");
    constants.Int("A_ROWS", RowsFetched(at), "rows of a's tile that are fetched");
    const std::string twin = product_.twin.empty() ? product_.b.tensor : product_.twin;
    constants.Line(fmt::format("#if defined IS_GIVEN_{} && defined IS_GIVEN_{} && !{}",
                               product_.b.tensor, twin, wide_b));
    constants.Bool("B_GIVEN", true, "b was complete before the previous kernel started")
        .Line("#else")
        .Bool("B_GIVEN", false)
        .Line("#endif");
  }
  SourceUnit Source(const Chosen& at, bool wide_a, bool wide_b) const {
    ConstantBlock constants = TileConstants(at, product_.b_transposed);
    constants.Bool("BATCHED", product_.batch != "1");
    constants.Bool("A_BATCHED", product_.a_batched).Bool("B_BATCHED", product_.b_batched);
    constants.Int("TRIANGLE", product_.triangle,
                  "non-zero side of a: 0 = both, 1 = below the diagonal, 2 = above");
    if (maps_) {
      AddMapConstants(at, wide_b, constants);
    } else {
      constants.Int("A_ALIGN", wide_a ? 8 : a_align_,
                    "elements at whose multiples rows of a start");
      constants.Int("B_ALIGN", wide_b ? 8 : b_align_);
    }
    if (bytes_ == 1)
      constants.Line(fmt::format("#define A_TYPE \"{}\"\n#define B_TYPE \"{}\"",
                                 ProductType(product_.a.dtype), ProductType(product_.b.dtype)));
    const std::string walking = fmt::format("{}\n{}", embed::kBatchesCuh, embed::kGemmWalkersCu);
    return EmitProduct(at, constants, maps_ ? embed::kGemmMapsCu : walking, wide_a || wide_b);
  }

  MatrixProduct product_;
  bool maps_;
  int64_t bytes_;  ///< of an operand's element
  int64_t a_align_, b_align_;
};

/// True if tensor maps can copy these operands and that pays: widening reads an operand and writes
/// it once more.
bool MapsPay(const DeviceProfile& profile, const KernelSpec& spec, const MatrixProduct& product) {
  constexpr int64_t kOften = 256;
  const int64_t m = SizeOf(product.m, spec), n = SizeOf(product.n, spec),
                k = SizeOf(product.k, spec);
  // Coordinates have 31 bits.
  if (!CapabilitiesOf(profile).wgmma || std::max({m, n, k}) > INT32_MAX / 2) return false;
  const auto bytes = BytesOf(product.a.dtype);
  const auto pays = [&](int64_t width, int64_t reads) {
    return width * bytes % 16 == 0 || reads >= kOften;
  };
  return pays(k, n) && pays(product.b_transposed ? k : n, m);
}

}  // namespace

std::string MatrixProduct::EpilogueText() const {
  return epilogue.empty() ? std::string(embed::kPlainEpilogueCuh) : epilogue;
}

MatrixProduct MatmulOf(const KernelSpec& spec) {
  const DType type = spec.compute_dtype;
  return {.a = {"a", type}, .b = {"b", type}, .c = {"c", type}, .m = "M", .n = "N", .k = "K"};
}

int64_t SizeOf(const std::string& extent, const KernelSpec& spec) {
  return Expr::MustParse(extent).EvaluateInt(Bindings(spec.dims)).value();
}

std::vector<Dims> CheckSizes(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                             Sizes large) {
  const Dims small = OpenSizes(spec, product, steps);
  if (small.empty()) return {};
  large.batch = 2;
  return {small, OpenSizes(spec, product, large)};
}

ValidSizes FreeSizesOf(const KernelSpec& spec, const MatrixProduct& product, Sizes steps,
                       int64_t most, int64_t rows) {
  ValidSizes freedom;
  for (const auto& [name, size] : OpenSizes(spec, product, {1, 1, 1})) freedom.dims.push_back(name);
  if (freedom.dims.empty()) return {};
  for (const auto& [extent, step] :
       {std::pair(product.m, int64_t{1}), {product.k, steps.k}, {product.n, steps.n}}) {
    if (Expr::MustParse(extent).Names().empty()) continue;
    freedom.constraints.push_back(
        {Expr::MustParse(fmt::format("{} <= {}", extent, most)), "31-bit counters"});
    if (step > 1) freedom.constraints.push_back(WholeSteps(extent, step));
  }
  if (rows > 0)
    freedom.constraints.push_back({Expr::MustParse(fmt::format("{} <= {}", product.m, rows)),
                                   "the rows of the only tile that are fetched"});
  return freedom;
}

Result<std::unique_ptr<ScheduleTemplate>> BindProduct(const KernelSpec& spec,
                                                      const DeviceProfile& profile,
                                                      const MatrixProduct& product) {
  const size_t bytes = SizeOf(product.a.dtype);
  if (bytes == 2) ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  if (bytes < 4 && MapsPay(profile, spec, product))
    return std::make_unique<MatrixTemplate>(spec, profile, product, MapsLoop(KindOf(product)),
                                            true);
  if (bytes == 1)
    return Fail(ErrorCode::kUnsupported, "no schedule family computes '" + spec.name + "' on " +
                                             profile.name + ": products of 8 bits take Hopper");
  // Steps along k are counted in 31 bits.
  if (const int64_t k = SizeOf(product.k, spec); k > INT32_MAX / 2)
    return Fail(ErrorCode::kUnsupported, fmt::format("matmul over a depth of {}", k), "",
                "split K");
  const MainLoop& loop = bytes == 2 ? CopyingLoop(profile) : SimtLoop(product.b_transposed);
  std::unique_ptr<ScheduleTemplate> walking = std::make_unique<MatrixTemplate>(
      spec, profile, product, loop, false);
  std::unique_ptr<ScheduleTemplate> planes = bytes == 2
                                                 ? nullptr
                                                 : MakeSplitFloatGemm(spec, profile, product);
  // The template with the smaller estimate.
  const auto least = [&](const ScheduleTemplate& one) {
    return one.Cost(one.Default(), profile).value_or(INFINITY);
  };
  return planes && least(*planes) < least(*walking) ? std::move(planes) : std::move(walking);
}

constinit const Family kGemmFamily{
    "gemm", [](const Task& task) -> Binding {
      if (!IsOperator(task.spec(), "matmul")) return {};
      return {.bind = [spec = task.spec()](const DeviceProfile& profile) {
        return BindProduct(spec, profile, MatmulOf(spec));
      }};
    }};

}  // namespace atunner
