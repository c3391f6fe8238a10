// Scatter: rows put, added, or the larger kept, at places of a table; gradients of embeddings. Every row of the result
// has one owner, which takes its updates in their order: nothing is added up by atomics. The places are gathered by row
// first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Coordinates;
using graph::ElementText;
using graph::NodeId;
using graph::Scatter;

std::optional<NodeForm> FormOf(const KernelSpec& spec) {
  auto fused = FusedGraphOf(spec);
  if (fused) fused = graph::MergeAxes(*fused);
  const auto id = fused ? OnlyNode<Scatter>(*fused) : std::nullopt;
  if (!id) return std::nullopt;
  const graph::Node& node = fused->node(*id);
  const auto* scatter = node.As<Scatter>();
  const auto known = [&](NodeId each) { return each == *id; };
  const bool operands =
      std::ranges::all_of(node.operands, [&](NodeId operand) { return IsServed(*fused, operand, 8); });
  const bool outputs = std::ranges::all_of(fused->outputs(), [&](const graph::Output& output) {
    return fused->node(output.node).type.shape == node.type.shape && IsServed(*fused, output.node, 8, known);
  });
  const bool rows = scatter->axis == 0 && scatter->batch == 0 && node.type.rank() == 2 &&
                    fused->node(node.operands[1]).type.rank() == 1;
  return rows && operands && outputs ? std::optional(NodeForm{*fused, *id}) : std::nullopt;
}

constexpr int kBlock = 256;  // threads of the kernels that gather places

class ScatterTemplate : public GraphTemplate {
 public:
  ScatterTemplate(const KernelSpec& spec, const DeviceProfile& profile, NodeForm form)
      : GraphTemplate(spec, profile, std::move(form.graph)), id_(form.node) {
    int64_t widest = 1;
    for (const ArgSpec& arg : spec_.args) {
      if (IsFloat(arg.dtype)) widest = std::max(widest, static_cast<int64_t>(SizeOf(arg.dtype)));
    }
    space_.parameters = {
        {"vector", VectorWidths(widest, Columns(), 16), "neighbouring elements that a thread moves at once"},
        {"threads_per_row", Integers({8, 32, 64, 128, 256, 512}), "threads that share a row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 32}), "rows of a block"},
        {"unroll", Integers({1, 2, 4, 8}), "updates of a row whose loads are in flight together"},
    };
    Add("threads_per_row * rows_per_block <= 1024 and threads_per_row * rows_per_block >= 64", "2 to 32 warps");
    Add(fmt::format("threads_per_row == 8 or threads_per_row * vector < 2 * {}", Columns()),
        "more threads than elements");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    LaunchPlan plan = Plan(configuration, {});
    const std::string rows = RowCount();
    std::string lists;
    for (const auto& [entry, count, body] : Lists()) {
      lists += Head(entry) + body + "}\n";
      plan.steps.push_back(Launch(entry, fmt::format("ceil_div({}, {})", count, kBlock), std::to_string(kBlock)));
    }
    plan.steps.push_back(
        Launch("kernel", fmt::format("ceil_div({}, rows_per_block)", rows), "threads_per_row * rows_per_block"));
    for (LaunchStep& step : plan.steps) AddArguments(step, {"@ends", "@begins", "@list"});
    plan.workspaces = {{"ends", Expr::MustParse(fmt::format("({} + 1) * 4", rows))},
                       {"begins", Expr::MustParse(rows + " * 4")},
                       {"list", Expr::MustParse(PlaceCount() + " * 4")}};
    return RenderedKernel{
        Source(configuration, "rows at places", ConstantBlock().Int("COLS", Columns(), "elements of a row"),
               {embed::kVectorCuh, embed::kCombineCuh, embed::kWarpScanCuh, embed::kSortCuh, embed::kScatterCuh, lists,
                Combine(at["vector"])}),
        std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double width = Real(at["vector"]) * static_cast<double>(SizeOf(TypeOf(id_).dtype) > 4 ? 8 : 4);
    const double per_thread = static_cast<double>(Columns()) / (Real(at["threads_per_row"]) * Real(at["vector"]));
    const double block = Real(at["threads_per_row"]) * Real(at["rows_per_block"]);
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps *
           (1 + 0.2 * std::log2(32 / std::min(32.0, width))) * (1 + 0.03 * std::fabs(std::log2(per_thread))) *
           (1 + 0.02 * std::fabs(std::log2(block / 256))) * (1 + 0.01 * std::fabs(std::log2(Real(at["unroll"]) / 4)));
  }

 private:
  NodeId Operand(size_t i) const { return graph_.node(id_).operands[i]; }
  int64_t Columns() const { return TypeOf(id_).shape[1].factor(); }
  std::string RowCount() const { return TypeOf(id_).shape[0].ToString(); }

  std::string PlaceCount() const { return TypeOf(Operand(1)).shape[0].ToString(); }
  static graph::Coordinate Column(int64_t vector) {
    using Lanes = graph::Coordinate::Lanes;
    return {.text = "column", .lanes = vector > 1 ? Lanes::kNext : Lanes::kSame, .multiple = vector};
  }

  std::string Head(const char* name) const {
    return fmt::format(
        "\nextern \"C\" __global__ void {}({}, int* __restrict__ ends, int* __restrict__ begins, int* __restrict__ "
        "list) {{\n"
        "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n",
        name, KernelParameters(spec_));
  }
  struct ListKernel {
    const char* name;
    std::string threads, body;
  };
  /// Kernels that gather the places of each row, in order.
  std::vector<ListKernel> Lists() const {
    const std::string rows = RowCount();
    ElementText elements(graph_, {.indent = "  "});
    const auto place = elements.Of(Operand(1), {{.text = "n"}});
    const std::string each_place = fmt::format(
        "  if (i >= {}) return;\n  const long long n = i;\n{}{}  const long long place = {};\n"
        "  if (place < 0 || place >= {}) return;\n",
        PlaceCount(), elements.Scope(0), elements.Scope(1), place.text, rows);
    return {{"no_lists", rows + " + 1", fmt::format("  if (i < {} + 1) ends[i] = 0;\n", rows)},
            {"count_places", PlaceCount(), each_place + "  atomicAdd(ends + place, 1);\n"},
            {"begin_lists", rows, fmt::format("  begin_list(i, {0}, ends + {0}, begins, ends);\n", rows)},
            {"fill_lists", PlaceCount(), each_place + "  list[atomicAdd(ends + place, 1)] = (int)n;\n"},
            {"order_lists", rows, fmt::format("  sort_lists(i - threadIdx.x, {}, begins, ends, list);\n", rows)}};
  }

  std::string Combine(int64_t vector) const {
    const std::string type = graph::CudaArithmetic(TypeOf(id_).dtype, false);
    const Coordinates at = {{.text = "row"}, Column(vector)};
    ElementText before(graph_, {.vector = vector, .indent = "    "});
    const auto start = before.Of(Operand(0), at);
    ElementText each(graph_, {.vector = vector, .indent = "      "});
    const auto update = each.Of(Operand(2), {{.text = "n"}, Column(vector)});
    const graph::Combine op = graph_.node(id_).As<Scatter>()->op;
    const std::string combined =
        op == graph::Combine::kSet ? "update" : fmt::format("{}::of(value[lane], update)", CombinerName(op));
    ElementText after(graph_, {.vector = vector, .indent = "    "});
    after.Know(id_, {"value[lane]", 1}, at);
    return Head("kernel") +
           fmt::format(
               "  const long long row = i / THREADS_PER_ROW;\n  if (row >= {}) return;\n"
               "  for (int column = (int)(i % THREADS_PER_ROW) * VEC; column < COLS; column += THREADS_PER_ROW * VEC) "
               "{{\n    {} value[VEC];\n",
               RowCount(), type) +
           LanesText(before, fmt::format("      value[lane] = {};\n", start.text), "    ") +
           "#pragma unroll UNROLL\n    for (int k = begins[row]; k < ends[row]; ++k) {\n      const long long n = "
           "list[k];\n" +
           LanesText(
               each,
               fmt::format("        const {} update = {};\n        value[lane] = {};\n", type, update.text, combined),
               "      ") +
           "    }\n" + ResultsText(after, graph_, graph_.outputs(), at, "row * COLS + column", "    ") + "  }\n}\n";
  }

  NodeId id_;
};

}  // namespace

constinit const Family kScatterFamily = FormFamily<ScatterTemplate, FormOf>("scatter");

}  // namespace atunner
