// Sort and top-k: the indices and values of the first few elements of each row in sorted order. A
// block finds few elements of a row in two passes, of which the second finds the row in a cache;
// many elements by sorting the whole row, tile by tile if it is long; further kernels merge the
// tiles.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Combine;

constexpr int64_t kFew = 256;          // ranks that are found without sorting
constexpr int64_t kMostBytes = 65536;  // of a row that is sorted in shared memory
constexpr int64_t kTile = 8192;        // elements of longer rows that are

/// True if a bound would not help: K is large, or the type has none.
bool IsWhole(const graph::Node& sort, DType dtype) {
  return sort.type.shape.back().factor() > kFew || SizeOf(dtype) > 4 ||
         (!IsFloat(dtype) && dtype != DType::kInt32);
}
/// True if values and words of the whole row fit into shared memory.
bool Fits(const graph::TensorType& x) {
  return x.shape.back().factor() * (4 + BytesOf(x.dtype)) <= kMostBytes;
}

/// In another shape, perhaps: its elements lie in the same order.
const graph::Node& InputOf(const graph::ValidGraph& graph, const graph::Node& sort) {
  const graph::Node* node = &graph.node(sort.operands[0]);
  while (node->As<graph::Reshape>()) node = &graph.node(node->operands[0]);
  return *node;
}

std::optional<NodeForm> FormOf(const Task& task) {
  const graph::ValidGraph* fused = task.fused();
  const auto id = fused ? graph::OnlyNode<graph::Sort>(*fused) : std::nullopt;
  if (!id || graph::HasLongSorts(graph::Specialise(*fused, task.spec().dims).value()))
    return std::nullopt;
  const graph::Node& sort = fused->node(*id);
  const graph::Node& x = InputOf(*fused, sort);
  const graph::TensorType& sorted = fused->node(sort.operands[0]).type;
  const DType dtype = x.type.dtype;
  const bool ordered = (SizeOf(dtype) <= 4 || Fits(sorted)) &&
                       (!IsFloat(dtype) || SizeOf(dtype) > 1);
  const bool rows = sort.As<graph::Sort>()->axis + 1 == static_cast<int64_t>(sort.type.rank()) &&
                    sorted.shape.back().factor() < INT32_MAX / 64;
  const bool served = x.As<graph::Input>() && ordered && rows &&
                      graph::IsFinishedInPlace(*fused, *id, 8);
  return served ? std::optional(NodeForm{*fused, *id}) : std::nullopt;
}

class TopKTemplate : public GraphTemplate {
 public:
  TopKTemplate(const KernelSpec& spec, const DeviceProfile& profile, NodeForm form)
      : GraphTemplate(spec, profile, std::move(form.graph)),
        id_(form.node),
        sort_(graph_.node(form.node)) {
    space_.parameters = {
        {"block", Integers({32, 64, 128, 256, 512, 1024}), "threads, which share a row"}};
    Add(fmt::format("block <= 64 or block <= 2 * {} or block * {} < 2 * {}", Ranks(), Vector(),
                    Columns()),
        "more threads than elements");
    if (Whole()) {
      Add(fmt::format("{0} <= 16 * block or {0} <= 32 * block and block <= 512", Tile()),
          "a thread's words take registers");
      AddShared(SharedBytes());
    } else {
      Add(fmt::format("block >= {}", 2 * Ranks()), "two groups of threads for each rank");
    }
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const bool descending = sort_.As<graph::Sort>()->descending;
    ConstantBlock constants;
    constants.Define("WHOLE", Whole() ? 1 : 0)
        .Int("VEC", Vector(), "neighbouring elements that a thread reads at once")
        .Int("COLS", Columns(), "elements of a row")
        .Int("K", sort_.type.shape.back().factor(), "ranks that are wanted")
        .Int("RANKS", Ranks(), "of which a group has one each")
        .Bool("DESCENDING", descending)
        .Int("TILE", Tile(), "elements that are sorted together")
        .Line(fmt::format("typedef {} Compared;", graph::CudaArithmetic(x().dtype, false)))
        .Line(
            fmt::format("typedef unsigned {} Bits;  // bits of a value as a sort key", BitsName()))
        .Line("#define NEUTRAL " +
              graph::CudaLiteral(
                  x().dtype, graph::Neutral(descending ? Combine::kMax : Combine::kMin, x().dtype),
                  false));
    LaunchPlan plan = Plan(configuration, {});
    if (Runs())
      AddRuns(plan);
    else
      plan.steps.push_back(Launch("kernel", RowCount(), "block"));
    if (Whole()) plan.steps[0].shared_bytes = Expr::MustParse(SharedBytes());
    return RenderedKernel{Source(configuration, "sort and top-k", constants,
                                 {embed::kVectorCuh, embed::kCombineCuh, embed::kWarpReduceCuh,
                                  embed::kWarpScanCuh, embed::kTopkCuh, Kernel()}),
                          std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    // Vectors of a thread; or elements, where it sorts them.
    const int64_t share = Whole() ? Tile() / 32 : Columns() / Vector() / 8;
    const double off = std::log2(Real(chosen(configuration)["block"]) /
                                 Real(std::max<int64_t>(32, share)));
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps *
           (1 + CostsOf(profile).topk_block * std::fabs(off));
  }

 private:
  const graph::TensorType& x() const { return TypeOf(sort_.operands[0]); }
  int64_t Columns() const { return x().shape.back().factor(); }
  /// As wide as leaves each group of threads some vectors: neighbours may be alike (the best of
  /// parts are sorted), and groups that have them all, or none, bound little.
  int64_t Vector() const {
    const int64_t bytes = BytesOf(x().dtype),
                  shared = std::max<int64_t>(1, Columns() / (4 * Ranks()));
    const auto widths = VectorWidths(bytes, Columns(),
                                     Whole() ? 16 : std::min<int64_t>(16, shared * bytes));
    return std::get<int64_t>(widths.back());
  }
  bool Whole() const { return IsWhole(sort_, x().dtype); }
  /// True if rows are sorted in runs, which are merged.
  bool Runs() const { return Whole() && !Fits(x()); }
  int64_t Tile() const { return Runs() ? kTile : Columns(); }
  /// Shared memory of a tile: words, counts and totals of each warp, values.
  std::string SharedBytes() const {
    return fmt::format("ceil_div({}, block) * block * 4 + block // 32 * 516 + {} + 16", Tile(),
                       Tile() * BytesOf(x().dtype));
  }
  const char* BitsName() const {
    const size_t bytes = Whole() ? SizeOf(x().dtype) : 4;
    return bytes == 1 ? "char" : bytes == 2 ? "short" : bytes == 4 ? "int" : "long long";
  }
  /// Sorts tiles, then merges runs of them, which go back and forth.
  void AddRuns(LaunchPlan& plan) const {
    const std::string elements = fmt::format("({}) * {}", RowCount(), Columns());
    for (const char* runs : {"runs", "merged"})
      plan.workspaces.push_back({runs, Expr::MustParse(elements + " * 8")});
    plan.steps.push_back(
        Launch("tiles", fmt::format("({}) * {}", RowCount(), CeilDiv(Columns(), kTile)), "block"));
    AddArguments(plan.steps[0], {"@runs"});
    bool back = false;
    for (int64_t run = kTile; run < Columns(); run *= 2, back = !back) {
      plan.steps.push_back(Launch("kernel", fmt::format("ceil_div({}, block)", elements), "block"));
      AddArguments(plan.steps.back(), {back ? "@merged" : "@runs", back ? "@runs" : "@merged",
                                       fmt::format("i32:{}", run)});
    }
  }
  /// A power of two, at least as many as are wanted.
  int64_t Ranks() const {
    return static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(sort_.type.shape.back().factor())));
  }
  std::string RowCount() const {
    return graph::CountText({x().shape.begin(), x().shape.end() - 1});
  }
  std::string Kernel() const {
    const graph::Shape& shape = sort_.type.shape;
    graph::Coordinates at = graph::AxisCoordinates(shape);
    at.back().text = "rank";
    graph::ElementText elements(graph_, {.indent = "    "});
    elements.Know(id_, {"place", 0}, at);
    // what stands there
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph_.nodes().size()); ++id) {
      if (graph_.node(id).As<graph::Gather>() &&
          graph_.node(id).operands == std::vector{sort_.operands[0], id_} &&
          TypeOf(id).shape == shape)
        elements.Know(id, {"load<Compared>(value)", 0}, at);
    }
    std::string stores;
    for (const graph::Output& output : graph_.outputs())
      stores += fmt::format("    store(out_{}[row * K + rank], {});\n", output.name,
                            elements.Of(output.node, at).text);
    const std::string input = "in_" + InputOf(graph_, sort_).name + " + row * COLS";
    const std::string of_row = CoordinateLines(
        shape, [&](size_t axis) { return axis + 1 < shape.size(); }, "c", "row", "long long", "  ");
    const std::string found =
        "[&](int rank, long long place, const auto& value) {\n    if (rank >= K) return;\n" +
        elements.Scope(0) + elements.Scope(1) + stores + "  });\n}\n";
    if (!Runs())
      return KernelHead(spec_) + "  const long long row = blockIdx.x;\n" + of_row +
             (Whole() ? "  sort_tile(" + input + ", 0, " : "  first_of_row(" + input + ", ") +
             found;
    return fmt::format(
        R"(extern "C" __global__ void __launch_bounds__(BLOCK) tiles({0}, Key* __restrict__ runs) {{
  constexpr int TILES = (COLS + TILE - 1) / TILE;
  const long long row = blockIdx.x / TILES;
  sort_tile({1}, blockIdx.x % TILES * TILE, [&](int i, int place, const auto& value) {{
    runs[row * COLS + i] = (Key)order_of(value) << 32 | (unsigned)place;
  }});
}}
extern "C" __global__ void __launch_bounds__(BLOCK) kernel({0}, const Key* __restrict__ from, Key* __restrict__ to, int run) {{
  const long long i = blockIdx.x * (long long)BLOCK + threadIdx.x, row = i / COLS;
  if (row >= {2}) return;
{3}  merge({1}, from + row * COLS, to + row * COLS, (int)(i % COLS), run, {4})",
        KernelParameters(spec_), input, RowCount(), of_row, found);
  }

  graph::NodeId id_;
  graph::Node sort_;
};

}  // namespace

constinit const Family kTopKFamily{"topk", TryForm<TopKTemplate, FormOf>};

}  // namespace atunner
