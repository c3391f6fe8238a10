// Scatter: slices are set, added or combined by maximum at given indices along an axis (gradients
// of embeddings, gathers and sorts). Every slice of the result has one owner, which applies its
// updates in their order: there are no atomic additions of values. For longer slices the updates
// are first listed by slice; single elements are handled in segments of a row, whose updates a warp
// goes through.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Coordinate;
using graph::Coordinates;
using graph::ElementText;
using graph::NodeId;
using graph::Shape;

/// The coordinate of `vector` neighbouring elements, which begin at the multiple `text`.
Coordinate Neighbours(const char* text, int64_t vector) {
  using Lanes = Coordinate::Lanes;
  return {.text = text, .lanes = vector > 1 ? Lanes::kNext : Lanes::kSame, .multiple = vector};
}

struct ScatterForm : NodeForm {
  const graph::Scatter& operation() const { return *graph.node(node).As<graph::Scatter>(); }
  NodeId operand(size_t i) const { return graph.node(node).operands[i]; }
  const Shape& space() const { return graph.node(node).type.shape; }
  size_t axis() const { return static_cast<size_t>(operation().axis); }
  size_t batch() const { return static_cast<size_t>(operation().batch); }
  Shape rows() const { return {space().begin(), space().end() - 1}; }
  const Shape& indices() const { return graph.node(operand(1)).type.shape; }
  std::string type() const { return graph::CudaArithmetic(graph.node(node).type.dtype, false); }
  /// The text of `before` combined with an update.
  std::string Combined(const std::string& before, const std::string& update) const {
    const graph::Combine op = operation().op;
    return op == graph::Combine::kSet
               ? update
               : fmt::format("{}::of({}, {})", CombinerName(op), before, update);
  }

  /// Coordinates of an element of the result, or, along the axis, of updates.
  Coordinates At(const Coordinate& along, const Coordinate& behind) const {
    Coordinates at = graph::AxisCoordinates(space());
    at[axis()] = along;
    if (at.size() > axis() + 1) at.back() = behind;
    return at;
  }
  /// Coordinates of index number `n` among those that may update an element of the result.
  Coordinates IndexAt(const std::string& n) const {
    Coordinates at = graph::AxisCoordinates(indices());
    at.back() = {.text = n};
    return at;
  }
};

/// The form of a scatter whose indices are along one axis, with at most one axis behind it.
std::optional<ScatterForm> FormOf(const Task& task) {
  if (!task.fused()) return std::nullopt;
  const graph::ValidGraph fused = graph::MergeAxes(*task.fused());
  const auto id = graph::OnlyNode<graph::Scatter>(fused);
  if (!id) return std::nullopt;
  ScatterForm form{{fused, *id}};
  const bool operands = std::ranges::all_of(form.graph.node(*id).operands, [&](NodeId operand) {
    return graph::CanInline(form.graph, operand, 8);
  });
  const bool indices = form.indices().size() == form.batch() + 1 &&
                       form.space().size() <= form.axis() + 2;
  return indices && operands && graph::IsFinishedInPlace(form.graph, *id, 8)
             ? std::optional(std::move(form))
             : std::nullopt;
}
template <bool SLICES>
std::optional<ScatterForm> FormBySize(const Task& task) {
  auto form = FormOf(task);
  return form && (form->space().size() > form->axis() + 1) == SLICES ? std::move(form)
                                                                     : std::nullopt;
}

constexpr int kBlock = 256;  // threads of the kernels that list updates

/// Slices: the updates are listed by slice first.
class SlicesTemplate : public GraphTemplate {
 public:
  SlicesTemplate(const KernelSpec& spec, const DeviceProfile& profile, ScatterForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    int64_t widest = 1;
    for (const ArgSpec& arg : spec_.args) {
      if (IsFloat(arg.dtype)) widest = std::max(widest, BytesOf(arg.dtype));
    }
    space_.parameters = {
        {"vector", VectorWidths(widest, Columns(), 16),
         "neighbouring elements that a thread moves at once"},
        {"threads_per_row", Integers({8, 32, 64, 128, 256, 512}), "threads that share a row"},
        {"rows_per_block", Integers({1, 2, 4, 8, 32}), "rows of a block"},
        {"unroll", Integers({1, 2, 4, 8}), "updates of a row whose loads are in flight together"},
    };
    Add("threads_per_row * rows_per_block <= 1024 and threads_per_row * rows_per_block >= 64",
        "2 to 32 warps");
    Add(fmt::format("threads_per_row == 8 or threads_per_row * vector < 2 * {}", Columns()),
        "more threads than elements");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    LaunchPlan plan = Plan(configuration, {});
    const std::string lists = graph::CountText(ListShape()),
                      indices = graph::CountText(form_.indices());
    std::string kernels;
    for (const auto& [entry, count, body] : Lists()) {
      kernels += Head(entry) + body + "}\n";
      plan.steps.push_back(
          Launch(entry, fmt::format("ceil_div({}, {})", count, kBlock), std::to_string(kBlock)));
    }
    plan.steps.push_back(Launch(
        "kernel", fmt::format("ceil_div({}, rows_per_block)", graph::CountText(form_.rows())),
        "threads_per_row * rows_per_block"));
    for (LaunchStep& step : plan.steps) AddArguments(step, {"@ends", "@begins", "@list"});
    plan.workspaces = {{"ends", Expr::MustParse(fmt::format("({} + 1) * 4", lists))},
                       {"begins", Expr::MustParse(lists + " * 4")},
                       {"list", Expr::MustParse(indices + " * 4")}};
    return RenderedKernel{
        Source(configuration, "scatter of slices",
               ConstantBlock().Int("COLS", Columns(), "elements of a slice"),
               {embed::kVectorCuh, embed::kCombineCuh, embed::kWarpScanCuh, embed::kSortCuh,
                embed::kScatterCuh, kernels, Combine(at["vector"])}),
        std::move(plan)};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double width = Real(at["vector"]) *
                         static_cast<double>(SizeOf(TypeOf(form_.node).dtype) > 4 ? 8 : 4);
    const double per_thread = static_cast<double>(Columns()) /
                              (Real(at["threads_per_row"]) * Real(at["vector"]));
    const double block = Real(at["threads_per_row"]) * Real(at["rows_per_block"]);
    const CostConstants& costs = CostsOf(profile);
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps *
           (1 + costs.scatter_narrow * std::log2(32 / std::min(32.0, width))) *
           (1 + costs.scatter_items * std::fabs(std::log2(per_thread))) *
           (1 + costs.scatter_block * std::fabs(std::log2(block / 256))) *
           (1 + costs.scatter_unroll * std::fabs(std::log2(Real(at["unroll"]) / 4)));
  }

 private:
  int64_t Columns() const { return form_.space().back().factor(); }
  /// The shape of the lists: one list per slice and batch.
  Shape ListShape() const {
    Shape shape = form_.indices();
    shape.back() = form_.space()[form_.axis()];
    return shape;
  }
  /// The coordinates of number `number`, as c0, c1, …, the last of which is called `last`.
  static std::string Split(const Shape& shape, const std::string& number, const std::string& last) {
    const std::string name = shape.back().one() ? "0" : "c" + std::to_string(shape.size() - 1);
    return CoordinateLines(
               shape, [](size_t) { return true; }, "c", number, "long long", "  ") +
           fmt::format("  const long long {} = {};\n", last, name);
  }

  std::string Head(const std::string& name) const {
    return fmt::format(
        "\nextern \"C\" __global__ void {}({}, int* __restrict__ ends, int* __restrict__ begins, "
        "int* __restrict__ "
        "list) {{\n"
        "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n",
        name, KernelParameters(spec_));
  }
  /// The kernels that list the updates of each slice, in order: names, threads and bodies.
  std::vector<std::array<std::string, 3>> Lists() const {
    const std::string lists = graph::CountText(ListShape()),
                      indices = graph::CountText(form_.indices());
    ElementText elements(graph_, {.indent = "  "});
    const auto index = elements.Of(form_.operand(1), form_.IndexAt("n"));
    const std::string each_index = fmt::format(
        "  if (i >= {}) return;\n{}{}{}  const long long index = {};\n  if (index < 0 || index >= "
        "{}) return;\n"
        "  int* const end = ends + {};\n",
        indices, Split(form_.indices(), "i", "n"), elements.Scope(0), elements.Scope(1), index.text,
        ListShape().back().ToString(), NumberText(ListShape(), form_.IndexAt("index")));
    return {{"clear_lists", lists + " + 1", fmt::format("  if (i < {} + 1) ends[i] = 0;\n", lists)},
            {"count_updates", indices, each_index + "  atomicAdd(end, 1);\n"},
            {"begin_lists", lists,
             fmt::format("  begin_list(i, {0}, ends + {0}, begins, ends);\n", lists)},
            {"fill_lists", indices, each_index + "  list[atomicAdd(end, 1)] = (int)n;\n"},
            {"order_lists", lists,
             fmt::format("  sort_lists(i - threadIdx.x, {}, begins, ends, list);\n", lists)}};
  }

  std::string Combine(int64_t vector) const {
    const Coordinate column = Neighbours("column", vector);
    const Coordinates at = form_.At({.text = "slice"}, column);
    ElementText before(graph_, {.vector = vector, .indent = "    "});
    const auto start = before.Of(form_.operand(0), at);
    ElementText each(graph_, {.vector = vector, .indent = "      "});
    const auto update = each.Of(form_.operand(2), form_.At({.text = "n"}, column));
    ElementText after(graph_, {.vector = vector, .indent = "    "});
    after.Know(form_.node, {"value[lane]", 1}, at);
    return Head("kernel") +
           fmt::format(
               "  const long long row = i / THREADS_PER_ROW;\n  if (row >= {}) return;\n{}"
               "  const long long of = {};\n"
               "  for (int column = (int)(i % THREADS_PER_ROW) * VEC; column < COLS; column += "
               "THREADS_PER_ROW * VEC) "
               "{{\n    {} value[VEC];\n",
               graph::CountText(form_.rows()), Split(form_.rows(), "row", "slice"),
               NumberText(ListShape(), form_.IndexAt("slice")), form_.type()) +
           LanesText(before, fmt::format("      value[lane] = {};\n", start.text), "    ") +
           "#pragma unroll UNROLL\n    for (int k = begins[of]; k < ends[of]; ++k) {\n      const "
           "long long n = "
           "list[k];\n" +
           LanesText(
               each,
               fmt::format("        value[lane] = {};\n",
                           form_.Combined("value[lane]", "(" + form_.type() + ")" + update.text)),
               "      ") +
           "    }\n" +
           ResultsText(after, graph_, graph_.outputs(), at, "row * COLS + column", "    ") +
           "  }\n}\n";
  }

  ScatterForm form_;
};

/// Single elements: a warp holds a segment of a row in shared memory and goes through the row's
/// updates.
class SegmentsTemplate : public GraphTemplate {
 public:
  SegmentsTemplate(const KernelSpec& spec, const DeviceProfile& profile, ScatterForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    space_.parameters = {
        {"vector", VectorWidths(ElementBytes(), Row().factor(), 16),
         "neighbouring elements that a thread writes at once"},
        {"strip", Integers({256, 512, 1024, 2048, 4096, 8192}),
         "elements of a row segment; a warp has one segment"},
        {"block", Integers({32, 64, 128, 256}), "threads of a block"},
        {"unroll", Integers({1, 2, 4, 8, 16}),
         "updates of a thread whose loads are in flight together"},
    };
    Add(fmt::format("(strip * {} + 2048) * block // 32 <= 49152", HeldBytes()),
        "strips exceed shared memory");
    Add(fmt::format("strip == 256 or strip < 2 * {}", Row().factor()), "strips longer than rows");
    Add(fmt::format("unroll == 1 or unroll < {}", Updates() / 16), "more updates than there are");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const std::string blocks = fmt::format("ceil_div(({}) * ceil_div({}, strip), block // 32)",
                                           graph::CountText(form_.rows()), Row().ToString());
    return RenderedKernel{Source(at, "scatter of single elements", {},
                                 {embed::kVectorCuh, embed::kCombineCuh, embed::kScatterStripsCuh,
                                  Kernel(at["vector"])}),
                          Plan(at, {Launch("kernel", blocks, "block")})};
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    // Every warp of a row goes through all its indices, which caches then have.
    const CostConstants& costs = CostsOf(profile);
    const double again = costs.scatter_strip_reread *
                         Real(CeilDiv(Row().factor(), at["strip"]) - 1) * Real(Updates() * Rows());
    const double warps = std::min(
        costs.scatter_strip_warps,
        Real(profile.shared_per_sm) / Real(at["strip"] * HeldBytes() + 2048));
    // A strip is filled and emptied while others read; of a thread so many indices and updates are
    // under way.
    const double idle = 1 + costs.scatter_strip_fill / warps +
                        costs.scatter_strip_wait /
                            (warps * Real(std::min(at["unroll"], CeilDiv(Updates(), 32))));
    const double width = Real(at["vector"] * ElementBytes());
    return (MinimumBytes(spec_, spec_.dims).value_or(0) + 8 * again) / profile.dram_gbps * idle *
           (1 + costs.scatter_strip_narrow * std::log2(16 / width)) *
           (1 + costs.scatter_strip_block * std::fabs(std::log2(Real(at["block"]) / 128)));
  }

 private:
  const graph::Extent& Row() const { return form_.space().back(); }
  int64_t Updates() const { return form_.indices().back().factor(); }
  int64_t Rows() const { return graph::ElementCount(form_.rows()).Bound(spec_.dims).factor(); }
  int64_t ElementBytes() const { return BytesOf(TypeOf(graph_.outputs()[0].node).dtype); }
  int64_t HeldBytes() const { return std::max<int64_t>(4, BytesOf(TypeOf(form_.node).dtype)); }

  std::string Kernel(int64_t vector) const {
    const Coordinates at = form_.At(Neighbours("(first + i)", vector), {});
    ElementText before(graph_, {.vector = vector, .indent = "    "});
    const auto start = before.Of(form_.operand(0), at);
    ElementText indices(graph_, {.indent = "      "}), updates(graph_, {.indent = "      "});
    const auto index = indices.Of(form_.operand(1), form_.IndexAt("n"));
    const auto update = updates.Of(form_.operand(2), form_.At({.text = "n"}, {}));
    ElementText after(graph_, {.vector = vector, .indent = "    "});
    after.Know(form_.node, {"strip[i + lane]", 1}, at);
    const auto each = [](std::string_view condition, const ElementText& text,
                         const std::string& result) {
      return fmt::format(
          "#pragma unroll\n    for (int u = 0; u < UNROLL; ++u) {{\n      const int n = begin + u "
          "* 32;\n"
          "      if ({}) {{\n{}{}        {}\n      }}\n    }}\n",
          condition, text.Scope(0), text.Scope(1), result);
    };
    const std::string elements = "  for (int i = thread * VEC; i < count; i += 32 * VEC) {\n";
    return KernelHead(spec_) +
           fmt::format(R"(  __shared__ {0} strips[BLOCK / 32][STRIP];
  __shared__ unsigned sharing[BLOCK / 32][USERS];
  {0}* const strip = strips[threadIdx.x / 32];
  unsigned* const users = sharing[threadIdx.x / 32];
  const long long of_row = ({1} + STRIP - 1) / STRIP, number = blockIdx.x * (BLOCK / 32ll) + threadIdx.x / 32;
  const long long row = number / of_row, first = number % of_row * STRIP;
  if (row >= {2}) return;
  const int thread = threadIdx.x % 32, count = (int)min((long long)STRIP, {1} - first);
)",
                       form_.type(), Row().ToString(), graph::CountText(form_.rows())) +
           CoordinateLines(
               form_.space(), [&](size_t axis) { return axis < form_.axis(); }, "c", "row",
               "long long", "  ") +
           "  for (int i = thread; i < USERS; i += 32) users[i] = 0;\n" + elements +
           LanesText(before, fmt::format("      strip[i + lane] = {};\n", start.text), "    ") +
           fmt::format(R"(  }}
  __syncwarp();
  for (int begin = thread; begin - thread < {0}; begin += 32 * UNROLL) {{
    int at[UNROLL];
    {1} update[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) at[u] = -1;
)",
                       form_.indices().back().ToString(), form_.type()) +
           each("n < " + form_.indices().back().ToString(), indices,
                fmt::format("const long long index = {} - first;\n        if (index >= 0 && index "
                            "< count) at[u] = (int)index;",
                            index.text)) +
           each("at[u] >= 0", updates, fmt::format("update[u] = {};", update.text)) +
           fmt::format(R"(#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
      in_order(users, at[u], [&] {{ strip[at[u]] = {}; }});
  }}
  __syncwarp();
)",
                       form_.Combined("strip[at[u]]", "update[u]")) +
           elements +
           ResultsText(after, graph_, graph_.outputs(), at,
                       "row * " + Row().ToString() + " + first + i", "    ") +
           "  }\n}\n";
  }

  ScatterForm form_;
};

}  // namespace

constinit const Family kScatterFamily{"scatter", TryForm<SlicesTemplate, FormBySize<true>>};
constinit const Family kScatterStripsFamily{"scatter_strips",
                                            TryForm<SegmentsTemplate, FormBySize<false>>};

}  // namespace atunner
