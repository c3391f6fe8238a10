// Matrix products in float32 on tensor cores: operands as planes of 16 bits
// (kernels/families/matmul/split_float.cuh).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/matmul/matrix_product.h"
#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/model/kernel/accuracy.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Constants of split_float.cuh: rows or columns of a chunk, its depth, bytes of one of its planes;
/// chunks that a block splits; parts of the depth in which columns of [k][n] are measured.
constexpr int64_t kLines = 64;
constexpr int64_t kDepth = 32;
constexpr int64_t kPlaneBytes = kLines * kDepth * 2;
constexpr int64_t kChunksPerGroup = 8;
constexpr int64_t kRowParts = 16;
/// The largest value of the kernels' counters.
constexpr int64_t kMost = INT32_MAX / 64;
/// Ways to take an element apart, and the relative errors of results that they stay within where
/// float32 errs least beside them: in sums of pairs that nearly cancel.
struct Planes {
  int64_t count;
  const char* type;
  double error;
};
constexpr Planes kPlanes[] = {{1, "f16", 5e-2}, {2, "f16", 2e-5}, {3, "bf16", 0}};

std::vector<Value> PlanesWithin(double error) {
  std::vector<Value> counts;
  for (const Planes& each : kPlanes) {
    if (each.error <= error) counts.emplace_back(each.count);
  }
  return counts;
}

/// The relative error that the task allows beyond that of float32; infinite if its accuracy policy
/// allows TF32.
double Tolerated(const KernelSpec& spec) {
  if (AccuracyOf(spec) == Accuracy::kFast) return INFINITY;
  return spec.tolerance.absolute ? 0 : spec.tolerance.relative.value_or(0);
}

class SplitFloatGemm : public BoundTemplate {
 public:
  SplitFloatGemm(const KernelSpec& spec, const DeviceProfile& profile, const MatrixProduct& product)
      : BoundTemplate(spec, profile),
        product_(product),
        m_(SizeOf(product.m, spec)),
        n_(SizeOf(product.n, spec)),
        k_(SizeOf(product.k, spec)),
        batch_(SizeOf(product.batch, spec)) {
    space_.parameters = {
        // An epilogue may cancel most of a product.
        {"planes",
         PlanesWithin(
             product.epilogue.empty() || AccuracyOf(spec) == Accuracy::kFast ? Tolerated(spec) : 0),
         "parts of an element: float16, or three bfloat16, which hold all of it"},
        {"tile_m", Integers({64, 128}), "rows of the result per block"},
        {"tile_n", Integers({64, 128, 256}), "columns of the result per block"},
        {"stages", Integers({2, 3, 4, 6, 8}), "buffers in shared memory"},
        {"promote", Integers({1, 2, 4}),
         "chunks of 32 products that the tensor core sums before registers do"},
        {"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"},
    };
    AddShared(SharedText());
    Add("planes == 1 or tile_n <= 128", "registers of a thread");
    Add("planes > 1 or promote == 1", "one plane is not promoted");
    Add(fmt::format("tile_m == 64 or tile_m < {}", 2 * m_), "more rows than there are");
    Add(fmt::format("tile_n == 64 or tile_n < {}", 2 * n_), "more columns than there are");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    LaunchPlan plan = Plan(at, {});
    AddWorkspaces(at["planes"] < 3, plan);
    AddSplit(at, plan);
    AddProduct(at, plan);
    return RenderedKernel{Source(at), std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    return CheckSizes(spec_, product_, {1, step(n_), step(k_)},
                      {at["tile_m"] + 3, at["tile_n"] / 2 + step(n_), 9 * kDepth + step(k_)});
  }
  ValidSizes FreeSizes(const Configuration&) const override {
    return FreeSizesOf(spec_, product_, {1, step(n_), step(k_)}, kMost);
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const CostConstants& costs = CostsOf(profile);
    const int64_t planes = at["planes"];
    const double multiply = Real(TilesPerBlock(at)) * TileNs(at, profile, costs);
    const double operands = Real((product_.a_batched ? batch_ : 1) * m_ +
                                 (product_.b_batched ? batch_ : 1) * n_) *
                            Real(k_) * 4;
    const double result = Real(batch_ * m_ * n_) * 4;
    // Operands that need scales are read twice, the second time from L2 where they fit; then planes
    // are written.
    const double again = operands < costs.split_float_l2_share * Real(profile.l2_bytes)
                             ? costs.split_float_reread
                             : 1;
    const double second = planes < 3 ? again * operands : 0;
    const double written = operands / 2 * Real(planes);
    return multiply + (operands + second + written + result) / profile.dram_gbps +
           (planes < 3 ? 4 : 3) * costs.split_float_step_ns;
  }

 private:
  /// ns of one tile's product: its products or its copies from L2, and the part of DRAM's time that
  /// they do not hide.
  double TileNs(const Chosen& at, const DeviceProfile& profile, const CostConstants& costs) const {
    const int64_t tile_m = at["tile_m"], tile_n = at["tile_n"], planes = at["planes"];
    const double depth = Real(k_);
    // Copies that the products wait for: a buffer being filled, and one group's work behind the
    // other's.
    const double covered = std::min(
        1.0,
        costs.split_float_covered_base + costs.split_float_covered_stage * Real(at["stages"] - 1));
    const double hidden = tile_m == 64 ? costs.split_float_one_group : 1.0;
    const double promoted = 1.0 - costs.split_float_promoted / Real(at["promote"]);
    const double fed = std::min(
        1.0, costs.split_float_fed_base + costs.split_float_fed * Real(tile_n) / 128.0);
    const double rate = profile.PeakFlops(DType::kFloat16, true) / profile.sms *
                        costs.split_float_sustained * covered * hidden * promoted * fed;
    const double products = Real(planes * (planes + 1) * tile_m * tile_n) * depth / rate * 1e9;
    const double chunks = Real((tile_m + tile_n) * planes * 2 * profile.sms) * depth /
                          profile.l2_gbps;
    // Bytes that blocks which run at the same time read of either operand, once each.
    const int64_t group = at["group_m"];
    const int64_t lines = group * tile_m + CeilDiv(profile.sms, group) * tile_n;
    const double fetched = Real(lines * planes * 2) * depth / profile.dram_gbps;
    return std::max(products, chunks) + costs.split_float_exposed * fetched +
           costs.split_float_tile_ns;
  }
  /// Arguments that hold scales. Kernels without scales do not read them: any workspace will do.
  struct ScaleArguments {
    std::string rows = "@repair_flags", columns = rows, row_scales = rows, column_scales = rows;
  };
  static ScaleArguments Scales(const Chosen& at) {
    if (at["planes"] == 3) return {};
    return {"@rows", "@columns", "@row_scales", "@column_scales"};
  }
  LaunchStep& AddLaunch(LaunchPlan& plan, const char* entry, const std::string& blocks,
                        const char* threads, const Arguments& arguments) const {
    LaunchStep step = Step(entry, blocks, Expr::MustParse(threads), arguments);
    step.grid[1] = Expr::MustParse(product_.batch);
    AddArguments(step, {"i64:" + product_.m, "i64:" + product_.n, "i64:" + product_.k});
    plan.steps.push_back(std::move(step));
    return plan.steps.back();
  }
  /// Steps 1 and 2: magnitudes, if planes need scales, and planes.
  void AddSplit(const Chosen& at, LaunchPlan& plan) const {
    const MatrixProduct& p = product_;
    const ScaleArguments scales = Scales(at);
    if (at["planes"] < 3) {
      const std::string of_b = p.b_transposed
                                   ? fmt::format("ceil_div({}, 8)", p.n)
                                   : fmt::format("ceil_div({}, 128) * {}", p.n, kRowParts);
      AddLaunch(plan, "measure", fmt::format("ceil_div({}, 8) + {}", p.m, of_b), "256",
                {p.a.tensor, p.b.tensor, scales.rows, scales.columns});
    }
    AddLaunch(plan, "split",
              fmt::format("({} + {}) // {} * {}", LinesOfA(), LinesOfB(), kLines, Groups()), "256",
              {p.a.tensor, p.b.tensor, "@a_planes", "@b_planes", "@a_extents", "@b_extents",
               scales.rows, scales.columns, scales.row_scales, scales.column_scales});
  }
  /// Steps 3 and 4: the product, and the repair of results that may be wrong. A block has as many
  /// tiles as a device full of blocks needs at the task's size; smaller sizes have fewer blocks.
  void AddProduct(const Chosen& at, LaunchPlan& plan) const {
    const MatrixProduct& p = product_;
    const ScaleArguments scales = Scales(at);
    LaunchStep& multiply = AddLaunch(
        plan, "multiply_planes",
        fmt::format("ceil_div(ceil_div({}, tile_m) * {}, {})", p.m, TilesAcross(),
                    TilesPerBlock(at)),
        "(tile_m // 64 + 1) * 128",
        {"@a_planes", "@b_planes", "@a_extents", "@b_extents", scales.row_scales,
         scales.column_scales, p.c.tensor, "@repair_flags"});
    AddArguments(multiply, p.epilogue_arguments);
    multiply.shared_bytes = Expr::MustParse(SharedText());
    LaunchStep& repair = AddLaunch(
        plan, "repair",
        fmt::format("min(ceil_div({}, 16) * {}, {})", p.m, TilesAcross(), 8 * profile_.sms),
        "tile_n", {p.a.tensor, p.b.tensor, p.c.tensor, "@repair_flags"});
    AddArguments(repair, p.epilogue_arguments);
  }
  /// Elements of a row that are moved at once.
  static int64_t step(int64_t extent) { return extent % 4 == 0 ? 4 : 1; }
  static std::string SharedText() {
    return fmt::format("(tile_m + tile_n) // {} * planes * {} * stages + 16 * stages", kLines,
                       kPlaneBytes);
  }
  /// Rows and columns of whole tiles; k with the zeros behind it; groups of chunks that blocks
  /// split.
  std::string LinesOfA() const {
    return fmt::format("(ceil_div({}, tile_m) * tile_m)", product_.m);
  }
  std::string LinesOfB() const {
    return fmt::format("(ceil_div({}, tile_n) * tile_n)", product_.n);
  }
  std::string TilesAcross() const { return fmt::format("ceil_div({}, tile_n)", product_.n); }
  std::string Depth() const {
    return fmt::format("(ceil_div({0}, {1} * promote) * {1} * promote)", product_.k, kDepth);
  }
  std::string Groups() const {
    return fmt::format("ceil_div({}, {})", Depth(), kDepth * kChunksPerGroup);
  }
  int64_t TilesPerBlock(const Chosen& at) const {
    const int64_t tiles = CeilDiv(m_, at["tile_m"]) * CeilDiv(n_, at["tile_n"]);
    return std::min(tiles, CeilDiv(tiles * batch_, profile_.sms));
  }

  void AddWorkspaces(bool scaled, LaunchPlan& plan) const {
    const auto add = [&](const char* name, bool batched, const std::string& bytes) {
      plan.workspaces.push_back(
          {name,
           Expr::MustParse(batched ? fmt::format("({}) * ({})", product_.batch, bytes) : bytes)});
    };
    const MatrixProduct& p = product_;
    add("a_planes", p.a_batched, fmt::format("{} * {} * planes * 2", LinesOfA(), Depth()));
    add("b_planes", p.b_batched, fmt::format("{} * {} * planes * 2", LinesOfB(), Depth()));
    add("a_extents", p.a_batched, fmt::format("{} // {} * {} * 8", LinesOfA(), kLines, Groups()));
    add("b_extents", p.b_batched, fmt::format("{} // {} * {} * 8", LinesOfB(), kLines, Groups()));
    add("repair_flags", true, fmt::format("{} // 16 * {}", LinesOfA(), TilesAcross()));
    if (!scaled) return;
    add("rows", p.a_batched, fmt::format("({}) * 4", p.m));
    add("columns", p.b_batched, fmt::format("({}) * {}", p.n, p.b_transposed ? 4 : kRowParts * 4));
    add("row_scales", p.a_batched, fmt::format("({}) * 4", p.m));
    add("column_scales", p.b_batched, fmt::format("({}) * 4", p.n));
  }

  SourceUnit Source(const Chosen& at) const {
    ConstantBlock constants;
    constants.Line(
        fmt::format("typedef float T;\n#define MMA_TYPE \"{}\"", kPlanes[at["planes"] - 1].type));
    constants.Define("PLANES", at["planes"]);
    constants.Ints(at, {"tile_m", "tile_n", "stages"});
    constants.Int("STAGE_BYTES",
                  (at["tile_m"] + at["tile_n"]) / kLines * at["planes"] * kPlaneBytes);
    constants.Int("PROMOTE", at["promote"], "chunks along k").Int("GROUP_M", at["group_m"]);
    constants.Bool("A_BATCHED", product_.a_batched).Bool("B_BATCHED", product_.b_batched);
    constants.Bool("B_TRANSPOSED", product_.b_transposed, "b is [n, k]");
    constants.Bool("A_ALIGNED", step(k_) > 1, "rows of a start at multiples of 16 bytes");
    constants.Bool("B_ALIGNED", step(product_.b_transposed ? k_ : n_) > 1)
        .Bool("C_ALIGNED", step(n_) > 1);
    const std::string multiply = WgmmaText(
        {.columns = at["tile_n"], .b_transposed = product_.b_transposed ? "0" : "1"});
    return Emit(at, constants,
                {embed::kMmaCommonCuh, embed::kSplitFloatCuh, product_.EpilogueText(),
                 embed::kResultIndexCuh, embed::kTileOrderCuh, embed::kWgmmaCommonCuh,
                 embed::kTensorCopiesCuh, multiply, embed::kGemmSplitFloatCu});
  }

  MatrixProduct product_;
  int64_t m_, n_, k_, batch_;
};

}  // namespace

std::unique_ptr<ScheduleTemplate> MakeSplitFloatGemm(const KernelSpec& spec,
                                                     const DeviceProfile& profile,
                                                     const MatrixProduct& product) {
  if (!CapabilitiesOf(profile).wgmma || product.triangle != 0) return nullptr;
  for (const std::string& extent : {product.m, product.n, product.k}) {
    if (SizeOf(extent, spec) > kMost) return nullptr;
  }
  return SizeOf(product.batch, spec) <= 65535
             ? std::make_unique<SplitFloatGemm>(spec, profile, product)
             : nullptr;
}

}  // namespace atunner
