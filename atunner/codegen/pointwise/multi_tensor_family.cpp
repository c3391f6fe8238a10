// Multi-tensor apply (graph/match/multi_tensor.h): optimizer steps over all parameters of a model,
// gradients that are clipped or unscaled together. One launch serves all tensors of a group; a
// block looks up which tensor it works on. If all tensors have reductions in common (a norm of all
// gradients), one block joins the partial results, and the outputs that depend on them follow in a
// further launch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/template/costs.h"
#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/graph_layout.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/match/multi_tensor.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "embed/families.h"

namespace atunner {
namespace {

using graph::Coordinates;
using graph::ElementText;
using graph::GroupMember;
using graph::NodeId;
using graph::TensorGroup;

struct MultiTensorForm {
  graph::ValidGraph graph;
  graph::MultiTensorGroups tensors;
};

std::optional<MultiTensorForm> MultiTensorFormOf(const Task& task) {
  const graph::ValidGraph* parsed = task.graph();
  // FindMultiTensorGroups is cheap and refuses most graphs before their axes are merged.
  if (!parsed || !task.spec().dims.empty() || !graph::FindMultiTensorGroups(*parsed))
    return std::nullopt;
  graph::ValidGraph graph = graph::MergeAxes(*parsed);
  const bool lines = std::ranges::all_of(graph.nodes(), [](const graph::Node& node) {
    return node.type.rank() <= 1 || graph::ElementCount(node.type.shape).one();
  });
  auto found = lines ? graph::FindMultiTensorGroups(graph) : std::nullopt;
  if (!found) return std::nullopt;
  return MultiTensorForm{std::move(graph), *std::move(found)};
}

/// The first of the blocks that each member has, and where the last one's end.
std::vector<int64_t> FirstBlocks(const TensorGroup& kind, int64_t of_block) {
  std::vector<int64_t> first = {0};
  for (const GroupMember& member : kind)
    first.push_back(first.back() + CeilDiv(member.elements, of_block));
  return first;
}

constexpr int64_t kSlot = 8;  // bytes of a value that steps hand on

class Writer {
 public:
  Writer(const MultiTensorForm& form, const KernelSpec& spec, const Chosen& at, bool narrow)
      : form_(form), spec_(spec), vector_(at["vector"]), narrow_(narrow) {
    const int64_t of_block = vector_ * at["items"] * at["block"] * at["tiles"];
    for (const TensorGroup& kind : form.tensors.groups) {
      blocks_.push_back(FirstBlocks(kind, of_block));
      parts_.push_back(part_bytes_);
      part_bytes_ += static_cast<int64_t>(kind[0].sums.size()) * blocks_.back().back() * kSlot;
    }
  }

  struct Launch {
    std::string name;
    int64_t blocks = 0;
    std::string threads;  ///< an expression over parameters
  };
  const std::vector<Launch>& launches() const { return launches_; }
  int64_t part_bytes() const { return part_bytes_; }

  std::string Run() {
    std::string text;
    for (size_t k = 0; k < form_.tensors.groups.size(); ++k) text += Tables(k);
    for (size_t k = 0; k < form_.tensors.groups.size(); ++k) {
      const GroupMember& member = form_.tensors.groups[k][0];
      if (!member.outputs.empty() || !member.sums.empty()) text += Tensors(k, false);
    }
    if (part_bytes_ > 0 || !form_.tensors.scalar_outputs.empty()) text += Join();
    for (size_t k = 0; k < form_.tensors.groups.size(); ++k) {
      if (!form_.tensors.groups[k][0].dependent_outputs.empty()) text += Tensors(k, true);
    }
    return Indented(text);
  }

 private:
  const graph::Node& NodeOf(NodeId id) const { return form_.graph.node(id); }
  std::string Computed(NodeId id) const {
    return graph::CudaArithmetic(NodeOf(id).type.dtype, false);
  }
  graph::Combine CombineOf(NodeId sum) const { return NodeOf(sum).As<graph::Reduce>()->op; }
  std::string Neutral(NodeId sum) const {
    const DType dtype = NodeOf(sum).type.dtype;
    return graph::CudaLiteral(dtype, graph::Neutral(CombineOf(sum), dtype), false);
  }
  /// The offset, in bytes, of the partial results of a group's i-th sum.
  int64_t PartsOf(size_t k, size_t i) const {
    return parts_[k] + static_cast<int64_t>(i) * blocks_[k].back() * kSlot;
  }
  std::string Head(const std::string& name, int64_t blocks, const std::string& threads) {
    launches_.push_back({name, blocks, threads});
    return fmt::format(
        "\nextern \"C\" __global__ void __launch_bounds__({}) {}({}, unsigned char* parts, "
        "unsigned char* scalars) {{\n",
        Capitals(threads), name, KernelParameters(spec_));
  }

  std::string Tables(size_t k) const {
    std::string elements;
    for (const GroupMember& member : form_.tensors.groups[k])
      elements += fmt::format("{}{}", elements.empty() ? "" : ", ", member.elements);
    return fmt::format(
        "// Tensors of one group: their elements, and their first blocks.\n__constant__ "
        "const long long "
        "elements_{0}[] = {{{1}}};\n__constant__ const int first_block_{0}[] = {{{2}}};\n",
        k, elements, fmt::join(blocks_[k], ", "));
  }

  /// The kernel of a group: the work of all members, written as that of the first, for the tensors
  /// of the member that a block serves.
  std::string Tensors(size_t k, bool later) {
    const TensorGroup& kind = form_.tensors.groups[k];
    const GroupMember& member = kind[0];
    results_ = later ? member.dependent_outputs : member.outputs;
    for (size_t i = 0; i < results_.size(); ++i) results_[i].name = fmt::format("y{}_", i);
    sums_ = later ? std::vector<NodeId>() : member.sums;
    std::string text = Head(fmt::format("{}{}", later ? "then" : "tensors", k), blocks_[k].back(),
                            "block");
    text += fmt::format("const int tensor = tensor_of(first_block_{}, {}, blockIdx.x);\n", k,
                        kind.size());
    text += Pointers(kind, later);
    for (size_t i = 0; later && i < form_.tensors.broadcast_scalars.size(); ++i)
      text += fmt::format("const {0} scalar{1}_ = *(const {0}*)(scalars + {2});\n",
                          Computed(form_.tensors.broadcast_scalars[i]), i,
                          static_cast<int64_t>(i) * kSlot);
    for (size_t i = 0; i < sums_.size(); ++i)
      text += fmt::format("{} sum{}_ = {};\n", Computed(sums_[i]), i, Neutral(sums_[i]));
    text += fmt::format(
        "long long begin = (long long)(blockIdx.x - first_block_{0}[tensor]) * TILE * TILES;\n"
        "const long long end = min(begin + TILE * TILES, elements_{0}[tensor]);\n"
        "for (; begin + TILE <= end; begin += TILE) {{\n{1}}}\n"
        "// The rest of the last tile.\n"
        "for (long long element = begin + threadIdx.x; element < end; element += BLOCK) "
        "{{\n{2}}}\n",
        k, Tile(member), Alone(member));
    for (size_t i = 0; i < sums_.size(); ++i) {
      text += fmt::format(
          "sum{0}_ = block_reduce<{1}, BLOCK>(sum{0}_, {2});\n"
          "if (threadIdx.x == 0) *({3}*)(parts + {4} + {5} * (long long)blockIdx.x) = sum{0}_;\n",
          i, CombinerName(CombineOf(sums_[i])), Neutral(sums_[i]), Computed(sums_[i]),
          PartsOf(k, i), kSlot);
    }
    return text + "}\n";
  }

  std::string Pointers(const TensorGroup& kind, bool later) const {
    std::string text;
    for (size_t i = 0; i < kind[0].inputs.size(); ++i)
      text += fmt::format("const {}* in_x{}_;\n", CudaName(NodeOf(kind[0].inputs[i]).type.dtype),
                          i);
    for (const graph::Output& result : results_)
      text += fmt::format("{}* out_{};\n", CudaName(NodeOf(result.node).type.dtype), result.name);
    text += "switch (tensor) {\n";
    for (size_t m = 0; m < kind.size(); ++m) {
      text += m + 1 == kind.size() ? "default:" : fmt::format("case {}:", m);
      for (size_t i = 0; i < kind[m].inputs.size(); ++i)
        text += fmt::format(" in_x{}_ = in_{};", i, NodeOf(kind[m].inputs[i]).name);
      const auto& outputs = later ? kind[m].dependent_outputs : kind[m].outputs;
      for (size_t i = 0; i < outputs.size(); ++i)
        text += fmt::format(" out_y{}_ = out_{};", i, outputs[i].name);
      text += " break;\n";
    }
    return text + "}\n";
  }

  ElementText Elements(const GroupMember& member, int64_t vector) const {
    const auto stored = [this,
                         inputs = member.inputs](NodeId id) -> std::optional<ElementText::Stored> {
      if (!NodeOf(id).As<graph::Input>()) return std::nullopt;
      const auto at = std::ranges::find(inputs, id);
      const std::string name = at == inputs.end() ? NodeOf(id).name
                                                  : fmt::format("x{}_", at - inputs.begin());
      return ElementText::Stored{"in_" + name, std::string(CudaName(NodeOf(id).type.dtype))};
    };
    ElementText elements(form_.graph, stored,
                         {.vector = vector, .narrow = narrow_, .ahead = vector > 1});
    for (size_t i = 0; i < form_.tensors.broadcast_scalars.size(); ++i) {
      const NodeId id = form_.tensors.broadcast_scalars[i];
      elements.Know(id, {fmt::format("scalar{}_", i), 0}, Single(id));
    }
    // Whatever the first member's size: only whole vectors are read so.
    elements.Number({graph::Extent(member.elements)}, ElementAt(vector), "element");
    return elements;
  }
  static Coordinates ElementAt(int64_t vector) {
    if (vector == 1) return {{.text = "element"}};
    return {{.text = "element", .lanes = graph::Coordinate::Lanes::kNext, .multiple = vector}};
  }
  Coordinates Single(NodeId id) const {
    return {NodeOf(id).type.rank(), {.text = "0", .multiple = 0}};
  }

  std::string Stores(ElementText& elements, const Coordinates& at, const std::string& to) const {
    std::string text;
    for (const graph::Output& result : results_)
      text += fmt::format("store({}, {});\n", fmt::format(fmt::runtime(to), result.name),
                          elements.Of(result.node, at).text);
    for (size_t i = 0; i < sums_.size(); ++i)
      text += fmt::format("sum{0}_ = {1}::of(sum{0}_, ({2}){3});\n", i,
                          CombinerName(CombineOf(sums_[i])), Computed(sums_[i]),
                          elements.Of(NodeOf(sums_[i]).operands[0], at).text);
    return text;
  }
  /// The vectors of all threads, whose loads are in flight together.
  std::string Tile(const GroupMember& member) const {
    ElementText elements = Elements(member, vector_);
    const std::string each = Stores(elements, ElementAt(vector_), "{}out.element[lane]");
    std::string vectors, writes;
    for (const graph::Output& result : results_) {
      vectors += fmt::format("Vector<{}> {}out;\n", CudaName(NodeOf(result.node).type.dtype),
                             result.name);
      writes += fmt::format("write(out_{0} + element, {0}out);\n", result.name);
    }
    const auto loop = [](const std::string& body) {
      return "#pragma unroll\nfor (int item = 0; item < ITEMS; ++item) {\n"
             "const long long element = begin + (item * BLOCK + threadIdx.x) * VEC;\n" +
             body + "}\n";
    };
    return elements.Arrays() + loop(elements.Ahead()) +
           loop(LanesText(elements, each, "", vectors) + writes);
  }
  std::string Alone(const GroupMember& member) const {
    ElementText elements = Elements(member, 1);
    const std::string each = Stores(elements, ElementAt(1), "out_{}[element]");
    return elements.Scope(0) + elements.Scope(1) + each;
  }

  /// The kernel in which one block adds up the partial results of all sums, and one thread computes
  /// the broadcast scalars from them.
  std::string Join() {
    std::string text = Head("join", 1, "1024");
    ElementText elements(form_.graph, {.narrow = narrow_});
    for (size_t k = 0; k < form_.tensors.groups.size(); ++k) {
      const TensorGroup& kind = form_.tensors.groups[k];
      for (size_t i = 0; i < kind[0].sums.size(); ++i) {
        const NodeId sum = kind[0].sums[i];
        text += fmt::format(
            "__shared__ {0} sums{1}_{2}[{3}];\njoin_parts<{4}>(sums{1}_{2}, ({0}){5}, parts + {6}, "
            "first_block_{1}, "
            "{3});\n",
            Computed(sum), k, i, kind.size(), CombinerName(CombineOf(sum)), Neutral(sum),
            PartsOf(k, i));
        for (size_t m = 0; m < kind.size(); ++m) {
          const NodeId of_member = kind[m].sums[i];
          const std::string count = CombineOf(sum) == graph::Combine::kMean
                                        ? fmt::format(" / {}", kind[m].elements)
                                        : "";
          elements.Know(of_member, {fmt::format("(sums{}_{}[{}]{})", k, i, m, count), 0},
                        Single(of_member));
        }
      }
    }
    std::string results;
    for (const graph::Output& output : form_.tensors.scalar_outputs)
      results += fmt::format("store(out_{}[0], {});\n", output.name,
                             elements.Of(output.node, Single(output.node)).text);
    for (size_t i = 0; i < form_.tensors.broadcast_scalars.size(); ++i) {
      const NodeId id = form_.tensors.broadcast_scalars[i];
      results += fmt::format("*({}*)(scalars + {}) = {};\n", Computed(id),
                             static_cast<int64_t>(i) * kSlot, elements.Of(id, Single(id)).text);
    }
    return text + "__syncthreads();\nif (threadIdx.x != 0) return;\n" + elements.Scope(0) +
           elements.Scope(1) + results + "}\n";
  }

  const MultiTensorForm& form_;
  const KernelSpec& spec_;
  int64_t vector_;
  bool narrow_;
  std::vector<std::vector<int64_t>> blocks_;  ///< by kind: FirstBlocks
  std::vector<int64_t> parts_;                ///< by kind: where its sums' parts begin, in bytes
  int64_t part_bytes_ = 0;
  std::vector<graph::Output> results_;  ///< of the kernel that is written
  std::vector<NodeId> sums_;
  std::vector<Launch> launches_;
};

class MultiTensorTemplate : public GraphTemplate {
 public:
  MultiTensorTemplate(const KernelSpec& spec, const DeviceProfile& profile, MultiTensorForm form)
      : GraphTemplate(spec, profile, form.graph), form_(std::move(form)) {
    const int64_t widest = WidestElement(spec);
    size_t tensors = 1;
    for (const TensorGroup& kind : form_.tensors.groups) {
      tensors = std::max(tensors, kind[0].inputs.size());
      sums_ = sums_ || !kind[0].sums.empty();
      for (const GroupMember& member : kind) elements_ += member.elements;
    }
    space_.parameters = {
        {"vector", VectorWidths(widest, 16, 32),
         "neighbouring elements that a thread computes at once"},
        {"items", Integers({1, 2, 4, 8}), "vectors that a thread computes"},
        {"block", Integers({64, 128, 256, 512, 1024}), "threads of a block"},
        {"tiles", sums_ ? Integers({1, 2, 4, 8, 16, 32, 64}) : Integers({1, 2, 4}),
         "tiles of a block"},
    };
    AddFunctions(graph_, space_);
    Add(fmt::format("vector * items * {} <= 256", widest * static_cast<int64_t>(tensors)),
        "what is in flight takes registers");
  }

  Result<RenderedKernel> Render(const Configuration& configuration) const override {
    const Chosen at = chosen(configuration);
    const bool narrow = IsNarrow(graph_, space_, at);
    Writer writer(form_, spec_, at, narrow);
    const std::string kernels = writer.Run();
    std::vector<LaunchStep> steps;
    for (const auto& [name, blocks, threads] : writer.launches()) {
      steps.push_back(Launch(name, std::to_string(blocks), threads));
      AddArguments(steps.back(), {"@parts", "@scalars"});
    }
    LaunchPlan plan = Plan(at, std::move(steps));
    plan.workspaces = {
        {"parts", Expr(std::max(writer.part_bytes(), kSlot))},
        {"scalars",
         Expr(kSlot * static_cast<int64_t>(form_.tensors.broadcast_scalars.size() + 1))}};
    return RenderedKernel{
        Source(at, "multi-tensor apply", {},
               {TextIf(narrow, embed::kNarrowCuh), embed::kVectorCuh, embed::kCombineCuh,
                embed::kWarpReduceCuh, embed::kTensorsCuh, kernels}),
        std::move(plan)};
  }

  std::vector<Dims> CheckDims(const Configuration&) const override { return {}; }

  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override {
    const Chosen at = chosen(configuration);
    const double width = Real(at["vector"] * WidestElement(spec_));
    const CostConstants& costs = CostsOf(profile);
    const double narrow = width >= 16 ? 1.0 + costs.pointwise_wide * std::log2(width / 16)
                                      : 1.0 + costs.pointwise_narrow * std::log2(16 / width);
    const double tile = Real(at["vector"] * at["items"] * at["block"]),
                 blocks = Real(elements_) / tile / Real(at["tiles"]);
    // Small blocks walk through memory in order; parts of sums are few where blocks are not many
    // more than run at once.
    const double wanted = sums_ ? profile.sms * 16 : Real(elements_) / tile;
    const double off = std::fabs(std::log2(Real(at["block"]) / 128)) +
                       std::fabs(std::log2(blocks / wanted)) +
                       std::fabs(std::log2(Real(at["items"]) / 2));
    const double full = MayBeNarrow(graph_) && !IsNarrow(graph_, space_, at)
                            ? costs.narrow_functions
                            : 1.0;
    return MinimumBytes(spec_, spec_.dims).value_or(0) / profile.dram_gbps * narrow *
           (1 + costs.multi_tensor_off * off) * full;
  }

 private:
  MultiTensorForm form_;
  bool sums_ = false;
  int64_t elements_ = 0;  ///< of all members together, a tensor each
};

}  // namespace

constinit const Family kTensorsFamily{"tensors", TryForm<MultiTensorTemplate, MultiTensorFormOf>};

}  // namespace atunner
