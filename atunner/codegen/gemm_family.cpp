// Matrix products: float16 and bfloat16 on tensor cores, float32 with fused multiply-adds.
#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/form_family.h"
#include "atunner/codegen/maps_product.h"
#include "atunner/codegen/planes_gemm.h"
#include "atunner/codegen/simt_template.h"
#include "atunner/codegen/tensor_template.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// One row and column; and tiles that are partly filled in all three directions, for a source whose rows of a and b are
/// aligned to `k_step` and `n_step` elements.
std::vector<Dims> PartialTiles(const ParameterSpace& space, const Configuration& configuration, int64_t k_step,
                               int64_t n_step) {
  const auto at = [&](const char* name) { return GetInt(space, configuration, name); };
  return {{{"M", 1}, {"N", n_step}, {"K", k_step}},
          {{"M", at("tile_m") + 3}, {"N", at("tile_n") / 2 + n_step}, {"K", 3 * at("tile_k") + k_step}}};
}

/// Any size whose rows of a and b are whole multiples of what the source moves at once. Extents are counted in 31 bits.
SizeFreedom FreeExtents(int64_t k_step, int64_t n_step) {
  SizeFreedom freedom{{"M", "N", "K"}, {}};
  for (const char* extent : {"K", "N"})
    freedom.constraints.push_back({Expr::MustParse(fmt::format("{} <= {}", extent, INT32_MAX / 2)), "31-bit counters"});
  if (k_step > 1) freedom.constraints.push_back(WholeSteps("K", k_step));
  if (n_step > 1) freedom.constraints.push_back(WholeSteps("N", n_step));
  return freedom;
}

std::vector<Widened> Unaligned(bool a, bool b) {
  std::vector<Widened> tensors;
  if (a) tensors.push_back({"a", "M", "K"});
  if (b) tensors.push_back({"b", "K", "N"});
  return tensors;
}

class TensorCoreGemm : public TensorTemplate {
 public:
  TensorCoreGemm(const KernelSpec& spec, const DeviceProfile& profile)
      : TensorTemplate(spec, profile, MainLoopFor(profile),
                       {.m = spec.dims.at("M"), .n = spec.dims.at("N"), .k = spec.dims.at("K")}),
        a_align_(Alignment(extents_.k)),
        b_align_(Alignment(extents_.n)) {
    const bool aligned = a_align_ == 8 && b_align_ == 8;
    space_.parameters.push_back({"widen", aligned ? Integers({0}) : Integers({1, 0}),
                                 "copy operands whose rows are no multiples of 16 bytes into ones that are"});
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const bool widen = Integer(configuration, "widen") != 0;
    const bool wide_a = widen && a_align_ != 8;
    const bool wide_b = widen && b_align_ != 8;
    ConstantBlock constants = TileConstants(configuration, false);
    constants.Int("A_ALIGN", wide_a ? 8 : a_align_, "elements at whose multiples rows of a start");
    constants.Int("B_ALIGN", wide_b ? 8 : b_align_);
    LaunchPlan plan = Plan(configuration, {});
    AddWidening(plan, Unaligned(wide_a, wide_b));
    LaunchStep step = TileStep(configuration, "gemm", "M", "N");
    AddArguments(step,
                 {wide_a ? "@wide_a" : "a", wide_b ? "@wide_b" : "b", Destination(configuration, "c"), "i64:M", "i64:N",
                  "i64:K", "i64:" + (wide_a ? Wide("K", 2) : "K"), "i64:" + (wide_b ? Wide("N", 2) : "N")});
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, "c", "M", "N");
    return RenderedKernel{EmitProduct(configuration, constants, embed::kGemmTensorCu, wide_a || wide_b),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return PartialTiles(space_, configuration, a_align_, b_align_);
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    // Widened operands are aligned at any size. What stays as it is keeps the alignment of the task's.
    const bool widen = Integer(configuration, "widen") != 0;
    return FreeExtents(widen && a_align_ != 8 ? 1 : a_align_, widen && b_align_ != 8 ? 1 : b_align_);
  }

 private:
  int64_t a_align_;
  int64_t b_align_;
};

/// On Hopper: matmul by tensor maps.
class MapsGemm : public MapsProduct {
 public:
  MapsGemm(const KernelSpec& spec, const DeviceProfile& profile)
      : MapsProduct(spec, profile,
                    {.a = {"a", spec.compute_dtype},
                     .b = {"b", spec.compute_dtype},
                     .c = {"c", spec.compute_dtype},
                     .m = "M",
                     .n = "N",
                     .k = "K"}) {}

  /// One row and column; and partly filled tiles, more than one, whose depth goes through all buffers more than once.
  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const int64_t tile_m = Integer(configuration, "tile_m");
    const int64_t turns = Integer(configuration, "stages") + 2;
    const int64_t rows = RowsFetched(configuration);
    return {{{"M", 1}, {"N", n_step()}, {"K", k_step()}},
            {{"M", rows < tile_m ? rows - 3 : tile_m + 3},
             {"N", Integer(configuration, "tile_n") / 2 + n_step()},
             {"K", turns * Integer(configuration, "tile_k") + k_step()}}};
  }
  SizeFreedom FreeSizes(const Configuration& configuration) const override {
    SizeFreedom freedom = FreeExtents(k_step(), n_step());
    freedom.constraints.push_back(RowsThere("M", configuration));
    return freedom;
  }

 private:
  int64_t k_step() const { return wide_a() ? 1 : 8; }
  int64_t n_step() const { return wide_b() ? 1 : 8; }
};

class SimtGemm : public SimtTemplate {
 public:
  SimtGemm(const KernelSpec& spec, const DeviceProfile& profile)
      : SimtTemplate(spec, profile, {.m = spec.dims.at("M"), .n = spec.dims.at("N"), .k = spec.dims.at("K")}, false) {}

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    ConstantBlock constants = TileConstants(configuration);
    constants.Bool("A_ALIGNED", extents_.k % 4 == 0, "rows of a start at multiples of 16 bytes");
    LaunchPlan plan = Plan(configuration, {});
    LaunchStep step = ProductStep(configuration, "gemm", "M", "N");
    AddArguments(step, {"a", "b", Destination(configuration, "c"), "i64:M", "i64:N", "i64:K"});
    plan.steps.push_back(step);
    FinishSplit(configuration, plan, "c", "M", "N");
    return RenderedKernel{Emit(configuration, constants,
                               {embed::kTileOrderCuh, embed::kSimtTileCuh, embed::kTileWalkersCuh, embed::kGemmSimtCu,
                                embed::kPlainFinishCuh, Split(configuration) ? embed::kSplitCuh : std::string_view()}),
                          std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return PartialTiles(space_, configuration, extents_.k % 4 == 0 ? 4 : 1, extents_.n % 4 == 0 ? 4 : 1);
  }
  SizeFreedom FreeSizes(const Configuration&) const override {
    return FreeExtents(extents_.k % 4 == 0 ? 4 : 1, extents_.n % 4 == 0 ? 4 : 1);
  }
};

bool Matches(const KernelSpec& spec) { return IsOperator(spec, "matmul"); }
Result<std::unique_ptr<ScheduleTemplate>> Bind(const KernelSpec& spec, const DeviceProfile& profile) {
  ATUNNER_RETURN_IF_ERROR(NeedsAmpere(spec, profile));
  const int64_t m = spec.dims.at("M"), n = spec.dims.at("N"), k = spec.dims.at("K");
  const bool single = spec.compute_dtype == DType::kFloat32;
  if (!single && MapsPay(profile, m, n, k, 2, false)) return std::make_unique<MapsGemm>(spec, profile);
  // Steps along k are counted in 31 bits.
  if (k > INT32_MAX / 2)
    return Fail(ErrorCode::kUnsupported, fmt::format("matmul over a depth of {}", k), "", "split K");
  if (single) return PlanesOr(std::make_unique<SimtGemm>(spec, profile), profile);
  return std::make_unique<TensorCoreGemm>(spec, profile);
}

}  // namespace

const Family& GemmFamily() {
  static const TaskFamily family("gemm", Matches, Bind);
  return family;
}

}  // namespace atunner
