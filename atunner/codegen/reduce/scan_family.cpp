// Scans: running sums, products and maxima along any axis, with maps before and after. The threads
// of a block go along lines tile by tile and carry the total; where lines are few, blocks divide
// them, after a kernel that computes the totals of the parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Coordinate;
using graph::ElementText;
using graph::NodeId;
using graph::Shape;

/// A graph with one scan, and the text of its kernels.
struct ScanForm : NodeForm {
  const graph::Scan& operation() const { return *graph.node(node).As<graph::Scan>(); }
  const Shape& space() const { return graph.node(node).type.shape; }
  const graph::Extent& extent() const { return space()[operation().axis]; }
  /// Do neighbouring elements follow each other along the scan?
  bool along_lines() const {
    return std::ranges::all_of(space().begin() + operation().axis + 1, space().end(),
                               [](const graph::Extent& each) { return each.one(); });
  }
  std::string type() const { return graph::CudaArithmetic(graph.node(node).type.dtype, false); }
  std::string neutral() const {
    const DType dtype = graph.node(node).type.dtype;
    return graph::CudaLiteral(dtype, graph::Neutral(operation().op, dtype), false);
  }
  /// Coordinates of all axes; the scan's own is `at`.
  graph::Coordinates Coordinates(int64_t vector) const {
    graph::Coordinates result(space().size());
    bool innermost = true;
    for (size_t i = result.size(); i-- > 0;) {
      const bool own = static_cast<int64_t>(i) == operation().axis;
      Coordinate& c = result[i];
      c.text = space()[i].one() ? "0" : own ? "at" : "c" + std::to_string(i);
      const bool lanes = along_lines() ? own : innermost && !space()[i].one();
      if (vector > 1 && lanes)
        c = {.text = c.text, .lanes = Coordinate::Lanes::kNext, .multiple = vector};
      innermost = innermost && space()[i].one();
    }
    return result;
  }
  Shape Lines() const {
    Shape lines = space();
    lines.erase(lines.begin() + operation().axis);
    return lines;
  }
};

class Writer {
 public:
  Writer(const ScanForm& form, const KernelSpec& spec, int64_t vector, bool splits)
      : form_(form), spec_(spec), vector_(vector), splits_(splits) {}

  std::string Run() {
    return (splits_ ? Kernel("totals", true) + "\n" : "") + Kernel("kernel", false);
  }

 private:
  size_t axis() const { return static_cast<size_t>(form_.operation().axis); }

  ElementText Elements() const { return {form_.graph, {.vector = vector_, .indent = "        "}}; }

  std::string Head(const std::string& name) const {
    std::string parts = splits_ ? fmt::format(", {}* __restrict__ parts", form_.type()) : "";
    const bool along = form_.along_lines();
    return fmt::format(
               R"(extern "C" __global__ void __launch_bounds__(THREADS * GROUPS) {}({}{}) {{
  const int thread = threadIdx.x % THREADS, group = threadIdx.x / THREADS;
  const long long lines = {};
  const long long line = {};
  const bool active = line < lines;  // threads beyond the end only meet at barriers
  const long long safe = active ? line : 0;
)",
               name, KernelParameters(spec_), parts, graph::CountText(form_.Lines()),
               along ? "(long long)blockIdx.x * GROUPS + group"
                     : "((long long)blockIdx.x * THREADS + thread) * VEC") +
           CoordinateLines(
               form_.space(), [this](size_t each) { return each != axis(); }, "c", "safe",
               "long long", "  ");
  }

  /// The loop over a thread's items, with `position` along the scan and `at` along the axis.
  std::string ItemLoop() const {
    const bool along = form_.along_lines();
    return fmt::format(
        R"(#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {{
      const long long position = tile * TILE + {};
      const long long at = {};
)",
        along ? "(item * THREADS + thread) * VEC" : "group * ITEMS + item",
        form_.operation().reverse ? (along ? "EXTENT - VEC - position" : "EXTENT - 1 - position")
                                  : "position");
  }
  std::string LaneText() const {
    return form_.operation().reverse && form_.along_lines() ? "VEC - 1 - lane" : "lane";
  }

  std::string Kernel(const std::string& name, bool totals) {
    const std::string type = form_.type();
    const std::string op(CombinerName(form_.operation().op));
    std::string text = Head(name);
    text += fmt::format(
        "  {0} carry[CARRIES];\n#pragma unroll\n  for (int j = 0; j < CARRIES; ++j) carry[j] = "
        "{1};\n",
        type, form_.neutral());
    if (splits_ && !totals) text += CarryOfParts(op);
    text += fmt::format(R"(  int slot = 0;
  const long long begin = TILES * blockIdx.y / gridDim.y, end = TILES * (blockIdx.y + 1) / gridDim.y;
  for (long long tile = begin; tile < end; ++tile) {{
    {} value[ITEMS][VEC];
)",
                        type);
    text += Values() +
            fmt::format("    scan_tile<{}>(value, carry, {}, slot);\n", op, form_.neutral());
    if (!totals) text += Results();
    text += "  }\n";
    if (totals) text += StoreTotals();
    return text + "}\n";
  }
  /// Combines the totals of the blocks in front of this one.
  static std::string CarryOfParts(const std::string& op) {
    return fmt::format(R"(#pragma unroll 8
  for (int part = 0; part < blockIdx.y && active; ++part) {{
#pragma unroll
    for (int j = 0; j < CARRIES; ++j) carry[j] = {}::of(carry[j], parts[part * lines + line + j]);
  }}
)",
                       op);
  }
  std::string StoreTotals() const {
    return fmt::format(R"(  if (!active || {} != 0) return;
#pragma unroll
  for (int j = 0; j < CARRIES; ++j) parts[blockIdx.y * lines + line + j] = carry[j];
)",
                       form_.along_lines() ? "thread" : "group");
  }

  std::string Values() {
    ElementText elements = Elements();
    const auto value = elements.Of(form_.graph.node(form_.node).operands[0],
                                   form_.Coordinates(vector_));
    return ItemLoop() + "      if (active && position < EXTENT) {\n" +
           LanesText(elements,
                     fmt::format("          value[item][{}] = ({}){};\n", LaneText(), form_.type(),
                                 value.text),
                     "        ") +
           fmt::format(
               "      }} else {{\n#pragma unroll\n        for (int lane = 0; lane < VEC; ++lane) "
               "value[item][lane] = "
               "{};\n      }}\n    }}\n",
               form_.neutral());
  }

  std::string Results() {
    ElementText elements = Elements();
    const graph::Coordinates at = form_.Coordinates(vector_);
    elements.Know(form_.node, {fmt::format("value[item][{}]", LaneText()), 1}, at);
    const std::string results = ResultsText(elements, form_.graph, form_.graph.outputs(), at,
                                            NumberText(form_.space(), at), "        ");
    return ItemLoop() + "      if (active && position < EXTENT) {\n" + results + "      }\n    }\n";
  }

  const ScanForm& form_;
  const KernelSpec& spec_;
  int64_t vector_;
  bool splits_;
};

std::optional<ScanForm> FormOf(const Task& task) {
  const graph::ValidGraph* fused = task.fused();
  if (!fused) return std::nullopt;
  const auto scan = graph::OnlyNode<graph::Scan>(*fused);
  if (!scan) return std::nullopt;
  ScanForm form{{*fused, *scan}};
  const bool served = form.extent().constant() &&
                      graph::CanInline(form.graph, form.graph.node(*scan).operands[0], 64) &&
                      graph::IsFinishedInPlace(form.graph, *scan, 64);
  return served ? std::optional(std::move(form)) : std::nullopt;
}

class ScanTemplate : public GraphTemplate {
 public:
  ScanTemplate(const KernelSpec& spec, const DeviceProfile& profile, ScanForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Define("ALONG_LINES", form_.along_lines() ? 1 : 0)
        .Line(fmt::format("constexpr long long EXTENT = {};  // elements of a line", Extent()))
        .Bool("EXCLUSIVE", form_.operation().exclusive);
    return RenderedKernel{
        Source(at, "scan", constants,
               {embed::kVectorCuh, embed::kCombineCuh, embed::kWarpScanCuh, embed::kScanCuh,
                "constexpr long long TILES = (EXTENT + TILE - 1) / TILE;\n",
                Writer(form_, spec_, at["vector"], at["splits"] > 1).Run()}),
        PlanOf(at)};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    return CheckSizes(form_.space(), chosen(configuration)["groups"] * Extent());
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const bool along = form_.along_lines();
    const double width = Real(at["vector"]) * Real(WidestElement(spec_));
    const double threads = Real(at["threads"]) * Real(at["groups"]);
    // lines of a block
    const double beside = along ? Real(at["groups"]) : Real(at["threads"]) * Real(at["vector"]);
    const double lines = std::ceil(Lines() / beside);
    const double tile = along ? Real(at["threads"]) * Real(at["vector"]) * Real(at["items"])
                              : Real(at["groups"]) * Real(at["items"]);
    const double extent = Real(Extent());
    const double wasted = std::ceil(extent / tile) * tile / extent;
    // Memory likes pieces of some kilobytes of a line, or of 256 bytes across lines.
    const double piece = Real(at["threads"]) * width * (along ? Real(at["items"]) / 16 : 1);
    const double off = std::log2(piece / 256);
    const CostConstants& costs = CostsOf(profile);
    const double line = along ? 1 + costs.scan_piece_off * std::fabs(off) +
                                    costs.scan_vector32 * (width > 16)
                              : std::max(1.0, 128 / piece) *
                                    (1 + costs.scan_across_piece * std::max(0.0, -off));
    const double broken = std::max(
        line,
        along ? (width >= 16 ? line : line + costs.scan_narrow * std::log2(16 / width)) : 1.0);
    const double used = Lines() / (lines * beside);
    const double resident = std::min(lines * Real(at["splits"]) * threads * used,
                                     profile.sms * costs.scan_sm_threads);
    const double idle = std::max(
        1.0, profile.sms * costs.scan_flight_bytes / (resident * Real(at["items"]) * width));
    const double barriers = along
                                ? 1 + costs.scan_block_off * std::fabs(std::log2(threads / 128))
                                : 1 + costs.scan_barrier * std::log2(threads / 32) +
                                      costs.scan_exchange * Real(at["groups"]) / Real(at["items"]);
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0) *
                         (Real(at["splits"]) > 1 ? costs.scan_split_bytes : 1.0);
    return bytes * std::max(1.0, 0.5 + 0.5 * wasted) * broken * idle * barriers /
               profile.dram_gbps +
           (Real(at["splits"]) > 1 ? costs.scan_split_ns : 0);
  }

 private:
  int64_t Extent() const { return form_.extent().factor(); }
  double Lines() const {
    return Real(graph::ElementCount(form_.Lines()).Bound(spec_.dims).factor());
  }
  void MakeSpace() {
    const bool along = form_.along_lines();
    // Neighbours in memory are along the scan, or along the innermost axis of the lines.
    int64_t neighbours = along ? Extent() : 1;
    for (const graph::Extent& extent : form_.Lines()) {
      if (!along && !extent.one()) neighbours = extent.factor();
    }
    space_.parameters = {
        {"threads",
         along ? Integers({32, 64, 128, 256, 512, 1024}) : Integers({8, 16, 32, 64, 128, 256}),
         along ? "threads of a line" : "threads along neighbouring lines"},
        {"groups", Integers({1, 2, 4, 8, 16, 32}),
         along ? "lines of a block" : "threads along a line"},
        {"vector", VectorWidths(std::max<int64_t>(WidestElement(spec_), 4), neighbours, 32),
         "neighbouring elements that a thread moves at once"},
        {"items", Integers({1, 2, 4, 8, 16}), "vectors of a thread in a tile"},
        {"splits", Integers({1, 2, 4, 8, 16, 32, 64, 128, 256}), "blocks that divide a line"},
    };
    Add("threads * groups <= 1024 and threads * groups >= 32",
        "whole warps, and at most 1024 threads");
    Add("items * vector <= 32", "a thread's elements take registers");
    along ? AddLimitsAlong() : AddLimitsAcross();
  }
  void AddLimitsAlong() {
    Add("items * threads // 32 <= 32", "one warp scans the totals of all");
    Add(fmt::format("groups <= max(1, {:.0f})", Lines()), "more lines than there are");
    Add(fmt::format("threads * vector * items < 2 * {} or (threads == 32 and items == 1)",
                    Extent()),
        "tiles longer than lines");
    Add(fmt::format("splits == 1 or splits * threads * vector * items < 2 * {}", Extent()),
        "more blocks than tiles");
  }
  void AddLimitsAcross() {
    Add(fmt::format("threads * vector < 2 * {:.0f} or threads == 8 or threads * groups == 32",
                    Lines()),
        "more threads than lines");
    Add(fmt::format("groups * items < 2 * {} or groups * threads == 32", Extent()),
        "tiles longer than lines");
    Add(fmt::format("splits == 1 or splits * groups * items < 2 * {}", Extent()),
        "more blocks than tiles");
    Add("2 * threads * groups * vector * 8 <= 49152", "totals exceed shared memory");
  }

  LaunchPlan PlanOf(const Chosen& at) const {
    const bool splits = at["splits"] > 1;
    const std::string lines = graph::CountText(form_.Lines());
    std::vector<LaunchStep> steps;
    for (const char* name : splits ? std::vector{"totals", "kernel"} : std::vector{"kernel"}) {
      LaunchStep step = Launch(name,
                               fmt::format("ceil_div({}, {})", lines,
                                           form_.along_lines() ? "groups" : "threads * vector"),
                               "threads * groups");
      step.grid[1] = Expr::MustParse("splits");
      if (splits) AddArguments(step, {"@parts"});
      steps.push_back(std::move(step));
    }
    LaunchPlan plan = Plan(at, std::move(steps));
    const size_t bytes = std::max<size_t>(4, SizeOf(form_.graph.node(form_.node).type.dtype));
    if (splits)
      plan.workspaces.push_back(
          {"parts", Expr::MustParse(fmt::format("splits * {} * {}", bytes, lines))});
    return plan;
  }

  ScanForm form_;
};

}  // namespace

constinit const Family kScanFamily{"scan", TryForm<ScanTemplate, FormOf>};

}  // namespace atunner
