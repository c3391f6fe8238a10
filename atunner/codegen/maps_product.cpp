#include "atunner/codegen/maps_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/model/accuracy.h"
#include "embed/families.h"

namespace atunner {
namespace {

/// Operands of fewer rows and columns than this are read by few blocks.
constexpr int64_t kMostStreamed = 1024;

int64_t Number(const std::string& text, const KernelSpec& spec) {
  Bindings bindings;
  bindings.Add(spec.dims);
  return Expr::MustParse(text).EvaluateInt(bindings).value();
}

Operands KindOf(const ProductParts& parts) {
  if (SizeOf(parts.a.dtype) == 2) return Operands::k16Bits;
  return IsFloat(parts.a.dtype) ? Operands::kFloat8 : Operands::kInt8;
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

}  // namespace

MapsProduct::MapsProduct(const KernelSpec& spec, const DeviceProfile& profile, ProductParts parts)
    : TensorTemplate(spec, profile, MapsLoop(KindOf(parts)),
                     {.m = Number(parts.m, spec), .n = Number(parts.n, spec), .k = Number(parts.k, spec)},
                     fmt::format("tile_m // group_rows * (1 + alternate) * tile_n * {}", parts.column_bytes)),
      parts_(std::move(parts)),
      bytes_(static_cast<int64_t>(SizeOf(parts_.a.dtype))),
      wide_a_(extents_.k * bytes_ % 16 != 0),
      wide_b_((parts_.b_transposed ? extents_.k : extents_.n) * bytes_ % 16 != 0) {
  operands_ = parts_.a.dtype;
  element_ = parts_.c.dtype;
  // What many blocks read at different times should stay in L2.
  const bool streams = std::min(extents_.m, extents_.n) <= kMostStreamed;
  space_.parameters.push_back({"stream", streams ? Integers({1, 2, 0}) : Integers({0}),
                               "operands whose elements leave L2 first: b, both, none"});
  // Sums in the tensor core keep 14 bits. The plain kernel has those of 128 products; of 256 they err twice as much.
  const bool rough = AccuracyOf(spec) == Accuracy::kFast || spec.tolerance.relative;
  if (KindOf(parts_) == Operands::kFloat8 && !rough) {
    Add(fmt::format("1 <= promote <= {}", AccuracyOf(spec) == Accuracy::kStrict ? 1 : 2),
        "longer sums in the tensor core are too rough");
  }
  if (!half_precision()) Add("in_cluster == 0", "a cluster stores 16 bits");
  Add("alternate == 0 or persistent == 1", "one tile needs no turns");
}

Result<RenderedKernel> MapsProduct::Render(const Configuration& configuration) const {
  const auto& [a, b, c, m, n, k, column_bytes, b_transposed] = parts_;
  LaunchPlan plan = Plan(configuration, {});
  std::vector<Widened> widened;
  if (wide_a_) widened.push_back({a.tensor, m, k});
  if (wide_b_) widened.push_back({b.tensor, b_transposed ? n : k, b_transposed ? k : n});
  AddWidening(plan, widened, bytes_);
  LaunchStep step = TileStep(configuration, "gemm", m, n);
  step.args = {Map(wide_a_, a, k, m, RowsFetched(configuration)),
               b_transposed ? Map(wide_b_, b, k, n, Integer(configuration, "tile_n"))
                            : Map(wide_b_, b, n, k, Integer(configuration, "tile_k")),
               Destination(configuration, c.tensor)};
  for (const std::string& extent : {m, n, k})
    step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse(extent)));
  for (ArgBinding& argument : FinishArguments()) step.args.push_back(std::move(argument));
  plan.steps.push_back(step);
  FinishSplit(configuration, plan, c.tensor, m, n);
  ConstantBlock constants = TileConstants(configuration, b_transposed);
  constants.Int("STREAM", Integer(configuration, "stream"), "operands that leave L2 first: 1 = b, 2 = both");
  constants.Int("A_ROWS", RowsFetched(configuration), "of a's tile that are fetched");
  if (bytes_ == 1)
    constants.Line(
        fmt::format("#define A_TYPE \"{}\"\n#define B_TYPE \"{}\"", ProductType(a.dtype), ProductType(b.dtype)));
  return RenderedKernel{EmitProduct(configuration, constants, embed::kGemmMapsCu, !widened.empty()), std::move(plan)};
}

/// The larger operand is what would drive others out.
bool MapsProduct::Streams(const Configuration& configuration) const {
  return Integer(configuration, "stream") >= (extents_.m > extents_.n ? 2 : 1);
}

Constraint MapsProduct::RowsThere(const std::string& m, const Configuration& configuration) const {
  const int64_t rows = RowsFetched(configuration);
  const bool partial = rows < Integer(configuration, "tile_m");
  return {Expr::MustParse(fmt::format("{} <= {}", m, partial ? rows : INT32_MAX / 2)),
          partial ? "the rows of the only tile that are fetched" : "31-bit counters"};
}

ArgBinding MapsProduct::Map(bool wide, const ProductParts::Part& part, const std::string& columns,
                            const std::string& rows, int64_t box_rows) const {
  TensorView view{.dims = {Expr::MustParse(columns), Expr::MustParse(rows)},
                  .strides = {Expr::MustParse(wide ? Wide(columns, bytes_) : columns)},
                  .box = {Expr(128 / bytes_), Expr(box_rows)},
                  .swizzle_bytes = 128};
  return wide ? ArgBinding::WorkspaceMap("wide_" + part.tensor, part.dtype, std::move(view))
              : ArgBinding::Map(part.tensor, part.dtype, std::move(view));
}

bool MapsPay(const DeviceProfile& profile, int64_t m, int64_t n, int64_t k, int64_t bytes, bool b_transposed) {
  constexpr int64_t kOften = 256;
  // Coordinates have 31 bits.
  if (profile.cc_major != 9 || std::max({m, n, k}) > INT32_MAX / 2) return false;
  const auto pays = [&](int64_t width, int64_t reads) { return width * bytes % 16 == 0 || reads >= kOften; };
  return pays(k, n) && pays(b_transposed ? k : n, m);
}

}  // namespace atunner
