#include "atunner/codegen/tensor_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "embed/families.h"

namespace atunner {
namespace {

/// Elements of a 16-bit type in 16 bytes.
constexpr int64_t kUnit = 8;

}  // namespace

int64_t Alignment(int64_t extent) {
  int64_t alignment = kUnit;
  while (extent % alignment != 0) alignment /= 2;
  return alignment;
}

void AddWidening(LaunchPlan& plan, const char* from, const char* to, const std::string& rows,
                 const std::string& width) {
  const std::string wide = fmt::format("(ceil_div({}, 8) * 8)", width);
  plan.workspaces.push_back({to, Expr::MustParse(fmt::format("{} * {} * 2", rows, wide))});
  LaunchStep step;
  step.entry = "widen";
  step.grid[0] = Expr::MustParse(fmt::format("min(ceil_div({} * {}, 2048), 4096)", rows, wide));
  step.block[0] = 256;
  step.args = {ArgBinding::Tensor(from), ArgBinding::Workspace(to),
               ArgBinding::Scalar(DType::kInt64, Expr::MustParse(rows)),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse(width)),
               ArgBinding::Scalar(DType::kInt32, Expr::MustParse(wide))};
  plan.steps.push_back(step);
}

TensorTemplate::TensorTemplate(const KernelSpec& spec, const DeviceProfile& profile, Extents extents)
    : ProductTemplate(spec, profile, extents),
      loop_(MainLoopFor(profile)),
      threads_(Expr::MustParse("32 * " + loop_.Warps())),
      registers_(Expr::MustParse(loop_.Registers())),
      // A persistent block stages 16 rows of each warp for the store behind its buffers, which are in use.
      shared_(Expr::MustParse(
          fmt::format("(tile_m + tile_n) * tile_k * 2 * stages + (32 * {} * min({}, 64) if persistent else 0)",
                      loop_.Warps(), loop_.WarpColumns()))) {
  space_.parameters = loop_.Parameters();
  space_.constraints = loop_.Constraints();
  Add(fmt::format("{} <= 255", registers_.text()), "registers of a thread");
  Add(fmt::format("{} * {} <= {}", registers_.text(), threads_.text(), profile.registers_per_sm),
      "registers of a block");
  Add(fmt::format("tile_m == 64 or tile_m < 2 * {}", extents.m), "more rows than there are");
  Add(fmt::format("tile_n == 64 or tile_n < 2 * {}", extents.n), "more columns than there are");
  AddOrderAndSplit();
  space_.parameters.push_back({"persistent", Integers({0, 1}),
                               "blocks that take one tile after the other, storing one while the next is fetched"});
  Add("persistent == 0 or split_k == 1", "a share is stored at once");
  Add(fmt::format("{} <= {}", shared_.text(), profile.shared_per_block), "shared memory");
  Add(fmt::format("persistent == 0 or ceil_div({}, tile_m) * ceil_div({}, tile_n) > {}", extents.m, extents.n,
                  profile.sms),
      "every block has one tile at most");
}

int64_t TensorTemplate::Evaluate(const Expr& expression, const Configuration& configuration) const {
  Bindings bindings;
  const std::vector<std::string> names = space_.Names();
  bindings.Add(names, configuration.values);
  return expression.EvaluateInt(bindings).value();
}

int64_t TensorTemplate::Threads(const Configuration& configuration) const { return Evaluate(threads_, configuration); }

int64_t TensorTemplate::SharedBytes(const Configuration& configuration) const {
  return Evaluate(shared_, configuration);
}

int64_t TensorTemplate::Resident(const Configuration& configuration) const {
  const int64_t registers = Evaluate(registers_, configuration) * Threads(configuration);
  const int64_t shared = SharedBytes(configuration) + profile_.shared_reserved_per_block;
  return std::clamp<int64_t>(std::min(profile_.shared_per_sm / shared, profile_.registers_per_sm / registers), 1, 8);
}

LaunchStep TensorTemplate::TileStep(const Configuration& configuration, const char* entry, const char* m,
                                    const char* n) const {
  LaunchStep step = ProductStep(configuration, entry, m, n);
  // As many tiles per block as a device full of blocks gets at the task's size; smaller sizes have fewer blocks.
  if (Persistent(configuration)) {
    const int64_t waves =
        std::max<int64_t>(1, (BlocksPerSm(configuration) + Resident(configuration) - 1) / Resident(configuration));
    step.grid[0] = Expr::MustParse(fmt::format("ceil_div({}, {})", step.grid[0].text(), waves));
  }
  return step;
}

ConstantBlock TensorTemplate::TileConstants(const Configuration& configuration, bool b_transposed) const {
  ConstantBlock block;
  block.Define("SPLIT_K", Integer(configuration, "split_k"));
  block.Line(Split(configuration) ? "typedef float OUT;" : "typedef T OUT;");
  block.Int("TILE_M", Integer(configuration, "tile_m")).Int("TILE_N", Integer(configuration, "tile_n"));
  loop_.AddConstants(chosen(configuration), block);
  block.Int("STAGES", Integer(configuration, "stages")).Int("GROUP_M", Integer(configuration, "group_m"));
  block.Int("RESIDENT", loop_.LaunchBound(chosen(configuration), Resident(configuration)),
            "blocks that an SM must hold");
  block.Bool("PERSISTENT", Persistent(configuration), "tile after tile");
  block.Bool("B_TRANSPOSED", b_transposed);
  block.Bool("C_ALIGNED", extents_.n % kUnit == 0, "rows of the result start at multiples of 16 bytes");
  return block;
}

SourceUnit TensorTemplate::EmitProduct(const Configuration& configuration, const ConstantBlock& constants,
                                       std::string_view kernel, bool widened) const {
  return Emit(configuration, constants,
              {embed::kMmaCommonCuh, embed::kTileOrderCuh, loop_.Text(chosen(configuration)), embed::kTileWalkersCuh,
               embed::kTileStoreCuh, kernel, widened ? embed::kWidenCuh : std::string_view(),
               Split(configuration) ? embed::kSplitCuh : std::string_view()});
}

std::optional<double> TensorTemplate::Cost(const Configuration& configuration, const DeviceProfile& profile) const {
  const int64_t resident = std::min(Resident(configuration), BlocksPerSm(configuration));
  const double peak = profile.PeakFlops(spec_.compute_dtype, true) / profile.sms;
  const double time = Time(configuration, peak * loop_.Efficiency(chosen(configuration), resident, profile), resident);
  // Storing one tile while the next is fetched hides the blocks' starts, all but the first.
  return Persistent(configuration) ? time * 0.98 : time;
}

}  // namespace atunner
