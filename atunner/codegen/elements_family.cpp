// Elements: graphs in which every element of an output is computed from few elements of the inputs, wherever they lie:
// gathers, embeddings, transposes, padding, joining, pooling, and maps between them. A thread computes whole vectors of
// neighbouring elements, and reads vectors where neighbours come from neighbours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/merged_axes.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/element_text.h"
#include "atunner/graph/plain_kernels.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Extent;
using graph::NodeId;
using graph::Shape;
using graph::ValidGraph;

constexpr double kMostWork = 4096;  // elements read for one that is written

struct ElementsForm {
  ValidGraph graph;
  double work = 1;
};

std::optional<ElementsForm> FormOf(const KernelSpec& spec) {
  const auto fused = FusedGraphOf(spec);
  if (!fused) return std::nullopt;
  ElementsForm form{MergeAxes(*fused)};
  for (const graph::Output& output : form.graph.outputs()) {
    const graph::ElementText::Served served = graph::ElementText::Serves(form.graph, output.node);
    if (!served.yes || served.work > kMostWork) return std::nullopt;
    form.work = std::max(form.work, served.work);
  }
  return form;
}

class ElementsTemplate : public BoundTemplate {
 public:
  ElementsTemplate(const KernelSpec& spec, const DeviceProfile& profile, ElementsForm form)
      : BoundTemplate(spec, profile), graph_(std::move(form.graph)), work_(form.work) {
    for (const graph::Output& output : graph_.outputs()) {
      const Shape& shape = graph_.node(output.node).type.shape;
      const auto same = std::ranges::find(groups_, shape, &Group::shape);
      if (same == groups_.end())
        groups_.push_back({shape, {output}});
      else
        same->outputs.push_back(output);
    }
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Int("VEC", at["vector"], "neighbouring elements that a thread computes at once")
        .Int("ITEMS", at["items"], "vectors that a thread computes one after the other")
        .Int("BLOCK", at["block"], "threads")
        .Bool("STREAM", at["stream"] != 0, "evict-first loads and stores");
    SourceUnit source =
        GraphSource(spec_, "elements", space_.Describe(configuration), constants, std::string(embed::kVectorCuh));
    std::vector<LaunchStep> steps;
    for (const Group& group : groups_) {
      const std::string name = groups_.size() == 1 ? "kernel" : "kernel_" + group.outputs[0].name;
      source.text += "\n" + Kernel(name, group, at["vector"]);
      LaunchStep step =
          Step(name, fmt::format("min(ceil_div({}, vector * items * block), {})", CountOf(group), INT32_MAX),
               Expr::MustParse("block"));
      BindParameters(spec_, step);
      steps.push_back(std::move(step));
    }
    return RenderedKernel{std::move(source), Plan(configuration, std::move(steps))};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const int64_t block = at["block"] * at["items"] * at["vector"];
    const int64_t several = std::min<int64_t>(2 * block, 100000) / graph::ElementCount(groups_[0].shape).factor() + 1;
    return CheckSizes(spec_, graph_, several, several);
  }

  SizeFreedom FreeSizes(const Configuration&) const override {
    return OpenSize(IndexType() != "int" ? nullptr : kElementNumbers);
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
    const double items = gathers ? 1 + 0.04 * std::log2(4 / integer("items")) : 1 + 0.01 * std::log2(integer("items"));
    // A block that gathers elements should see much of the row that they come from.
    const double block = 1 + 0.01 * std::abs(std::log2(integer("block") / (gathers_from(true) ? 256 : 128)));
    const double stream = integer("stream") > 0 ? 1.03 : 1.0;
    return bytes / profile.dram_gbps * narrow * broken * items * block * stream * (1 + 0.02 * work_);
  }

 private:
  /// Outputs of one shape, which one kernel computes.
  struct Group {
    Shape shape;
    std::vector<graph::Output> outputs;
  };
  static std::string CountOf(const Group& group) { return graph::ElementCount(group.shape).ToString(); }

  /// Does no vector of a group's elements go beyond a row?
  static bool Whole(const Group& group, int64_t vector) {
    return vector == 1 || (!group.shape.empty() && group.shape.back().factor() % vector == 0);
  }
  bool Whole(double vector) const {
    return std::ranges::all_of(groups_, [&](const Group& group) { return Whole(group, static_cast<int64_t>(vector)); });
  }

  /// Of what inputs and outputs move; places of gathers are read one by one.
  size_t Widest() const {
    size_t widest = 1;
    for (const ArgSpec& arg : spec_.args) {
      if (arg.role == Role::kOutput || IsFloat(arg.dtype)) widest = std::max(widest, SizeOf(arg.dtype));
    }
    return widest;
  }

  void MakeSpace() {
    const std::vector<Value> vectors = PowersOfTwo(16, [&](int64_t v) {
      return v * static_cast<int64_t>(Widest()) <= 32 && std::ranges::all_of(groups_, [&](const Group& group) {
               return graph::ElementCount(group.shape).factor() % v == 0;
             });
    });
    space_.parameters = {
        {"vector", vectors, "neighbouring elements that a thread computes at once"},
        {"items", Integers({1, 2, 4}), "vectors that a thread computes one after the other"},
        {"block", Integers({64, 128, 256, 512, 1024}), "threads of a block"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
    };
  }

  /// 32 bits where they number every element of every tensor.
  std::string IndexType() const {
    const auto small = [&](const graph::TensorType& type) {
      return graph::ElementCount(type.shape).Bound(spec_.dims).factor() < INT32_MAX / 2;
    };
    return std::ranges::all_of(graph_.nodes(), [&](const graph::Node& node) { return small(node.type); }) ? "int"
                                                                                                          : "long long";
  }

  std::string Kernel(const std::string& name, const Group& group, int64_t vector) const {
    graph::ElementText elements(graph_, {.vector = vector, .indent = "      ", .index = IndexType()});
    const bool whole = Whole(group, vector);
    std::string coordinates;
    graph::Coordinates at;
    for (size_t axis = 0; axis < group.shape.size(); ++axis) {
      const bool last = axis + 1 == group.shape.size();
      const std::string stride =
          graph::ElementCount({group.shape.begin() + static_cast<int64_t>(axis) + 1, group.shape.end()}).ToString();
      coordinates += Indent(whole) + CoordinateLine(axis, whole ? "element" : "(element + lane)", stride, group.shape);
      at.push_back({.text = "c" + std::to_string(axis)});
      if (!whole) {
        at.back().lanes = graph::Coordinate::Lanes::kAny;
        at.back().depth = 1;
      } else if (last) {
        if (vector > 1) at.back().lanes = graph::Coordinate::Lanes::kNext;
        at.back().multiple = vector;
      }
    }
    std::string stores;
    std::string vectors;
    std::string writes;
    for (const graph::Output& output : group.outputs) {
      const auto value = elements.Of(output.node, at);
      vectors += fmt::format("      Vector<{}> {}_out;\n", CudaName(graph_.node(output.node).type.dtype), output.name);
      stores += fmt::format("        store({}_out.element[lane], {});\n", output.name, value.text);
      writes += fmt::format("      write(out_{0} + element, {0}_out);\n", output.name);
    }
    return fmt::format(R"(extern "C" __global__ void __launch_bounds__(BLOCK) {}({}) {{
  const long long vectors = {} / VEC;
  const long long group = (long long)BLOCK * ITEMS;
  for (long long first = blockIdx.x * group + threadIdx.x; first < vectors; first += gridDim.x * group) {{
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {{
      if (first + item * BLOCK >= vectors) break;
      const {} element = (first + item * BLOCK) * VEC;
)",
                       name, KernelParameters(spec_), CountOf(group), IndexType()) +
           (whole ? coordinates : "") + elements.Scope(0) + vectors +
           "#pragma unroll\n      for (int lane = 0; lane < VEC; ++lane) {\n" + (whole ? "" : coordinates) +
           elements.Scope(1) + stores + "      }\n" + writes + "    }\n  }\n}\n";
  }
  static std::string Indent(bool whole) { return whole ? "      " : "        "; }

  /// The place along an axis of the element with this number. Unsigned numbers are divided with fewer instructions.
  std::string CoordinateLine(size_t axis, const std::string& number, const std::string& stride,
                             const Shape& shape) const {
    const bool small = IndexType() == "int";
    const auto divisor = [&](const std::string& text) { return small ? "(unsigned)(" + text + ")" : "(" + text + ")"; };
    return fmt::format("const {} c{} = {}{}{}{};\n", IndexType(), axis, small ? "(unsigned)" : "", number,
                       stride == "1" ? "" : " / " + divisor(stride),
                       axis == 0 ? "" : " % " + divisor(shape[axis].ToString()));
  }

  ValidGraph graph_;
  double work_;
  std::vector<Group> groups_;
};

}  // namespace

const Family& ElementsFamily() {
  static const FormFamily<ElementsTemplate, FormOf> family("elements");
  return family;
}

}  // namespace atunner
