// Pointwise: graphs in which every output is one expression over broadcast inputs. A thread computes whole vectors of
// neighbouring elements, several of them with their loads in flight together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/bound_template.h"
#include "atunner/codegen/form_family.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/plain_kernels.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Extent;
using graph::Map;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValidGraph;

/// The graph with every map put into its users, if that leaves nothing but maps over inputs, all of one shape.
std::optional<ValidGraph> PointwiseForm(const KernelSpec& spec) {
  std::optional<ValidGraph> graph = FusedGraphOf(spec);
  if (!graph) return std::nullopt;
  const Shape& space = graph->node(graph->outputs()[0].node).type.shape;
  for (const Node& node : graph->nodes()) {
    if (node.As<graph::Input>()) continue;
    if (!node.As<Map>() || !(node.type.shape == space)) return std::nullopt;
  }
  const bool maps = std::ranges::all_of(
      graph->outputs(), [&](const graph::Output& output) { return graph->node(output.node).As<Map>() != nullptr; });
  return maps ? graph : std::nullopt;
}

class PointwiseTemplate : public BoundTemplate {
 public:
  PointwiseTemplate(const KernelSpec& spec, const DeviceProfile& profile, ValidGraph graph)
      : BoundTemplate(spec, profile),
        graph_(std::move(graph)),
        space_shape_(graph_.node(graph_.outputs()[0].node).type.shape),
        layout_(LayoutOf()) {
    MakeSpace();
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    ConstantBlock constants;
    constants.Int("VEC", at["vector"], "neighbouring elements that a thread computes at once")
        .Int("ITEMS", at["items"], "vectors that a thread has in flight")
        .Int("BLOCK", at["block"], "threads")
        .Bool("STREAM", at["stream"] != 0, "evict-first loads and stores");
    SourceUnit source =
        GraphSource(spec_, "pointwise", space_.Describe(configuration), constants,
                    fmt::format("{}{}\n{}", Narrow(configuration) ? std::string(embed::kNarrowCuh) + "\n" : "",
                                embed::kVectorCuh, Body(Narrow(configuration))));
    return RenderedKernel{std::move(source), Plan(configuration, {Launch(configuration)})};
  }

  std::vector<Dims> CheckDims(const Configuration& configuration) const override {
    // As few rows as there may be, and enough for a few blocks of which the last is partly empty.
    const Chosen at = chosen(configuration);
    const int64_t block = at["block"] * at["items"] * at["vector"];
    const int64_t several = std::min<int64_t>(2 * block, 100000) / graph::ElementCount(space_shape_).factor() + 1;
    return CheckSizes(spec_, graph_, several, several);
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
    const double persistent = integer("blocks_per_sm") > 0 ? 1.06 : 1.0;
    const double stream = integer("stream") > 0 ? 1.08 : 1.0;
    const double full = MayBeNarrow(graph_) && !Narrow(configuration) ? 1.05 : 1.0;
    return bytes / profile.dram_gbps * narrow * items * block * persistent * stream * full;
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
  const Extent& last() const { return layout_.extents().back(); }
  size_t last_axis() const { return layout_.rank() - 1; }
  /// Does input `i` change along the last axis?
  bool Vectored(size_t i) const { return layout_.Has(i + 1, last_axis()); }

  bool Narrow(const Configuration& configuration) const { return IsNarrow(graph_, space_, configuration); }

  void MakeSpace() {
    const std::vector<Value> vectors =
        PowersOfTwo(16, [&](int64_t v) { return v * WidestElement(spec_) <= 32 && last().factor() % v == 0; });
    space_.parameters = {
        {"vector", vectors, "neighbouring elements that a thread computes at once"},
        {"items", Integers({1, 2, 4, 8}), "vectors that a thread has in flight"},
        {"block", Integers({64, 128, 256, 512, 1024}), "threads of a block"},
        {"blocks_per_sm", Integers({0, 1, 2, 4, 8}), "0 = as many blocks as there is work, else a persistent grid"},
        {"stream", Integers({0, 1}), "evict-first loads and stores"},
    };
    AddFunctions(graph_, space_);
    Add(fmt::format("vector * items * {} <= 128", WidestElement(spec_)), "what is in flight takes registers");
  }

  LaunchStep Launch(const Configuration& configuration) const {
    const int64_t persistent = chosen(configuration)["blocks_per_sm"] * profile_.sms;
    LaunchStep step =
        Step("kernel",
             fmt::format("min(ceil_div({}, vector * items * block), {})", graph::ElementCount(space_shape_).ToString(),
                         persistent > 0 ? persistent : INT32_MAX),
             Expr::MustParse("block"));
    BindParameters(spec_, step);
    return step;
  }

  // --- text ---

  std::string Body(bool narrow) const {
    std::string text =
        "extern \"C\" __global__ void __launch_bounds__(BLOCK) kernel(" + KernelParameters(spec_) + ") {\n";
    text += fmt::format("  const long long vectors = {} / VEC;\n", graph::ElementCount(space_shape_).ToString());
    text += "  const long long group = (long long)BLOCK * ITEMS;\n";
    text +=
        "  for (long long first = blockIdx.x * group + threadIdx.x; first < vectors; first += gridDim.x * group) {\n";
    text += Loads();
    text += "#pragma unroll\n    for (int item = 0; item < ITEMS; ++item) {\n";
    text += "      const long long element = (first + item * BLOCK) * VEC;\n";
    text += "      if (first + item * BLOCK >= vectors) break;\n";
    for (const auto& output : graph_.outputs())
      text += fmt::format("      Vector<{}> {}_out;\n", CudaName(graph_.node(output.node).type.dtype), output.name);
    text += "#pragma unroll\n      for (int lane = 0; lane < VEC; ++lane) {\n" + Lane(narrow) + "      }\n";
    for (const auto& output : graph_.outputs())
      text += fmt::format("      write(out_{0} + element, {0}_out);\n", output.name);
    return text + "    }\n  }\n}\n";
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

  /// The node's name, with an underscore that no other name here ends in.
  std::string ValueName(size_t id) const {
    const std::string& name = graph_.nodes()[id].name;
    return (name.empty() ? "v" + std::to_string(id) : name) + "_";
  }

  /// One element of every output.
  std::string Lane(bool narrow) const {
    std::string text;
    std::vector<std::string> values(graph_.nodes().size());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const std::string type = graph::CudaArithmetic(InputType(i).dtype, false);
      values[graph_.inputs()[i]] = Name(i) + "_value";
      text += fmt::format("        const {0} {1}_value = load<{0}>({1}_in[item]{2});\n", type, Name(i),
                          Vectored(i) ? ".element[lane]" : "");
    }
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const auto* map = node.As<Map>();
      if (!map) continue;
      graph::CudaContext context{.operands = {}, .place = {}, .temporary = ValueName(id) + "t", .narrow = narrow};
      for (NodeId operand : node.operands) context.operands.push_back(values[operand]);
      context.place = [&](graph::ScalarOp op, int axis) {
        const auto from_left = static_cast<int64_t>(space_shape_.size()) + axis;
        const std::string extent = space_shape_[from_left].ToString();
        if (op == graph::ScalarOp::kExtent) return "(long long)(" + extent + ")";
        const std::string stride =
            graph::ElementCount({space_shape_.begin() + from_left + 1, space_shape_.end()}).ToString();
        return fmt::format("(element + lane) / ({}) % ({})", stride, extent);
      };
      const graph::CudaText value = graph::ToCuda(map->body, context);
      for (const std::string& statement : value.statements) text += "        " + statement + "\n";
      values[id] = ValueName(id);
      text += fmt::format("        const {} {} = {};\n", graph::CudaArithmetic(node.type.dtype, false), values[id],
                          value.value);
    }
    for (const auto& output : graph_.outputs())
      text += fmt::format("        store({}_out.element[lane], {});\n", output.name, values[output.node]);
    return text;
  }

  ValidGraph graph_;
  Shape space_shape_;
  GraphLayout layout_;
};

}  // namespace

const Family& PointwiseFamily() {
  static const FormFamily<PointwiseTemplate, PointwiseForm> family("pointwise");
  return family;
}

}  // namespace atunner
