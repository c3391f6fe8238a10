#include "atunner/codegen/matmul/product_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/model/value/capabilities.h"
#include "embed/families.h"

namespace atunner {

std::string MainLoop::RegistersOfBlock() const {
  return fmt::format("{} * ceil_div({}, 4)", Registers(), Warps());
}

ProductTemplate::ProductTemplate(const KernelSpec& spec, const DeviceProfile& profile,
                                 const MainLoop& loop, Extents extents, DType operands,
                                 DType result, const std::string& more_shared)
    : BoundTemplate(spec, profile),
      loop_(loop),
      extents_(extents),
      operands_(operands),
      threads_(Expr::MustParse("32 * " + loop_.Warps())),
      registers_(Expr::MustParse(loop_.Registers())),
      shared_(Expr::MustParse(fmt::format("({} + {})", loop_.SharedBytes(), more_shared))) {
  element_ = result;
  space_.parameters = loop_.Parameters();
  space_.constraints = loop_.Constraints();
  Add(fmt::format("{} <= 255", registers_.text()), "registers of a thread");
  Add(fmt::format("{} * 128 <= {}", loop_.RegistersOfBlock(), profile.registers_per_sm),
      "registers of a block");
  const std::string least = ToString(space_.parameters[0].values[0]);
  Add(fmt::format("tile_m == {} or tile_m < {}", least, 2 * extents.m), "more rows than there are");
  Add(fmt::format("tile_n == {} or tile_n < {}", least, 2 * extents.n),
      "more columns than there are");
  AddShared(shared_.text());
  AddOrders();
}

void ProductTemplate::AddOrders() {
  space_.parameters.push_back(
      {"group_m", Integers({1, 4, 8, 16}), "tile rows that consecutive blocks go down"});
  space_.parameters.push_back(
      {"split_k", Integers({1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128}),
       "blocks that share one tile of the result, each with its part of the depth"});
  Add(fmt::format("split_k == 1 or {} >= 4 * tile_k * split_k", extents_.k),
      "too little depth to split");
  Add(fmt::format(
          "split_k == 1 or ceil_div({}, tile_m) * ceil_div({}, tile_n) * {} * split_k <= {}",
          extents_.m, extents_.n, extents_.batch, 4 * profile_.sms),
      "enough blocks without a split");
  if (loop_.Persists()) AddPersistent();
  // A cluster stores 16 bits.
  if (loop_.OnTensorCores() && CapabilitiesOf(profile_).clusters && half_precision())
    AddClusterSplit();
}

void ProductTemplate::AddPersistent() {
  space_.parameters.push_back(
      {"persistent", Integers({0, 1}),
       "blocks that take one tile after the other, storing one while the next is fetched"});
  Add("persistent == 0 or split_k == 1", "a partial sum is stored at once");
  Add(fmt::format("persistent == 0 or ceil_div({}, tile_m) * ceil_div({}, tile_n) * {} > {}",
                  extents_.m, extents_.n, extents_.batch, profile_.sms),
      "every block has one tile at most");
}

void ProductTemplate::AddClusterSplit() {
  space_.parameters.push_back(
      {"in_cluster", Integers({0, 1}),
       "a split's blocks form a cluster and add up in shared memory, without a second step"});
  Add("in_cluster == 0 or 2 <= split_k <= 8", "a cluster of one block, or one that finds no place");
  Add("in_cluster == 0 or (tile_n + 8) * 2 * tile_m <= (tile_m + tile_n) * tile_k * stages",
      "the sums take the place of the buffers");
}

std::vector<Choices> ProductTemplate::Ways() const {
  std::vector<Choices> ways;
  for (const std::vector<int64_t>& start : loop_.Starts()) {
    Choices& choices = ways.emplace_back(AllValues());
    for (size_t i = 0; i < start.size(); ++i) choices[i] = {start[i]};
    choices[start.size()] = {int64_t{8}};
  }
  return ways;
}

LaunchStep ProductTemplate::TileStep(const Chosen& at, const char* entry, const std::string& m,
                                     const std::string& n, const std::string& batch) const {
  std::string blocks = fmt::format("ceil_div({}, tile_m) * ceil_div({}, tile_n) * ({})", m, n,
                                   batch);
  // As many tiles per block as a device full of blocks gets at the task's size; smaller sizes have
  // fewer blocks.
  if (Persistent(at)) {
    const int64_t waves = std::max<int64_t>(1, CeilDiv(BlocksPerSm(at), Resident(at)));
    blocks = fmt::format("ceil_div({}, {})", blocks, waves);
  }
  LaunchStep step = Step(entry, blocks, Expr(Threads(at)));
  step.grid[1] = Expr::MustParse("split_k");
  step.shared_bytes = Expr(Evaluate(shared_, at));
  if (InCluster(at)) step.cluster[1] = Expr::MustParse("split_k");
  return step;
}

ArgBinding ProductTemplate::Destination(const Chosen& at, const std::string& output) const {
  return Split(at) ? ArgBinding::Workspace("partial_sums") : ArgBinding::Tensor(output);
}

void ProductTemplate::FinishSplit(const Chosen& at, LaunchPlan& plan, const std::string& output,
                                  const std::string& m, const std::string& n) const {
  if (!Split(at)) return;
  const std::string elements = fmt::format("({}) * ({})", m, n);
  plan.workspaces.push_back({"partial_sums", Expr::MustParse(elements + " * 4 * split_k")});
  const int64_t at_once = at["split_k"] < 16 ? 1024 : 128;  // elements of a block (split_k.cuh)
  LaunchStep step = Step("add_partial_sums",
                         fmt::format("min(ceil_div({}, {}), 4096)", elements, at_once), 256,
                         {"@partial_sums", output, "i64:" + elements});
  AddArguments(step, EpilogueArguments());
  plan.steps.push_back(step);
}

ConstantBlock ProductTemplate::TileConstants(const Chosen& at, bool b_transposed) const {
  ConstantBlock block;
  if (!half_precision() && loop_.OnTensorCores())
    block.Line("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n")
        .Line(
            fmt::format("#define MMA_TYPE \"{}\"", operands_ == DType::kFloat16 ? "f16" : "bf16"));
  if (!half_precision()) block.Line("typedef float T;");
  block.Define("SPLIT_K", at["split_k"]);
  block.Line(fmt::format("typedef {} Operand;",
                         SizeOf(operands_) == 1 ? "unsigned char" : CudaName(operands_)));
  block.Line(Split(at) ? "typedef float OUT;" : "typedef T OUT;");
  block.Ints(at, {"tile_m", "tile_n"});
  loop_.AddConstants(at, block);
  block.Ints(at, {"stages", "group_m"});
  block.Int("RESIDENT", loop_.Persists() ? Resident(at) : 1, "blocks that an SM must hold");
  block.Bool("PERSISTENT", Persistent(at), "a block computes one tile after another");
  block.Bool("B_TRANSPOSED", b_transposed);
  const auto unit = static_cast<int64_t>(16 / SizeOf(element_));
  block.Bool("C_ALIGNED", extents_.n % unit == 0,
             "rows of the result start at multiples of 16 bytes");
  return block;
}

SourceUnit ProductTemplate::EmitProduct(const Chosen& at, const ConstantBlock& constants,
                                        std::string_view kernel, bool widened,
                                        std::string_view places) const {
  const bool tensor = loop_.OnTensorCores(), shares = Split(at) || !half_precision();
  const std::string_view store = !tensor         ? embed::kSimtStoreCuh
                                 : InCluster(at) ? embed::kClusterStoreCuh
                                 : shares        ? embed::kPartialSumStoreCuh
                                                 : embed::kTileStoreCuh;
  return Emit(at, constants,
              {TextIf(tensor, embed::kMmaCommonCuh), Epilogue(), embed::kTileOrderCuh,
               TextIf(tensor && CapabilitiesOf(profile_).clusters, embed::kClusterCuh),
               loop_.Text(at), places.empty() ? embed::kResultIndexCuh : places, store, kernel,
               TextIf(widened, embed::kWidenCuh), TextIf(Split(at), embed::kSplitKCuh)});
}

int64_t ProductTemplate::Resident(const Chosen& at) const {
  const int64_t registers = Evaluate(registers_, at) * ((Threads(at) + 127) / 128 * 128);
  const int64_t shared = Evaluate(shared_, at) + profile_.shared_reserved_per_block;
  return std::clamp<int64_t>(
      std::min(profile_.shared_per_sm / shared, profile_.registers_per_sm / registers), 1, 8);
}

int64_t ProductTemplate::RowsFetched(const Chosen& at) const {
  return std::min(at["tile_m"], (extents_.m + 7) / 8 * 8);
}

int64_t ProductTemplate::BlocksPerSm(const Chosen& at) const {
  const int64_t tiles = CeilDiv(extents_.m, at["tile_m"]) * CeilDiv(extents_.n, at["tile_n"]) *
                        extents_.batch;
  const int64_t split = at["split_k"];
  if (!InCluster(at)) return CeilDiv(tiles * split, profile_.sms);
  const double places = Real(profile_.sms / split) *
                        (split > 2 ? CostsOf(profile_).gemm_cluster_sms : 1.0);
  return CeilDiv(tiles, std::max<int64_t>(1, static_cast<int64_t>(places)));
}

double ProductTemplate::RereadBytes(const Chosen& at, const Pace& pace) const {
  const int64_t rows = CeilDiv(extents_.m, at["tile_m"]);
  const int64_t group = std::min(rows, at["group_m"]);
  const int64_t blocks = rows * CeilDiv(extents_.n, at["tile_n"]) * at["split_k"];
  const double b = Real(extents_.n * extents_.k) * Real(SizeOf(operands_));
  if (b <= Real(profile_.l2_bytes)) return 0;
  // Data that leaves L2 first is gone unless the next block reads it.
  const int64_t times = group == 1 && Streams(at)
                            ? rows
                            : std::min(CeilDiv(rows, group),
                                       CeilDiv(blocks, profile_.sms * pace.resident));
  return b * Real(times - 1);
}

std::optional<double> ProductTemplate::Cost(const Configuration& configuration,
                                            const DeviceProfile& profile) const {
  const Chosen at = chosen(configuration);
  const bool tensor = loop_.OnTensorCores();
  const CostConstants& costs = CostsOf(profile);
  Pace pace{.copied = costs.gemm_copied, .turn_ns = costs.gemm_turn_ns};
  pace.resident = std::min(Resident(at), BlocksPerSm(at));
  pace.flops = profile.PeakFlops(operands_, tensor) / profile.sms *
               loop_.Efficiency(at, pace.resident, profile);
  if (Persistent(at)) pace.turn_ns = loop_.TurnNs(at, costs);
  if (tensor && CapabilitiesOf(profile).wgmma) {
    const int64_t ahead = (at["stages"] - 1) * (RowsFetched(at) + at["tile_n"]) * at["tile_k"] *
                          BytesOf(operands_);
    pace.copied = std::min(pace.copied, Real(ahead * pace.resident) / costs.gemm_copy_ns);
  }
  return Time(at, pace);
}

double ProductTemplate::Time(const Chosen& at, const Pace& pace) const {
  const CostConstants& costs = CostsOf(profile_);
  const int64_t tile_m = at["tile_m"];
  const int64_t tile_n = at["tile_n"];
  const double split = Real(at["split_k"]);
  const int64_t per_sm = BlocksPerSm(at);
  const double depth = Real(extents_.k) * extents_.reached / split;
  const double size = Real(SizeOf(operands_));
  const double products = 2.0 * Real(per_sm * tile_m * tile_n) * depth / pace.flops * 1e9;
  const double copies = Real(per_sm * (RowsFetched(at) + tile_n)) * depth * size / pace.copied;
  const double elements = Real(extents_.k) * extents_.reached *
                          Real(extents_.batch * (extents_.m * CeilDiv(extents_.n, tile_n) +
                                                 extents_.n * CeilDiv(extents_.m, tile_m)));
  const double traffic = elements * size / (costs.gemm_l2_share * profile_.l2_gbps);
  // Data that enters L2 evicts data that others wrote, which then goes to DRAM.
  const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
  const auto l2 = Real(profile_.l2_bytes);
  const double evicted = Streams(at) ? costs.gemm_streamed * bytes
                                     : costs.gemm_evicted * std::min(bytes, l2);
  const double dram = (bytes + evicted + RereadBytes(at, pace)) /
                      (costs.gemm_dram_share * profile_.dram_gbps);
  const double turns = pace.turn_ns * Real(CeilDiv(per_sm, pace.resident) - 1);
  const double longest = std::max({products, copies, traffic, dram});
  double powers = 0;
  for (const double each : {products, copies, traffic, dram})
    powers += std::pow(each / longest, costs.gemm_overlap);
  return longest * std::pow(powers, 1 / costs.gemm_overlap) + costs.gemm_launch_ns + turns +
         AddingUpNs(at, costs);
}

double ProductTemplate::AddingUpNs(const Chosen& at, const CostConstants& costs) const {
  const int64_t tile_m = at["tile_m"], tile_n = at["tile_n"];
  const double split = Real(at["split_k"]);
  double meetings = 0;
  if (InCluster(at))
    meetings += costs.gemm_exchange_ns +
                costs.gemm_exchange_byte_ns * 4.0 * Real(std::min(tile_m, extents_.m) * tile_n);
  if (Split(at))
    meetings += costs.gemm_second_step_ns + Real(extents_.batch * extents_.m * extents_.n) * split *
                                                costs.gemm_partial_sum_bytes / profile_.dram_gbps;
  return meetings;
}

}  // namespace atunner
