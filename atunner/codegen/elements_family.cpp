// Elements: graphs in which every element of an output is computed from few elements of the inputs, wherever they lie:
// gathers, embeddings, transposes, padding, joining, pooling, and maps between them. A thread computes whole vectors of
// neighbouring elements, and reads vectors where neighbours come from neighbours. Pointwise: those in which every
// output is one expression over broadcast inputs; a thread has several vectors with their loads in flight together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Extent;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValidGraph;

constexpr double kMostWork = 256;  // elements read for one that is written: one sum after the other errs by their root

/// The graph with every map put into its users, if that leaves nothing but maps over inputs, all of one shape.
std::optional<ValidGraph> PointwiseForm(const KernelSpec& spec) {
  std::optional<ValidGraph> graph = FusedGraphOf(spec);
  if (!graph) return std::nullopt;
  const Shape& space = graph->node(graph->outputs()[0].node).type.shape;
  for (const Node& node : graph->nodes()) {
    if (node.As<graph::Input>()) continue;
    if (!node.As<graph::Map>() || !(node.type.shape == space)) return std::nullopt;
  }
  const bool maps = std::ranges::all_of(graph->outputs(), [&](const graph::Output& output) {
    return graph->node(output.node).As<graph::Map>() != nullptr;
  });
  return maps ? graph : std::nullopt;
}

struct ElementsForm {
  ValidGraph graph;
  double work = 1;
};

std::optional<ElementsForm> ElementsFormOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  if (!fused) return std::nullopt;
  ElementsForm form{graph::MergeAxes(*fused)};
  for (const graph::Output& output : form.graph.outputs()) {
    const graph::ElementText::Served served = graph::ElementText::Serves(form.graph, output.node);
    if (!served.yes || served.work > kMostWork) return std::nullopt;
    form.work = std::max(form.work, served.work);
  }
  return form;
}

/// What both have: a thread computes ITEMS vectors of the results of one shape.
class VectorsTemplate : public GraphTemplate {
 public:
  using GraphTemplate::GraphTemplate;

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    std::string kernels;
    std::vector<LaunchStep> steps;
    for (const Group& group : groups_) {
      const std::string name = groups_.size() == 1 ? "kernel" : "kernel_" + group.outputs[0].name;
      kernels += "\n" + Kernel(name, group, GetInt(space_, configuration, "vector"), Narrow(configuration));
      steps.push_back(Launch(
          name, fmt::format("min(ceil_div({}, vector * items * block), {})", CountOf(group), INT32_MAX), "block"));
    }
    return RenderedKernel{
        Source(configuration, name_, {}, {Narrow(configuration) ? embed::kNarrowCuh : "", embed::kVectorCuh, kernels}),
        Plan(configuration, std::move(steps))};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // As few rows as there may be, and enough for a few blocks of which the last is partly empty.
    const Chosen at = chosen(configuration);
    const int64_t block = at["block"] * at["items"] * at["vector"];
    const int64_t several = std::min<int64_t>(2 * block, 100000) / graph::ElementCount(groups_[0].shape).factor() + 1;
    return CheckSizes(spec_, graph_, several, several);
  }

 protected:
  /// Outputs of one shape, which one kernel computes.
  struct Group {
    Shape shape;
    std::vector<graph::Output> outputs;
  };
  static std::string CountOf(const Group& group) { return graph::ElementCount(group.shape).ToString(); }
  virtual std::string Kernel(const std::string& name, const Group& group, int64_t vector, bool narrow) const = 0;

  bool Narrow(const Configuration& configuration) const { return IsNarrow(graph_, space_, configuration); }
  void MakeSpace(int64_t widest, int64_t neighbours) {
    space_.parameters = {
        {"vector", VectorWidths(widest, neighbours, 32), "neighbouring elements that a thread computes at once"},
        {"items", Integers({1, 2, 4, 8}), "vectors that a thread computes"},
        {"block", Integers({64, 128, 256, 512, 1024}), "threads of a block"},
    };
    AddFunctions(graph_, space_);
    Add(fmt::format("vector * items * {} <= 128", widest), "what is in flight takes registers");
  }

  std::string name_;
  std::vector<Group> groups_;
};

class PointwiseTemplate : public VectorsTemplate {
 public:
  PointwiseTemplate(const KernelSpec& spec, const DeviceProfile& profile, ValidGraph graph)
      : VectorsTemplate(spec, profile, std::move(graph)),
        space_shape_(TypeOf(graph_.outputs()[0].node).shape),
        layout_(LayoutOf()) {
    name_ = "pointwise";
    groups_ = {{space_shape_, graph_.outputs()}};
    MakeSpace(WidestElement(spec_), layout_.extents().back().factor());
  }

  SizeFreedom FreeSizes(const Configuration&) const override {
    return OpenSize(!Repeats() || !Small() ? nullptr : kElementNumbers);
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return Real(GetInt(space_, configuration, name)); };
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    const double width = integer("vector") * Real(WidestElement(spec_));
    // One instruction moves 16 bytes; two of them side by side write halves of sectors.
    const double narrow = width > 16 ? 1.06 : width == 16 ? 1.0 : width >= 8 ? 1.03 : width >= 4 ? 1.2 : 1.7;
    // Memory likes to be walked through in order: by small blocks, each of them once, whose loads are few.
    const double items = integer("items") > 1 ? 1 + 0.01 * std::log2(integer("items") / 2) : 1.008;
    const double piece = integer("block") * integer("items") * width;
    const double block =
        1 + 0.01 * std::max(0.0, std::log2(piece / 4096)) + 0.003 * std::abs(std::log2(integer("block") / 128));
    const double full = MayBeNarrow(graph_) && !Narrow(configuration) ? 1.05 : 1.0;
    return bytes / profile.dram_gbps * narrow * items * block * full;
  }

 private:
  /// Do 31 bits number every element?
  bool Small() const { return graph::ElementCount(space_shape_).Bound(spec_.dims).factor() < INT32_MAX; }
  /// Does an input repeat along an axis, so that an element's place has to be known?
  bool Repeats() const {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (!layout_.HasAll(i + 1)) return true;
    }
    return false;
  }
  GraphLayout LayoutOf() const {
    std::vector<Shape> shapes = {space_shape_};  // tensor 0: what is computed
    for (NodeId id : graph_.inputs()) shapes.push_back(graph_.node(id).type.shape);
    return {space_shape_, shapes};
  }
  const graph::TensorType& InputType(size_t i) const { return graph_.node(graph_.inputs()[i]).type; }
  /// Does input `i` change along the last axis?
  bool Vectored(size_t i) const { return layout_.Has(i + 1, layout_.rank() - 1); }

  std::string Kernel(const std::string& name, const Group& group, int64_t vector, bool narrow) const override {
    return VectorsKernel(spec_, name, CountOf(group), Loads(), Lanes(vector, narrow));
  }

  /// All loads of a group before any of its arithmetic.
  std::string Loads() const {
    std::string text;
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      text += fmt::format("    {} {}_in[ITEMS];\n",
                          Vectored(i) ? fmt::format("Vector<{}>", CudaName(InputType(i).dtype))
                                      : std::string(CudaName(InputType(i).dtype)),
                          Name(i));
    text += "#pragma unroll\n    for (int item = 0; item < ITEMS; ++item) {\n";
    text += "      if (first + item * BLOCK >= vectors) break;\n";
    text += "      const long long element = (first + item * BLOCK) * VEC;\n";
    if (Repeats()) {
      for (const std::string& line : layout_.Coordinates("element", layout_.rank(), Small()))
        text += "      " + line + "\n";
    }
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const std::string offset = layout_.HasAll(i + 1) ? "element" : layout_.Offset(i + 1, layout_.rank());
      text += Vectored(i) ? fmt::format("      read({0}_in[item], in_{0} + {1});\n", Name(i), offset)
                          : fmt::format("      {0}_in[item] = in_{0}[{1}];\n", Name(i), offset);
    }
    return text + "    }\n";
  }

  const std::string& Name(size_t i) const { return graph_.node(graph_.inputs()[i]).name; }

  /// One vector of every output.
  std::string Lanes(int64_t vector, bool narrow) const {
    graph::ElementText elements(graph_, {.vector = vector, .indent = "      ", .narrow = narrow});
    graph::Coordinates at(space_shape_.size(), {.lanes = graph::Coordinate::Lanes::kAny, .depth = 1});
    Extent stride(1);
    for (size_t axis = at.size(); axis-- > 0; stride = stride * space_shape_[axis])
      at[axis].text = fmt::format("((element + lane) / ({}) % ({}))", stride.ToString(), space_shape_[axis].ToString());
    std::string first;
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Shape& shape = InputType(i).shape;
      graph::Coordinates inner(at.end() - static_cast<int64_t>(shape.size()), at.end());
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis].one()) inner[axis] = {.text = "0"};
      }
      elements.Know(graph_.inputs()[i], {Name(i) + "_value", 1}, inner);
      first +=
          fmt::format("        const {0} {1}_value = load<{0}>({1}_in[item]{2});\n",
                      graph::CudaArithmetic(InputType(i).dtype, false), Name(i), Vectored(i) ? ".element[lane]" : "");
    }
    return ResultsText(elements, graph_, graph_.outputs(), at, "element", "      ", first);
  }

  Shape space_shape_;
  GraphLayout layout_;
};

class ElementsTemplate : public VectorsTemplate {
 public:
  ElementsTemplate(const KernelSpec& spec, const DeviceProfile& profile, ElementsForm form)
      : VectorsTemplate(spec, profile, std::move(form.graph)), work_(form.work) {
    name_ = "elements";
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
    MakeSpace(Widest(), neighbours);
  }

  SizeFreedom FreeSizes(const Configuration&) const override {
    return OpenSize(Index() != "int" ? nullptr : kElementNumbers);
  }

  std::optional<double> Cost(const Configuration& configuration, const DeviceProfile& profile) const override {
    const auto integer = [&](const char* name) { return Real(GetInt(space_, configuration, name)); };
    const double bytes = MinimumBytes(spec_, spec_.dims).value_or(0);
    const double width = integer("vector") * Real(Widest());
    const double narrow = width >= 16 ? 1.0 + 0.1 * std::log2(width / 16) : 1.0 + 0.15 * std::log2(16 / width);
    const double broken = 1 + (Whole(integer("vector")) ? 0 : 0.02 * std::log2(integer("vector")));
    // A row's place has to be there before the row is asked for: several under way hide that.
    const auto gathers_from = [this](bool last_axis) {
      return std::ranges::any_of(graph_.nodes(), [&](const graph::Node& node) {
        const auto* gather = node.As<graph::Gather>();
        return gather &&
               last_axis == (gather->axis + 1 == static_cast<int64_t>(graph_.node(node.operands[0]).type.rank()));
      });
    };
    const bool gathers = gathers_from(false);
    const double items =
        gathers ? 1 + 0.04 * std::fabs(std::log2(4 / integer("items"))) : 1 + 0.01 * std::log2(integer("items"));
    // A block that gathers elements should see much of the row that they come from.
    const double block = 1 + 0.01 * std::abs(std::log2(integer("block") / (gathers_from(true) ? 256 : 128)));
    const double full = MayBeNarrow(graph_) && !Narrow(configuration) ? 1.05 : 1.0;
    return bytes / profile.dram_gbps * narrow * broken * items * block * full * (1 + 0.02 * work_);
  }

 private:
  /// Does no vector of a group's elements go beyond a row?
  static bool Whole(const Group& group, int64_t vector) {
    return vector == 1 || (!group.shape.empty() && group.shape.back().factor() % vector == 0);
  }
  bool Whole(double vector) const {
    return std::ranges::all_of(groups_, [&](const Group& group) { return Whole(group, static_cast<int64_t>(vector)); });
  }

  /// Of what inputs and outputs move; places of gathers are read one by one.
  int64_t Widest() const {
    size_t widest = 1;
    for (const ArgSpec& arg : spec_.args) {
      if (arg.role == Role::kOutput || IsFloat(arg.dtype)) widest = std::max(widest, SizeOf(arg.dtype));
    }
    return static_cast<int64_t>(widest);
  }

  std::string Index() const { return IndexType(graph_, spec_.dims); }

  std::string Kernel(const std::string& name, const Group& group, int64_t vector, bool narrow) const override {
    const bool whole = Whole(group, vector);
    graph::Coordinates at(group.shape.size());
    for (size_t axis = 0; axis < at.size(); ++axis) {
      at[axis].text = group.shape[axis].one() ? "0" : "c" + std::to_string(axis);
      if (!whole) {
        at[axis].lanes = graph::Coordinate::Lanes::kAny;
        at[axis].depth = 1;
      } else if (axis + 1 == at.size() && vector > 1) {
        at[axis] = {.text = at[axis].text, .lanes = graph::Coordinate::Lanes::kNext, .multiple = vector};
      }
    }
    const std::string coordinates = CoordinateLines(
        group.shape, [](size_t) { return true; }, "c", whole ? "element" : "element + lane", Index(),
        whole ? "      " : "        ");
    graph::ElementText elements(graph_, {.vector = vector, .indent = "      ", .index = Index(), .narrow = narrow});
    return VectorsKernel(spec_, name, CountOf(group), "",
                         (whole ? coordinates : "") + ResultsText(elements, graph_, group.outputs, at, "element",
                                                                  "      ", whole ? "" : coordinates),
                         Index());
  }

  double work_;
};

}  // namespace

const Family& PointwiseFamily() {
  static const FormFamily<PointwiseTemplate, PointwiseForm> family("pointwise");
  return family;
}

const Family& ElementsFamily() {
  static const FormFamily<ElementsTemplate, ElementsFormOf> family("elements");
  return family;
}

}  // namespace atunner
