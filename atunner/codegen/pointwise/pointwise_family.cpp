// Pointwise and layout operations: graphs in which every element of an output is computed from few
// elements of the inputs, at any index: expressions over broadcast inputs, gathers, embeddings,
// transposes, padding, concatenation, pooling. A thread computes several vectors of neighbouring
// elements, reads vectors where neighbours come from neighbours, and has all its loads in flight
// together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/cuda_text/shared_statements.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValidGraph;

// elements read for one that is written: one sum after the other errs by their root
constexpr double kMostWork = 256;

std::optional<ValidGraph> PointwiseForm(const Task& task) {
  if (!task.fused()) return std::nullopt;
  ValidGraph graph = graph::MergeAxes(*task.fused());
  const bool served = std::ranges::all_of(graph.outputs(), [&](const graph::Output& output) {
    return graph::CanInline(graph, output.node, kMostWork);
  });
  return served ? std::optional(std::move(graph)) : std::nullopt;
}

class PointwiseTemplate : public GraphTemplate {
 public:
  PointwiseTemplate(const KernelSpec& spec, const DeviceProfile& profile, ValidGraph graph)
      : GraphTemplate(spec, profile, std::move(graph)) {
    int64_t neighbours = 16;
    for (const graph::Output& output : graph_.outputs()) {
      const Shape& shape = TypeOf(output.node).shape;
      neighbours = std::gcd(neighbours, graph::ElementCount(shape).factor());
      const auto same = std::ranges::find(groups_, shape, &Group::shape);
      if (same == groups_.end())
        groups_.push_back({shape, {output}});
      else
        same->outputs.push_back(output);
    }
    for (Group& group : groups_) {
      group.outer = OuterAxes(group);
      group.spec = SpecOf(group);
    }
    space_.parameters = {
        {"vector", VectorWidths(Widest(), neighbours, 32),
         "neighbouring elements that a thread computes at once"},
        {"items", Integers({1, 2, 4, 8}), "vectors that a thread computes"},
        {"block", Integers({64, 128, 256, 512, 1024}), "threads of a block"},
    };
    AddFunctions(graph_, space_);
    if (MayShare())
      space_.parameters.push_back(
          {"shares", Integers({1, 0}), "computes once what a thread's vectors share"});
    Add(fmt::format("vector * items * {} <= 128", Widest()), "what is in flight takes registers");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const bool narrow = IsNarrow(graph_, space_, at);
    std::string kernels;
    std::vector<LaunchStep> steps;
    for (const Group& group : groups_) {
      const std::string name = groups_.size() == 1 ? "kernel" : "kernel_" + group.outputs[0].name;
      kernels += "\n" + Kernel(name, group, at, narrow);
      LaunchStep step = Launch(name,
                               fmt::format("min(ceil_div({}, vector * items * block), {})",
                                           graph::CountText(group.shape), INT32_MAX),
                               "block");
      std::erase_if(step.args, [&](const ArgBinding& arg) {
        return spec_.FindArg(arg.name) != nullptr && group.spec.FindArg(arg.name) == nullptr;
      });
      steps.push_back(std::move(step));
    }
    return RenderedKernel{
        Source(at, "elements", {}, {TextIf(narrow, embed::kNarrowCuh), embed::kVectorCuh, kernels}),
        Plan(at, std::move(steps))};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    return CheckSizes(groups_[0].shape, at["block"] * at["items"] * at["vector"]);
  }

  ValidSizes FreeSizes(const Configuration&) const override {
    ValidSizes freedom = OpenSize();
    if (freedom.dims.empty() || Index() != "int") return freedom;
    std::set<std::string> counts;
    for (const graph::Node& node : graph_.nodes()) counts.insert(graph::CountText(node.type.shape));
    for (const std::string& count : counts) {
      const Expr fits = Expr::MustParse(fmt::format("{} < {}", count, INT32_MAX / 2));
      if (!fits.Names().empty())
        freedom.constraints.push_back({fits, "elements are numbered by 32 bits"});
    }
    return freedom;
  }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    // One instruction moves 16 bytes; two of them side by side write halves of sectors.
    const double width = Real(at["vector"] * Widest());
    const CostConstants& costs = CostsOf(profile);
    const double narrow = width >= 16 ? 1.0 + costs.pointwise_wide * std::log2(width / 16)
                                      : 1.0 + costs.pointwise_narrow * std::log2(16 / width);
    const bool whole = std::ranges::all_of(
        groups_, [&](const Group& group) { return Whole(group, at["vector"]); });
    const double broken = whole ? 1 : 1 + costs.pointwise_broken * std::log2(Real(at["vector"]));
    const bool shares = MayShare() && at["shares"] == 1;
    // Two vectors in flight hide the latency of the first; elements that are gathered one by one
    // are many loads in flight anyway.
    const double denser = Denser(), best = shares ? 4 : denser > 0 ? 1 : 2;
    // The distance between the elements that neighbouring threads gather is the width of their
    // vectors times the factor of skipped elements: beyond 16 bytes every load touches more sectors
    // (half of 32x256x128x128 in bfloat16 on an H200: 86 us by 4 elements, 141 by 8, 276 by 16).
    const double apart = MayShare() ? std::max(1.0, width * denser / costs.pointwise_gather_bytes)
                                    : 1;
    const double items = 1 +
                         costs.pointwise_items * std::fabs(std::log2(best / Real(at["items"]))) +
                         (MayShare() && !shares ? costs.pointwise_unshared : 0);
    // Memory likes to be walked through in order, by small blocks; one that gathers elements should
    // see much of a row.
    const double block = 1 + costs.pointwise_block *
                                 std::abs(std::log2(Real(at["block"]) / (denser > 0 ? 256 : 128)));
    const double full = MayBeNarrow(graph_) && !IsNarrow(graph_, space_, at)
                            ? costs.narrow_functions
                            : 1.0;
    return bytes / profile.dram_gbps * narrow * broken * items * block * full * apart;
  }

 private:
  /// Outputs of one shape, which one kernel computes.
  struct Group {
    Shape shape;
    std::vector<graph::Output> outputs;
    size_t outer = 0;  ///< axes along which a thread's vectors may share costly values
    KernelSpec spec;   ///< with the arguments of the group's kernel
  };
  bool MayShare() const { return std::ranges::any_of(groups_, &Group::outer); }

  /// The task with the arguments of the group's kernel: all but the tensors that only other groups
  /// need. A plan then sees which launch is the last one to read a tensor.
  KernelSpec SpecOf(const Group& group) const {
    KernelSpec part = spec_;
    if (groups_.size() == 1) return part;
    std::vector<NodeId> wanted;
    std::set<std::string> tensors;
    for (const graph::Output& output : group.outputs) {
      wanted.push_back(output.node);
      tensors.insert(output.name);
    }
    const std::vector<bool> needed = graph::NeededFor(graph_, wanted);
    for (const NodeId input : graph_.inputs()) {
      if (needed[input]) tensors.insert(graph_.node(input).name);
    }
    std::erase_if(part.args, [&](const ArgSpec& arg) {
      return arg.role != Role::kScalar && !tensors.contains(arg.name);
    });
    return part;
  }

  /// True if no vector of a group's elements crosses the end of a row.
  static bool Whole(const Group& group, int64_t vector) {
    return vector == 1 || (!group.shape.empty() && group.shape.back().factor() % vector == 0);
  }

  /// For gathers along the last axis: the number of source elements per result element, at most; 0
  /// without such gathers.
  double Denser() const {
    double most = 0;
    for (const Node& node : graph_.nodes()) {
      const auto* gather = node.As<graph::Gather>();
      const Shape* from = gather ? &TypeOf(node.operands[0]).shape : nullptr;
      if (from && gather->axis + 1 == static_cast<int64_t>(from->size()))
        most = std::max(most, Real(from->back().factor()) / Real(node.type.shape.back().factor()));
    }
    return most;
  }

  /// Bytes of the widest element that is moved in vectors. Indices of gathers are read one by one,
  /// and inputs with few elements compared with the results come from caches.
  int64_t Widest() const {
    double most = 1;
    size_t widest = 1;
    for (const graph::Output& output : graph_.outputs()) {
      most = std::max(most, Count(output.node));
      widest = std::max(widest, SizeOf(TypeOf(output.node).dtype));
    }
    const bool places = std::ranges::any_of(
        graph_.nodes(), [](const Node& node) { return node.As<graph::Gather>(); });
    for (graph::NodeId id : graph_.inputs()) {
      const DType dtype = TypeOf(id).dtype;
      if ((IsFloat(dtype) || !places) && Count(id) * 16 > most)
        widest = std::max(widest, SizeOf(dtype));
    }
    return static_cast<int64_t>(widest);
  }
  double Count(graph::NodeId id) const {
    return Real(graph::ElementCount(TypeOf(id).shape).Bound(spec_.dims).factor());
  }

  /// The type of coordinates. Without several axes nothing is divided, so that 64 bits cost little.
  std::string Index() const {
    const bool lines = std::ranges::all_of(graph_.nodes(),
                                           [](const Node& node) { return node.type.rank() <= 1; });
    return lines ? "long long" : IndexType(graph_, spec_.dims);
  }

  /// How the elements of a vector are distributed over rows.
  enum class Rows : int8_t {
    kWhole,  ///< all in one row, in which every vector begins at a multiple of its length
    kOne,    ///< all in one row
    kAny,    ///< every lane computes its own coordinates
  };

  static graph::Coordinates Places(const Group& group, Rows rows, int64_t vector) {
    using Lanes = graph::Coordinate::Lanes;
    graph::Coordinates at(group.shape.size());
    for (size_t axis = 0; axis < at.size(); ++axis) {
      at[axis].text = group.shape[axis].one() ? "0" : "c" + std::to_string(axis);
      if (rows == Rows::kAny) at[axis] = {.text = at[axis].text, .lanes = Lanes::kAny, .depth = 1};
    }
    if (rows != Rows::kAny && vector > 1)
      at.back() = {.text = at.back().text,
                   .lanes = Lanes::kNext,
                   .multiple = rows == Rows::kWhole ? vector : 1};
    return at;
  }
  std::string PlaceLines(const Group& group, const char* element, const char* indent) const {
    return CoordinateLines(group.shape, [](size_t) { return true; }, "c", element, Index(), indent);
  }

  graph::ElementText Writer(int64_t vector, bool narrow, const char* indent, bool ahead) const {
    return {
        graph_,
        {.vector = vector, .indent = indent, .index = Index(), .narrow = narrow, .ahead = ahead}};
  }

  /// The largest number of outer axes along which a thread's vectors can follow each other and
  /// still share something costly.
  size_t OuterAxes(const Group& group) const {
    constexpr int64_t kVector = 2;  // all have much the same statements
    if (!Whole(group, kVector)) return 0;
    graph::ElementText elements = Writer(kVector, false, "      ", true);
    for (const graph::Output& output : group.outputs)
      elements.Of(output.node, Places(group, Rows::kWhole, kVector));
    const auto costly = [](const std::string& text) {
      return std::ranges::any_of(std::array{"sin(", "cos(", "exp2(", "floor_div("},
                                 [&](const char* call) { return text.contains(call); });
    };
    size_t axes = costly(elements.Scope(1)) ? group.shape.size() - 1 : 0;
    while (axes > 0 && !costly(graph::WithShared(elements.Scope(1), axes).first)) --axes;
    return axes;
  }

  std::string Kernel(const std::string& name, const Group& group, const Chosen& chosen,
                     bool narrow) const {
    const int64_t vector = chosen["vector"];
    const std::string place = PlaceLines(group, "element", "      ");
    if (!Whole(group, vector))
      return Loops(name, group, "", ItemLoop(place + BrokenText(group, vector, narrow)));
    graph::ElementText elements = Writer(vector, narrow, "      ", true);
    const std::string each = ResultsText(elements, graph_, group.outputs,
                                         Places(group, Rows::kWhole, vector), "element", "      ");
    const bool shares = group.outer > 0 && vector > 1 && chosen["shares"] == 1;
    const std::string ahead = elements.Arrays() +
                              (elements.Ahead().empty()
                                   ? ""
                                   : ItemLoop(place + elements.Ahead(), shares));
    if (!shares) return Loops(name, group, ahead, ItemLoop(place + each));
    const auto [shared, rest] = graph::WithShared(each, group.outer);
    const Shape inner(group.shape.begin() + static_cast<ptrdiff_t>(group.outer), group.shape.end());
    return Loops(name, group, ahead + PlaceLines(group, "first * VEC", "    ") + shared,
                 ItemLoop(place + rest, true), graph::CountText(inner));
  }

  /// A vector that may reach into the next row. Where rows are long that is seldom, and asked
  /// first.
  std::string BrokenText(const Group& group, int64_t vector, bool narrow) const {
    const auto text = [&](Rows rows, const char* indent) {
      graph::ElementText elements = Writer(vector, narrow, indent, false);
      const graph::Coordinates at = Places(group, rows, vector);
      elements.Number(group.shape, at, "element");
      const std::string first = rows == Rows::kAny
                                    ? PlaceLines(group, "element + lane",
                                                 (std::string(indent) + "  ").c_str())
                                    : "";
      return ResultsText(elements, graph_, group.outputs, at, "element", indent, first);
    };
    const graph::Extent& row = group.shape.back();
    if (row.factor() < 32 * vector) return text(Rows::kAny, "      ");
    return fmt::format("      if (c{} + VEC <= {}) {{\n{}      }} else {{\n{}      }}\n",
                       group.shape.size() - 1, row.ToString(), text(Rows::kOne, "        "),
                       text(Rows::kAny, "        "));
  }

  /// Over a thread's vectors. Those that share something are all computed, in place of one beyond
  /// the end the first again.
  std::string ItemLoop(const std::string& body, bool shares = false) const {
    const std::string number =
        shares ? "(first + item * stride < vectors ? first + item * stride : first)"
               : "(first + item * BLOCK)";
    return fmt::format(
        "#pragma unroll\n    for (int item = 0; item < ITEMS; ++item) {{\n{}      const {} element "
        "= {} * VEC;\n{}    "
        "}}\n",
        shares ? "" : "      if (first + item * BLOCK >= vectors) break;\n", Index(), number, body);
  }
  /// The loops over a kernel's vectors; with `inner` the vectors of a thread share a value once in
  /// this many elements.
  std::string Loops(const std::string& name, const Group& group, const std::string& ahead,
                    const std::string& each, const std::string& inner = "") const {
    const std::string first =
        inner.empty()
            ? "  const long long group = (long long)BLOCK * ITEMS;\n"
              "  for (long long first = blockIdx.x * group + threadIdx.x; first < vectors; first "
              "+= "
              "gridDim.x * group) {\n"
            : fmt::format(
                  "  const {} stride = {} / VEC;\n"
                  "  for (long long number = blockIdx.x * (long long)BLOCK + threadIdx.x, first;\n"
                  "       (first = number / stride * ITEMS * stride + number % stride) < vectors; "
                  "number += gridDim.x * (long long)BLOCK) {{\n",
                  Index(), inner);
    return KernelHead(group.spec, name) +
           fmt::format("  const long long vectors = {} / VEC;\n{}{}{}  }}\n}}\n",
                       graph::CountText(group.shape), first, ahead, each);
  }

  std::vector<Group> groups_;
};

}  // namespace

constinit const Family kElementsFamily{
    .name = "elements", .Try = TryForm<PointwiseTemplate, PointwiseForm>, .rereads_operands = true};

}  // namespace atunner
