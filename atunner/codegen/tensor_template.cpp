#include "atunner/codegen/tensor_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "embed/families.h"

namespace atunner {
namespace {

/// ns from a copy's start to its bytes' arrival on Hopper while DRAM is busy: what a multiprocessor has under way, over
/// this, is what it copies.
constexpr double kCopyNs = 1160;
/// Elements of a 16-bit type in 16 bytes.
constexpr int64_t kUnit = 8;

}  // namespace

int64_t Alignment(int64_t extent, int64_t most) {
  while (extent % most != 0) most /= 2;
  return most;
}

std::string MainLoop::RegistersOfBlock() const { return fmt::format("{} * ceil_div({}, 4)", Registers(), Warps()); }

std::string Wide(const std::string& width, int64_t bytes, int64_t unit) {
  return fmt::format("(ceil_div({0}, {1}) * {1})", width, unit / bytes);
}

void AddWidening(LaunchPlan& plan, std::span<const Widened> tensors, int64_t bytes) {
  if (tensors.empty()) return;
  std::string blocks = "1";
  for (const auto& [from, rows, width, unit] : tensors) {
    const std::string wide = Wide(width, bytes, unit);
    plan.workspaces.push_back({"wide_" + from, Expr::MustParse(fmt::format("{} * {} * {}", rows, wide, bytes))});
    blocks = fmt::format("max({}, ceil_div({} * {}, {}))", blocks, rows, wide, 4096 / bytes);
  }
  LaunchStep step = Step("widen", fmt::format("min({}, 4096)", blocks), 256);
  step.grid[1] = Expr(static_cast<int64_t>(tensors.size()));
  // The kernel takes two; one alone is told twice.
  for (const auto& [from, rows, width, unit] : {tensors.front(), tensors.back()})
    AddArguments(step, {from, "@wide_" + from, "i64:" + rows, "i32:" + width, "i32:" + Wide(width, bytes, unit)});
  plan.steps.push_back(step);
}

TensorTemplate::TensorTemplate(const KernelSpec& spec, const DeviceProfile& profile, const MainLoop& loop,
                               Extents extents, const std::string& more_shared)
    : ProductTemplate(spec, profile, extents),
      loop_(loop),
      threads_(Expr::MustParse("32 * " + loop_.Warps())),
      registers_(Expr::MustParse(loop_.Registers())),
      shared_(Expr::MustParse(fmt::format("({} + {})", loop_.SharedBytes(), more_shared))) {
  space_.parameters = loop_.Parameters();
  space_.constraints = loop_.Constraints();
  Add(fmt::format("{} <= 255", registers_.text()), "registers of a thread");
  Add(fmt::format("{} * 128 <= {}", loop_.RegistersOfBlock(), profile.registers_per_sm), "registers of a block");
  Add(fmt::format("tile_m == 64 or tile_m < {}", 2 * extents.m), "more rows than there are");
  Add(fmt::format("tile_n == 64 or tile_n < {}", 2 * extents.n), "more columns than there are");
  AddOrderAndSplit();
  space_.parameters.push_back({"persistent", Integers({0, 1}),
                               "blocks that take one tile after the other, storing one while the next is fetched"});
  Add("persistent == 0 or split_k == 1", "a share is stored at once");
  AddShared(shared_.text());
  Add(fmt::format("persistent == 0 or ceil_div({}, tile_m) * ceil_div({}, tile_n) * {} > {}", extents.m, extents.n,
                  extents.batch, profile.sms),
      "every block has one tile at most");
  if (profile.cc_major < 9) return;
  space_.parameters.push_back({"in_cluster", Integers({0, 1}),
                               "a split's blocks form a cluster and add up in shared memory, without a second step"});
  Add("in_cluster == 0 or 2 <= split_k <= 8", "a cluster of one block, or one that finds no place");
  Add("in_cluster == 0 or (tile_n + 8) * 2 * tile_m <= (tile_m + tile_n) * tile_k * stages",
      "the sums take the place of the buffers");
}

int64_t TensorTemplate::Threads(const Configuration& configuration) const { return Evaluate(threads_, configuration); }

int64_t TensorTemplate::SharedBytes(const Configuration& configuration) const {
  return Evaluate(shared_, configuration);
}

int64_t TensorTemplate::Resident(const Configuration& configuration) const {
  const int64_t registers = Evaluate(registers_, configuration) * ((Threads(configuration) + 127) / 128 * 128);
  const int64_t shared = SharedBytes(configuration) + profile_.shared_reserved_per_block;
  return std::clamp<int64_t>(std::min(profile_.shared_per_sm / shared, profile_.registers_per_sm / registers), 1, 8);
}

LaunchStep TensorTemplate::TileStep(const Configuration& configuration, const char* entry, const std::string& m,
                                    const std::string& n, const std::string& batch) const {
  LaunchStep step = ProductStep(configuration, entry, m, n, batch);
  // As many tiles per block as a device full of blocks gets at the task's size; smaller sizes have fewer blocks.
  if (Persistent(configuration)) {
    const int64_t waves = std::max<int64_t>(1, CeilDiv(BlocksPerSm(configuration), Resident(configuration)));
    step.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, {})", step.grid[0].text(), waves));
  }
  if (InCluster(configuration)) step.cluster[1] = Expr::MustParse("split_k");
  return step;
}

ConstantBlock TensorTemplate::TileConstants(const Configuration& configuration, bool b_transposed) const {
  ConstantBlock block;
  if (!half_precision())
    block.Line("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\ntypedef float T;")
        .Line(fmt::format("#define MMA_TYPE \"{}\"", operands_ == DType::kFloat16 ? "f16" : "bf16"));
  block.Define("SPLIT_K", Integer(configuration, "split_k"));
  block.Line(fmt::format("typedef {} Operand;", SizeOf(operands_) == 1 ? "unsigned char" : CudaName(operands_)));
  block.Line(Split(configuration) ? "typedef float OUT;" : "typedef T OUT;");
  block.Ints(chosen(configuration), {"tile_m", "tile_n"});
  loop_.AddConstants(chosen(configuration), block);
  block.Ints(chosen(configuration), {"stages", "group_m"});
  block.Int("RESIDENT", loop_.LaunchBound(chosen(configuration), Resident(configuration)),
            "blocks that an SM must hold");
  block.Bool("PERSISTENT", Persistent(configuration), "tile after tile");
  block.Bool("B_TRANSPOSED", b_transposed);
  block.Bool("C_ALIGNED", extents_.n % kUnit == 0, "rows of the result start at multiples of 16 bytes");
  return block;
}

SourceUnit TensorTemplate::EmitProduct(const Configuration& configuration, const ConstantBlock& constants,
                                       std::string_view kernel, bool widened, std::string_view places) const {
  const std::string_view store = InCluster(configuration)                    ? embed::kClusterStoreCuh
                                 : Split(configuration) || !half_precision() ? embed::kShareStoreCuh
                                                                             : embed::kTileStoreCuh;
  return Emit(
      configuration, constants,
      {embed::kMmaCommonCuh, Finish(), embed::kTileOrderCuh,
       profile_.cc_major >= 9 ? embed::kClusterCuh : std::string_view(), loop_.Text(chosen(configuration)),
       places.empty() ? embed::kResultPlaceCuh : places, store, kernel, widened ? embed::kWidenCuh : std::string_view(),
       Split(configuration) ? embed::kSplitCuh : std::string_view()});
}

std::string TensorTemplate::Finish() const { return std::string(embed::kPlainFinishCuh); }

std::optional<double> TensorTemplate::Cost(const Configuration& configuration, const DeviceProfile& profile) const {
  const Chosen values = chosen(configuration);
  Pace pace;
  pace.resident = std::min(Resident(configuration), BlocksPerSm(configuration));
  pace.flops = profile.PeakFlops(operands_, true) / profile.sms * loop_.Efficiency(values, pace.resident, profile);
  if (Persistent(configuration)) pace.turn_ns = loop_.TurnNs(values);
  if (profile.cc_major == 9) {
    const int64_t ahead = (values["stages"] - 1) * (RowsFetched(configuration) + values["tile_n"]) * values["tile_k"] *
                          static_cast<int64_t>(SizeOf(operands_));
    pace.copied = std::min(pace.copied, Real(ahead * pace.resident) / kCopyNs);
  }
  return Time(configuration, pace);
}

}  // namespace atunner
