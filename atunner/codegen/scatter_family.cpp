// Scatter: rows put, added, or the larger kept, at places of a table; gradients of embeddings. Every row of the result
// has one owner, which takes its updates in their order: nothing is added up by atomics. The places are gathered by row
// first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Coordinates;
using graph::ElementText;
using graph::NodeId;
using graph::Scatter;
using graph::Shape;
using graph::ValidGraph;

struct ScatterForm {
  ValidGraph graph;
  NodeId scatter = 0;
};

std::optional<ScatterForm> FormOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  if (!fused) return std::nullopt;
  const auto& nodes = fused->nodes();
  const auto is_scatter = [](const graph::Node& node) { return node.As<Scatter>() != nullptr; };
  const auto found = std::ranges::find_if(nodes, is_scatter);
  if (found == nodes.end() || std::ranges::count_if(nodes, is_scatter) > 1) return std::nullopt;
  const auto id = static_cast<NodeId>(found - nodes.begin());
  const auto* scatter = found->As<Scatter>();
  const auto served = [&](NodeId from, bool known) {
    const auto it = ElementText::Serves(*fused, from, [&](NodeId node) { return known && node == id; });
    return it.yes && it.work <= 8;
  };
  const bool operands = std::ranges::all_of(found->operands, [&](NodeId operand) { return served(operand, false); });
  const bool outputs = std::ranges::all_of(fused->outputs(), [&](const graph::Output& output) {
    return fused->node(output.node).type.shape == found->type.shape && served(output.node, true);
  });
  const bool rows = scatter->axis == 0 && scatter->batch == 0 && found->type.rank() == 2;
  return rows && operands && outputs ? std::optional(ScatterForm{*fused, id}) : std::nullopt;
}

constexpr int kBlock = 256;  // threads of the kernels that gather places

class ScatterTemplate : public BoundTemplate {
 public:
  ScatterTemplate(const KernelSpec& spec, const DeviceProfile& profile, ScatterForm form)
      : BoundTemplate(spec, profile), graph_(std::move(form.graph)), id_(form.scatter) {
    std::vector<Value> vectors;
    size_t widest = 1;
    for (const ArgSpec& arg : spec_.args) {
      if (IsFloat(arg.dtype)) widest = std::max(widest, SizeOf(arg.dtype));
    }
    for (int64_t v = 1; v <= 16 && v * static_cast<int64_t>(widest) <= 16 && Columns() % v == 0; v *= 2)
      vectors.emplace_back(v);
    space_.parameters = {
        {"vector", vectors, "neighbouring elements that a thread moves at once"},
        {"threads_per_row", Integers({8, 32, 64, 128, 256, 512}), "threads that share a row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 32}), "rows of a block"},
        {"unroll", Integers({1, 2, 4, 8}), "updates of a row whose loads are in flight together"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
    };
    Add("threads_per_row * rows_per_block <= 1024 and threads_per_row * rows_per_block >= 64", "2 to 32 warps");
    Add(fmt::format("threads_per_row == 8 or threads_per_row * vector < 2 * {}", Columns()),
        "more threads than elements");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const auto integer = [&](const char* name) { return GetInt(space_, configuration, name); };
    ConstantBlock constants;
    constants.Int("COLS", Columns(), "elements of a row")
        .Int("THREADS_PER_ROW", integer("threads_per_row"))
        .Int("ROWS_PER_BLOCK", integer("rows_per_block"))
        .Int("VEC", integer("vector"), "neighbouring elements that a thread moves at once")
        .Bool("STREAM", integer("stream") != 0, "evict-first loads and stores");
    SourceUnit source =
        GraphSource(spec_, "rows at places", space_.Describe(configuration), constants,
                    fmt::format("{}\n{}\n{}\n{}{}", embed::kVectorCuh, embed::kCombineCuh, embed::kScatterCuh, Lists(),
                                Combine(integer("vector"), integer("unroll"))));
    LaunchPlan plan = Plan(configuration, {});
    const std::string rows = RowCount();
    const std::string places = graph::ElementCount(PlaceShape()).ToString();
    for (const auto& [entry, count] : {std::pair{"no_lists", rows + " + 1"},
                                       {"count_places", places},
                                       {"begin_lists", rows},
                                       {"fill_lists", places},
                                       {"order_lists", rows},
                                       {"kernel", rows}}) {
      LaunchStep step;
      step.entry = entry;
      const bool last = step.entry == "kernel";
      step.grid[0] =
          Expr::MustParse(fmt::format("ceil_div({}, {})", count, last ? "rows_per_block" : std::to_string(kBlock)));
      step.block[0] = Expr::MustParse(last ? "threads_per_row * rows_per_block" : std::to_string(kBlock));
      BindParameters(spec_, step);
      for (const char* name : {"ends", "begins", "list"}) step.args.push_back(ArgBinding::Workspace(name));
      plan.steps.push_back(std::move(step));
    }
    plan.workspaces = {{"ends", Expr::MustParse(fmt::format("({} + 1) * 4", rows))},
                       {"begins", Expr::MustParse(rows + " * 4")},
                       {"list", Expr::MustParse(places + " * 4")}};
    return RenderedKernel{std::move(source), std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return static_cast<double>(GetInt(space_, configuration, name)); };
    const double width = integer("vector") * static_cast<double>(SizeOf(TypeOf(id_).dtype) > 4 ? 8 : 4);
    const double per_thread = static_cast<double>(Columns()) / (integer("threads_per_row") * integer("vector"));
    const double block = integer("threads_per_row") * integer("rows_per_block");
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps *
           (1 + 0.2 * std::log2(32 / std::min(32.0, width))) * (1 + 0.03 * std::fabs(std::log2(per_thread))) *
           (1 + 0.02 * std::fabs(std::log2(block / 256))) * (1 + 0.01 * std::fabs(std::log2(integer("unroll") / 4))) *
           (integer("stream") > 0 ? 1.02 : 1.0);
  }

 private:
  const graph::TensorType& TypeOf(NodeId id) const { return graph_.node(id).type; }
  NodeId Operand(size_t i) const { return graph_.node(id_).operands[i]; }
  int64_t Columns() const { return TypeOf(id_).shape[1].factor(); }
  std::string RowCount() const { return TypeOf(id_).shape[0].ToString(); }
  const Shape& PlaceShape() const { return TypeOf(Operand(1)).shape; }

  ElementText Elements(int64_t vector, const char* indent) const {
    const auto stored = [this](NodeId id) -> std::optional<ElementText::Stored> {
      const graph::Node& node = graph_.node(id);
      if (!node.As<graph::Input>()) return std::nullopt;
      return ElementText::Stored{"in_" + node.name, std::string(CudaName(node.type.dtype))};
    };
    return {graph_, stored, {.vector = vector, .indent = indent}};
  }
  /// Of the place with number `n`.
  Coordinates PlaceAt() const {
    Coordinates at;
    for (size_t axis = 0; axis < PlaceShape().size(); ++axis) {
      const Shape inner(PlaceShape().begin() + static_cast<int64_t>(axis) + 1, PlaceShape().end());
      const std::string number = fmt::format("(n / ({}))", graph::ElementCount(inner).ToString());
      at.push_back({.text = axis == 0 ? number : fmt::format("({} % ({}))", number, PlaceShape()[axis].ToString())});
    }
    return at;
  }
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
  /// Kernels that gather the places of each row, in order.
  std::string Lists() const {
    const std::string rows = RowCount();
    std::string text = Head("no_lists") + fmt::format("  if (i < {} + 1) ends[i] = 0;\n}}\n", rows);
    for (const auto& [name, found] : {std::pair{"count_places", "atomicAdd(ends + place, 1)"},
                                      {"fill_lists", "list[atomicAdd(ends + place, 1)] = (int)n"}}) {
      ElementText elements = Elements(1, "  ");
      const auto place = elements.Of(Operand(1), PlaceAt());
      text += Head(name) + fmt::format(
                               "  if (i >= {}) return;\n  const long long n = i;\n{}{}  const long long place = {};\n"
                               "  if (place >= 0 && place < {}) {};\n}}\n",
                               graph::ElementCount(PlaceShape()).ToString(), elements.Scope(0), elements.Scope(1),
                               place.text, rows, found);
    }
    text += Head("begin_lists") + fmt::format("  begin_list(i, {0}, ends + {0}, begins, ends);\n}}\n", rows);
    return text + Head("order_lists") +
           fmt::format("  sort_lists(i - threadIdx.x, {}, begins, ends, list);\n}}\n", rows);
  }

  std::string Combine(int64_t vector, int64_t unroll) const {
    const std::string type = graph::CudaArithmetic(TypeOf(id_).dtype, false);
    const char* lanes = "#pragma unroll\n      for (int lane = 0; lane < VEC; ++lane) {\n";
    const Coordinates at = {{.text = "row"}, Column(vector)};
    ElementText before = Elements(vector, "      ");
    const auto start = before.Of(Operand(0), at);
    ElementText each = Elements(vector, "        ");
    Coordinates from = PlaceAt();
    from.push_back(Column(vector));
    const auto update = each.Of(Operand(2), from);
    const graph::Combine op = graph_.node(id_).As<Scatter>()->op;
    const std::string combined =
        op == graph::Combine::kSet ? "update" : fmt::format("{}::of(value[lane], update)", CombinerName(op));
    ElementText after = Elements(vector, "      ");
    after.Know(id_, {"value[lane]", 1}, at);
    std::string vectors, stores, writes;
    for (const graph::Output& output : graph_.outputs()) {
      const auto result = after.Of(output.node, at);
      vectors += fmt::format("      Vector<{}> {}_out;\n", CudaName(TypeOf(output.node).dtype), output.name);
      stores += fmt::format("        store({}_out.element[lane], {});\n", output.name, result.text);
      writes += fmt::format("      write(out_{0} + row * COLS + column, {0}_out);\n", output.name);
    }
    return Head("kernel") +
           fmt::format(
               "  const long long row = i / THREADS_PER_ROW;\n  if (row >= {}) return;\n"
               "  for (int column = (int)(i % THREADS_PER_ROW) * VEC; column < COLS; column += THREADS_PER_ROW * VEC) "
               "{{\n"
               "      {} value[VEC];\n",
               RowCount(), type) +
           before.Scope(0) + lanes + before.Scope(1) +
           fmt::format("        value[lane] = {};\n      }}\n", start.text) +
           fmt::format(
               "#pragma unroll {}\n      for (int k = begins[row]; k < ends[row]; ++k) {{\n        const long long n = "
               "list[k];\n",
               unroll) +
           each.Scope(0) + lanes + each.Scope(1) +
           fmt::format("        const {} update = {};\n        value[lane] = {};\n      }}\n      }}\n", type,
                       update.text, combined) +
           after.Scope(0) + vectors + lanes + after.Scope(1) + stores + "      }\n" + writes + "  }\n}\n";
  }

  ValidGraph graph_;
  NodeId id_;
};

}  // namespace

const Family& ScatterFamily() {
  static const FormFamily<ScatterTemplate, FormOf> family("scatter");
  return family;
}

}  // namespace atunner
