#include "atunner/codegen/planes_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/wgmma_text.h"
#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Of planes.cuh: rows or columns of a chunk, its depth, bytes of one plane of it; chunks that a block splits; parts of
/// the depth that columns are measured in.
constexpr int64_t kLines = 64;
constexpr int64_t kDepth = 32;
constexpr int64_t kPlaneBytes = kLines * kDepth * 2;
constexpr int64_t kChunksPerGroup = 8;
constexpr int64_t kStretches = 16;
/// Rows and columns of whole tiles.
constexpr const char* kLinesOfA = "(ceil_div(M, tile_m) * tile_m)";
constexpr const char* kLinesOfB = "(ceil_div(N, tile_n) * tile_n)";
/// Ways to take an element apart, and the relative errors of results that they stay within where float32 errs least
/// beside them: in sums of pairs that nearly cancel.
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

/// Relative error that the task bears beyond what float32 makes; any where its accuracy policy asks for TF32's.
double Tolerated(const KernelSpec& spec) {
  if (AccuracyOf(spec) == Accuracy::kFast) return INFINITY;
  return spec.tolerance.absolute ? 0 : spec.tolerance.relative.value_or(0);
}

/// Of the tensor-core peak, what a block reaches that never waits; of the time that planes take from DRAM, what
/// products do not hide: measured on an H200.
constexpr double kSustained = 0.78;
constexpr double kExposed = 0.3;
/// ns of one step beside what it moves, and of a tile's first copies and last stores.
constexpr double kStepNs = 2500;
constexpr double kTileNs = 1500;

class PlanesGemm : public BoundTemplate {
 public:
  PlanesGemm(const KernelSpec& spec, const DeviceProfile& profile)
      : BoundTemplate(spec, profile), m_(dim("M")), n_(dim("N")), k_(dim("K")) {
    space_.parameters = {
        {"planes", PlanesWithin(Tolerated(spec)),
         "parts of an element: float16, or three bfloat16, which hold all of it"},
        {"tile_m", Integers({64, 128}), "rows of the result per block"},
        {"tile_n", Integers({64, 128, 256}), "columns of the result per block"},
        {"stages", Integers({2, 3, 4, 6, 8}), "buffers in shared memory"},
        {"promote", Integers({1, 2, 4}), "chunks of 32 products that the tensor core sums before registers do"},
        {"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"},
    };
    AddShared(SharedText());
    Add("planes == 1 or tile_n <= 128", "registers of a thread");
    Add("planes > 1 or promote == 1", "one plane is not promoted");
    Add("tile_m == 64 or tile_m < 2 * M", "more rows than there are");
    Add("tile_n == 64 or tile_n < 2 * N", "more columns than there are");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const bool scaled = chosen(configuration)["planes"] < 3;
    LaunchPlan plan = Plan(configuration, {});
    AddWorkspaces(scaled, plan);
    const auto launch = [&](const char* entry, const std::string& blocks, const char* threads, const Arguments& tensors,
                            const Arguments& of_scales) {
      LaunchStep step = Step(entry, blocks, Expr::MustParse(threads), tensors);
      AddArguments(step, {"i64:M", "i64:N", "i64:K"});
      if (scaled) AddArguments(step, of_scales);
      plan.steps.push_back(std::move(step));
    };
    if (scaled)
      launch("measure", fmt::format("ceil_div(M, 8) + ceil_div(N, 128) * {}", kStretches), "256",
             {"a", "b", "@rows", "@columns"}, {});
    launch("split", fmt::format("({} + {}) // {} * {}", kLinesOfA, kLinesOfB, kLines, Groups()), "256",
           {"a", "b", "@a_planes", "@b_planes", "@a_extents", "@b_extents"},
           {"@rows", "@columns", "@row_scales", "@column_scales"});
    // As many tiles per block as a device full of blocks gets at the task's size; smaller sizes have fewer blocks.
    launch("multiply_planes",
           fmt::format("ceil_div(ceil_div(M, tile_m) * ceil_div(N, tile_n), {})", TilesPerBlock(configuration)),
           "(tile_m // 64 + 1) * 128", {"@a_planes", "@b_planes", "@a_extents", "@b_extents", "c", "@suspects"},
           {"@row_scales", "@column_scales"});
    plan.steps.back().shared_bytes = Expr::MustParse(SharedText());
    launch("repair", fmt::format("min(ceil_div(M, 16) * ceil_div(N, tile_n), {})", 8 * profile_.sms), "tile_n",
           {"a", "b", "c", "@suspects"}, {});
    return RenderedKernel{Source(configuration), std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t k = step(k_), n = step(n_);
    return {{{"M", 1}, {"N", n}, {"K", k}},
            {{"M", at["tile_m"] + 3}, {"N", at["tile_n"] / 2 + n}, {"K", 9 * kDepth + k}}};
  }

  SizeFreedom FreeSizes(const Configuration&) const override {
    SizeFreedom freedom{{"M", "N", "K"}, {}};
    for (const char* extent : {"M", "N", "K"})
      freedom.constraints.push_back(
          {Expr::MustParse(fmt::format("{} <= {}", extent, INT32_MAX / 64)), "31-bit counters of blocks"});
    if (step(k_) > 1) freedom.constraints.push_back(WholeSteps("K", step(k_)));
    if (step(n_) > 1) freedom.constraints.push_back(WholeSteps("N", step(n_)));
    return freedom;
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const int64_t tile_m = at["tile_m"], tile_n = at["tile_n"];
    const int64_t planes = at["planes"];
    const double depth = Real(k_);
    // Copies of what the products wait for: a buffer being filled, and one group's work behind the other's.
    const double covered = std::min(1.0, 0.7 + 0.15 * Real(at["stages"] - 1));
    const double hidden = tile_m == 64 ? 0.85 : 1.0;
    const double promoted = 1.0 - 0.02 / Real(at["promote"]);
    const double fed = std::min(1.0, 0.86 + 0.14 * Real(tile_n) / 128.0);
    const double rate =
        profile.PeakFlops(DType::kFloat16, true) / profile.sms * kSustained * covered * hidden * promoted * fed;
    const double products = Real(planes * (planes + 1) * tile_m * tile_n) * depth / rate * 1e9;
    const double chunks = Real((tile_m + tile_n) * planes * 2 * profile.sms) * depth / profile.l2_gbps;
    // What blocks that run side by side read of either operand, once each.
    const int64_t group = at["group_m"];
    const int64_t lines = group * tile_m + CeilDiv(profile.sms, group) * tile_n;
    const double fetched = Real(lines * planes * 2) * depth / profile.dram_gbps;
    const double multiply =
        Real(TilesPerBlock(configuration)) * (std::max(products, chunks) + kExposed * fetched + kTileNs);
    const double operands = Real(m_ + n_) * depth * 4;
    const double result = Real(m_ * n_) * 4;
    // Operands that need scales are read twice, the second time from L2 where they fit; then planes are written.
    const double again = operands < 0.5 * Real(profile.l2_bytes) ? 0.5 : 1;
    const double second = planes < 3 ? again * operands : 0;
    const double written = operands / 2 * Real(planes);
    return multiply + (operands + second + written + result) / profile.dram_gbps + (planes < 3 ? 4 : 3) * kStepNs;
  }

 private:
  /// Elements of a row that are moved at once.
  static int64_t step(int64_t extent) { return extent % 4 == 0 ? 4 : 1; }
  static std::string SharedText() {
    return fmt::format("(tile_m + tile_n) // {} * planes * {} * stages + 16 * stages", kLines, kPlaneBytes);
  }
  /// k with the zeros behind it.
  static std::string Depth() { return fmt::format("(ceil_div(K, {0} * promote) * {0} * promote)", kDepth); }
  /// Groups of chunks that blocks split.
  static std::string Groups() { return fmt::format("ceil_div({}, {})", Depth(), kDepth * kChunksPerGroup); }
  int64_t TilesPerBlock(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    return CeilDiv(CeilDiv(m_, at["tile_m"]) * CeilDiv(n_, at["tile_n"]), profile_.sms);
  }

  static void AddWorkspaces(bool scaled, LaunchPlan& plan) {
    const auto add = [&](const char* name, const std::string& bytes) {
      plan.workspaces.push_back({name, Expr::MustParse(bytes)});
    };
    add("a_planes", fmt::format("{} * {} * planes * 2", kLinesOfA, Depth()));
    add("b_planes", fmt::format("{} * {} * planes * 2", kLinesOfB, Depth()));
    add("a_extents", fmt::format("{} // {} * {} * 8", kLinesOfA, kLines, Groups()));
    add("b_extents", fmt::format("{} // {} * {} * 8", kLinesOfB, kLines, Groups()));
    add("suspects", fmt::format("{} // 16 * ceil_div(N, tile_n)", kLinesOfA));
    if (!scaled) return;
    add("rows", "M * 4");
    add("columns", fmt::format("N * {}", kStretches * 4));
    add("row_scales", "M * 4");
    add("column_scales", "N * 4");
  }

  SourceUnit Source(const Configuration& configuration) const {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Line(fmt::format("#define MMA_TYPE \"{}\"", kPlanes[at["planes"] - 1].type));
    constants.Define("PLANES", at["planes"]);
    constants.Ints(at, {"tile_m", "tile_n", "stages"});
    constants.Int("STAGE_BYTES", (at["tile_m"] + at["tile_n"]) / kLines * at["planes"] * kPlaneBytes);
    constants.Int("PROMOTE", at["promote"], "chunks along k").Int("GROUP_M", at["group_m"]);
    constants.Bool("A_ALIGNED", step(k_) > 1, "rows of a start at multiples of 16 bytes");
    constants.Bool("B_ALIGNED", step(n_) > 1, "rows of b and of the result likewise");
    const std::string multiply = MultiplyText({.columns = at["tile_n"], .b_transposed = "1"});
    return Emit(configuration, constants,
                {embed::kPlanesCuh, embed::kTileOrderCuh, embed::kWgmmaCommonCuh, embed::kTensorCopiesCuh,
                 embed::kRingCuh, multiply, embed::kGemmPlanesCu});
  }

  int64_t m_, n_, k_;
};

}  // namespace

std::unique_ptr<ScheduleTemplate> MakePlanesGemm(const KernelSpec& spec, const DeviceProfile& profile) {
  if (profile.cc_major != 9) return nullptr;
  return std::make_unique<PlanesGemm>(spec, profile);
}

std::unique_ptr<ScheduleTemplate> PlanesOr(std::unique_ptr<ScheduleTemplate> simt, const DeviceProfile& profile) {
  std::unique_ptr<ScheduleTemplate> planes = MakePlanesGemm(simt->spec(), profile);
  if (!planes) return simt;
  const auto least = [&](const ScheduleTemplate& one) { return one.Cost(one.Default(), profile).value_or(INFINITY); };
  return least(*planes) < least(*simt) ? std::move(planes) : std::move(simt);
}

}  // namespace atunner
