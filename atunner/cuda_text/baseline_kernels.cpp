#include "atunner/cuda_text/baseline_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/decisions.h"
#include "atunner/cuda_text/element_text.h"
#include "atunner/cuda_text/index_text.h"
#include "atunner/graph/evaluate/evaluate_sums.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewrite/split_reductions.h"
#include "embed/graph.h"

namespace atunner::graph {
namespace {

constexpr int kThreads = 256;
/// One thread reduces up to so many terms; kernels call it PLAIN_FEW.
constexpr int64_t kFewTerms = 32;
/// Matrices with fewer rows or columns are multiplied without tiles.
constexpr int64_t kLeastTile = 8;
constexpr size_t kLongestTable = 4096;  // elements of a constant; longer ones should be inputs

/// The buffer of a value between kernels.
struct Buffer {
  ArgBinding binding;
  std::string type;  ///< of its elements, in CUDA
};

/// The type of a workspace, which is wider than the type of its value.
DType StoredAs(std::string_view type, DType dtype) {
  return type == "float" ? DType::kFloat32 : type == "double" ? DType::kFloat64 : dtype;
}

class BaselineWriter {
 public:
  BaselineWriter(const ValidGraph& graph, bool wide, bool shared)
      : graph_(graph),
        wide_(wide),
        shared_(shared),
        places_(graph.nodes().size()),
        inlined_(graph.nodes().size(), false) {
    for (const auto& [name, range] : graph.symbols()) symbols_ += ", long long " + name;
  }

  Result<RenderedKernel> Run() {
    const std::vector<int> uses = graph_.UseCounts();
    if (shared_) FindInlined(uses);
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Written before{text_.size(), kernel_.plan.steps.size()};
      if (uses[id] > 0) ATUNNER_RETURN_IF_ERROR(Emit(static_cast<NodeId>(id), uses[id]));
      ShareText(before);
    }
    for (const auto& output : graph_.outputs()) {
      if (places_[output.node].binding.name != output.name ||
          places_[output.node].binding.kind != ArgBinding::Kind::kTensor)
        Copy(output);
    }
    kernel_.source.name = wide_ ? "reference.cu" : "naive.cu";
    kernel_.source.text = KernelPrelude(text_) + std::string(embed::kGraphsCuh) + text_;
    return std::move(kernel_);
  }
  std::vector<StepRounding> TakeRoundings() { return std::move(roundings_); }

 private:
  struct Written {
    size_t text, steps;
  };
  /// A kernel whose text equals an earlier one but for its name is not written again. Optimizers of
  /// hundreds of tensors would otherwise take minutes to compile.
  void ShareText(const Written& before) {
    if (kernel_.plan.steps.size() != before.steps + 1) return;
    std::string& entry = kernel_.plan.steps.back().entry;
    const auto [known, added] = known_.try_emplace(text_.substr(text_.find('(', before.text)),
                                                   entry);
    if (added) return;
    text_.resize(before.text);
    entry = known->second;
  }

  std::string OutputType(DType dtype) const {
    return wide_ ? "double" : std::string(CudaName(dtype));
  }

  static bool IsView(const Node& node) {
    return node.As<Pad>() || node.As<Window>() || node.As<Slice>() || node.As<Transpose>() ||
           node.As<Reverse>() || node.As<Reshape>();
  }
  /// True if the kernels of the node can compute its operands from what these depend on.
  static bool ReadsInlined(const Node& node) {
    return !node.As<Scan>() && !node.As<Sort>() && !node.As<Scatter>();
  }

  /// Finds the values that are not stored, since those who read them compute them again: layouts,
  /// which are exact, and in float64 also maps that only one reduction reads. So the windows of a
  /// convolution, many times as large as its image, take no memory.
  void FindInlined(const std::vector<int>& uses) {
    const auto count = static_cast<NodeId>(graph_.nodes().size());
    std::vector<bool> needs_memory(graph_.nodes().size(), false);
    for (const auto& output : graph_.outputs()) needs_memory[output.node] = true;
    for (NodeId id = count; id-- > 0;) {
      const Node& node = graph_.node(id);
      if (IsView(node) && !graph_.node(node.operands[0]).As<Constant>())
        inlined_[id] = !needs_memory[id];
      const auto* reduce = node.As<Reduce>();
      for (const NodeId operand : node.operands) {
        const bool reads = ReadsInlined(node) && (!IsView(node) || inlined_[id]);
        if (!reads) needs_memory[operand] = true;
        if (wide_ && reduce && uses[operand] == 1 && graph_.node(operand).As<Map>())
          inlined_[operand] = !needs_memory[operand];
      }
    }
  }

  /// The values in memory that a node reads, operand by operand.
  std::vector<NodeId> LeavesOf(const Node& node) const {
    std::vector<NodeId> leaves;
    for (const NodeId operand : node.operands) {
      if (!inlined_[operand]) {
        leaves.push_back(operand);
        continue;
      }
      const std::vector<NodeId> deeper = LeavesOf(graph_.node(operand));
      leaves.insert(leaves.end(), deeper.begin(), deeper.end());
    }
    return leaves;
  }
  /// A writer of elements for the kernel of a node, whose arguments are the node's leaves.
  ElementText WriterFor(const Node& node) const {
    return {graph_,
            [this, leaves = LeavesOf(node)](NodeId id) -> std::optional<ElementText::Stored> {
              const auto at = std::ranges::find(leaves, id);
              if (at == leaves.end()) return std::nullopt;
              return ElementText::Stored{fmt::format("a{}", at - leaves.begin()), places_[id].type};
            },
            {.wide = wide_, .indent = "    "}};
  }

  Status Emit(NodeId id, int uses) {
    const Node& node = graph_.node(id);
    if (inlined_[id]) return {};
    if (node.As<Input>()) {
      places_[id] = {ArgBinding::Tensor(node.name), std::string(CudaName(node.type.dtype))};
      return {};
    }
    if (node.As<Reshape>()) {
      places_[id] = places_[node.operands[0]];
      return {};
    }
    const auto* constant = node.As<Constant>();
    if (constant && constant->values.size() > kLongestTable)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("a constant has more than {} elements, which no baseline kernel computes",
                      kLongestTable),
          "graph " + graph_.name(), "make it an input");
    places_[id] = Target(id, uses);
    if (const auto* map = node.As<Map>()) {
      EmitMap(node, map->body, places_[id]);
    } else if (const auto* reduce = node.As<Reduce>()) {
      EmitReduce(node, *reduce, places_[id]);
    } else if (const auto* scan = node.As<Scan>()) {
      EmitScan(node, *scan, places_[id]);
    } else if (const auto* sort = node.As<Sort>()) {
      EmitSort(node, *sort, places_[id]);
    } else if (const auto* scatter = node.As<Scatter>()) {
      EmitScatter(node, *scatter, places_[id]);
    } else if (const auto product = shared_ ? MatricesOf(node) : std::nullopt) {
      EmitProduct(node, *product, places_[id]);
    } else if (constant && constant->values.size() > 1) {
      EmitTable(node, *constant, places_[id]);
    } else if (constant) {
      ScalarBuilder builder({});
      EmitMap(node, builder.Finish(builder.Literal(node.type.dtype, constant->values[0])).value(),
              places_[id]);
    } else {
      EmitElements(node, id, places_[id]);
    }
    return {};
  }

  /// An output that nothing else reads is written directly; what others read goes to a workspace.
  Buffer Target(NodeId id, int uses) {
    const Node& node = graph_.node(id);
    const auto output = std::ranges::find(graph_.outputs(), id, &Output::node);
    // A scatter adds to its result in memory, so that its sums must not be rounded to a narrow
    // type.
    if (uses == 1 && output != graph_.outputs().end() && !node.As<Scatter>())
      return {ArgBinding::Tensor(output->name), OutputType(node.type.dtype)};
    const DType dtype = node.type.dtype;
    const auto* map = node.As<Map>();
    const bool rounds = map && map->body.root().op == ScalarOp::kCast;  // the graph itself rounds
    if (!wide_ && IsFloat(dtype) && (rounds || IsFactor(id)))
      return Workspace(id, static_cast<int64_t>(SizeOf(dtype)), std::string(CudaName(dtype)));
    const int64_t bytes = IsFloat(dtype) && (wide_ || dtype == DType::kFloat64) ? 8
                          : IsFloat(dtype)                                      ? 4
                                           : static_cast<int64_t>(SizeOf(dtype));
    return Workspace(id, bytes, CudaArithmetic(dtype, wide_));
  }
  Buffer Workspace(NodeId id, int64_t bytes, std::string type) {
    const std::string name = "v" + std::to_string(id);
    kernel_.plan.workspaces.push_back(
        {name, ExprOf(ElementCount(graph_.node(id).type.shape) * Extent(bytes))});
    return {ArgBinding::Workspace(name), std::move(type)};
  }

  /// True if the node is an operand of a contraction. It is stored in its own type then, as tensor
  /// cores read it.
  bool IsFactor(NodeId id) const {
    return std::ranges::any_of(graph_.nodes(), [&](const Node& node) {
      if (!node.As<Contract>()) return false;
      const std::vector<NodeId> leaves = LeavesOf(node);
      return std::ranges::find(leaves, id) != leaves.end();
    });
  }

  void Copy(const Output& output) {
    const Node& node = graph_.node(output.node);
    ScalarBuilder builder({node.type.dtype});
    Node copy{Map{builder.Finish(builder.Parameter(0)).value(), node.type.shape},
              {output.node},
              node.type,
              ""};
    EmitMap(copy, copy.As<Map>()->body,
            {ArgBinding::Tensor(output.name), OutputType(node.type.dtype)});
  }

  // --- text ---

  /// Coordinates i0, i1, … of an element of the result.
  static graph::Coordinates At(const Shape& shape) {
    graph::Coordinates at;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      at.push_back({.text = shape[axis].one() ? "0" : "i" + std::to_string(axis)});
    return at;
  }
  /// Lines that compute the coordinates of a shape, called `prefix`0, …, from an element's number.
  static std::string Coordinates(const Shape& shape, const char* number, const char* prefix) {
    return CoordinateLines(shape, [](size_t) { return true; }, prefix, number, "long long", "    ");
  }

  /// `name(const A* a0, …, R* result, symbols)` and its launch.
  std::string Head(const std::string& name, const Node& node, const Buffer& to, Expr grid) {
    std::string text = fmt::format("\nextern \"C\" __global__ void {}(", name);
    LaunchStep step{
        .entry = name, .grid = {std::move(grid), 1, 1}, .block = {kThreads, 1, 1}, .args = {}};
    const std::vector<NodeId> leaves = LeavesOf(node);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Buffer& from = places_[leaves[i]];
      text += fmt::format("const {}* a{}, ", from.type, i);
      step.args.push_back(from.binding);
    }
    step.args.push_back(to.binding);
    for (const auto& [symbol, range] : graph_.symbols())
      step.args.push_back(ArgBinding::Scalar(DType::kInt64, Expr::MustParse(symbol)));
    kernel_.plan.steps.push_back(std::move(step));
    StepRounding& rounding = roundings_.emplace_back(RoundingOf(graph_, node));
    // Only a reduction that computes its map in float64 has more leaves than operands; nothing
    // rounds there.
    rounding.operands.resize(leaves.size(), {StepRounding::Reading::kAsIs, DType::kFloat64});
    for (size_t i = 0; i < leaves.size(); ++i)
      rounding.operands[i].stored = StoredAs(places_[leaves[i]].type, rounding.operands[i].stored);
    rounding.stored = StoredAs(to.type, rounding.stored);
    return text + fmt::format("{}* result{}) {{\n", to.type, symbols_);
  }

  void EmitMap(const Node& node, const ScalarExpression& body, const Buffer& to) {
    const Shape& shape = node.type.shape;
    const std::string count = ElementCount(shape).ToString();
    text_ += Head(fmt::format("map{}", kernels_++), node, to,
                  Expr::MustParse(fmt::format("min(ceil_div({}, {}), 65536)", count, kThreads)));
    text_ += fmt::format(
        "  for (long long i = blockIdx.x * {0}ll + threadIdx.x; i < {1}; i += gridDim.x * {0}ll) "
        "{{\n",
        kThreads, count);
    text_ += Coordinates(shape, "i", "i");
    const graph::Coordinates at = At(shape);
    CudaContext context{.wide = wide_, .operands = {}, .place = {}, .temporary = "t"};
    context.operands = LoadOperands(node, at);
    context.place = [&](ScalarOp op, int axis) {
      const size_t from_left = shape.size() + axis;
      return "(long long)(" +
             (op == ScalarOp::kIndex ? at[from_left].text : shape[from_left].ToString()) + ")";
    };
    const CudaText value = ToCuda(body, context);
    for (const std::string& statement : value.statements) text_ += "    " + statement + "\n";
    text_ += fmt::format("    store(result[i], {});\n  }}\n}}\n", value.value);
  }
  /// Writes loads of a map's operands at these coordinates of the result; returns their names.
  std::vector<std::string> LoadOperands(const Node& node, const graph::Coordinates& at) {
    std::vector<std::string> names;
    std::string loads;
    ElementText writer = WriterFor(node);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const TensorType& type = graph_.node(node.operands[i]).type;
      graph::Coordinates own(at.end() - static_cast<int64_t>(type.rank()), at.end());
      names.push_back("x" + std::to_string(i));
      if (inlined_[node.operands[i]]) {
        for (size_t axis = 0; axis < own.size(); ++axis)
          if (type.shape[axis].one()) own[axis] = {.text = "0"};
        loads += fmt::format("    const {} {} = {};\n", CudaArithmetic(type.dtype, wide_),
                             names.back(), writer.Of(node.operands[i], own).text);
        continue;
      }
      loads += fmt::format("    const {0} {1} = load<{0}>(a{2}[{3}]);\n",
                           CudaArithmetic(type.dtype, wide_), names.back(), i,
                           NumberText(type.shape, own));
    }
    text_ += writer.Scope(0) + writer.Scope(1) + loads;
    return names;
  }

  void EmitTable(const Node& node, const Constant& table, const Buffer& to) {
    std::string values;
    for (Cell value : table.values)
      values += (values.empty() ? "" : ", ") + CudaLiteral(node.type.dtype, value, wide_);
    const std::string name = fmt::format("table{}", kernels_++);
    const std::string count = std::to_string(table.values.size());
    text_ += fmt::format("\n__device__ const {} {}_values[] = {{{}}};\n",
                         CudaArithmetic(node.type.dtype, wide_), name, values);
    text_ +=
        Head(name, node, to, 1) +
        fmt::format(
            "  for (int i = threadIdx.x; i < {}; i += {}) store(result[i], {}_values[i]);\n}}\n",
            count, kThreads, name);
  }

  void EmitReduce(const Node& node, const Reduce& reduce, const Buffer& to) {
    const TensorType& from = graph_.node(node.operands[0]).type;
    Shape kept;
    Shape gone;
    for (size_t axis = 0; axis < from.rank(); ++axis) {
      const bool reduced = std::ranges::find(reduce.axes, static_cast<int64_t>(axis)) !=
                           reduce.axes.end();
      (reduced ? gone : kept).push_back(from.shape[axis]);
    }
    const std::string count = ElementCount(kept).ToString();
    const std::string depth = ElementCount(gone).ToString();
    const bool few = ElementCount(gone).constant() && ElementCount(gone).factor() <= kFewTerms;
    const std::string name = fmt::format("reduce{}", kernels_++);
    text_ += few ? Head(name, node, to, GridOf(count)) + EachLoop("o", count)
                 : Head(name, node, to, Expr::MustParse("min(" + count + ", 65536)")) +
                       fmt::format("  for (long long o = blockIdx.x; o < {}; o += gridDim.x) {{\n",
                                   count);
    text_ += Coordinates(kept, "o", "k");
    const std::string type = CudaArithmetic(from.dtype, wide_);
    const std::string sum = IsFloat(node.type.dtype) ? CudaArithmetic(node.type.dtype, wide_)
                                                     : "long long";
    // The k-th element of the operand that this result combines.
    std::string element = "  const auto element = [&](long long k) {\n" +
                          Coordinates(gone, "k", "g");
    graph::Coordinates at;
    for (size_t axis = 0, g = 0, k = 0; axis < from.rank(); ++axis) {
      const bool reduced = std::ranges::find(reduce.axes, static_cast<int64_t>(axis)) !=
                           reduce.axes.end();
      const std::string coordinate = reduced ? "g" + std::to_string(g++)
                                             : "k" + std::to_string(k++);
      at.push_back({.text = from.shape[axis].one() ? "0" : coordinate});  // which has no variable
    }
    if (inlined_[node.operands[0]]) {
      ElementText writer = WriterFor(node);
      const std::string value = writer.Of(node.operands[0], at).text;
      element += writer.Scope(0) + writer.Scope(1) +
                 fmt::format("    return ({})({});\n  }};\n", type, value);
    } else {
      element += fmt::format("    return load<{}>(a0[{}]);\n  }};\n", type,
                             NumberText(from.shape, at));
    }
    text_ += element;
    const char* one = few ? "" : "if (threadIdx.x == 0) ";
    const bool place = reduce.op == Combine::kArgMax || reduce.op == Combine::kArgMin;
    if (place) {
      text_ += fmt::format("    {}store(result[o], place_of<{}>({}, element));\n  }}\n}}\n", one,
                           reduce.op == Combine::kArgMax, depth);
      return;
    }
    const bool mean = reduce.op == Combine::kMean;
    const std::string op = mean ? "sum" : std::string(Name(reduce.op));
    text_ += few ? fmt::format("    const {0} total = few_{1}<{0}, {2}>(element);\n", sum, op,
                               depth)
                 : fmt::format("    const {0} total = block_{1}<{0}>({2}, element);\n", sum, op,
                               depth);
    text_ += fmt::format("    {}store(result[o], total{});\n  }}\n}}\n", one,
                         mean ? " / (" + sum + ")(" + depth + ")" : "");
  }

  /// `for (i = this thread's; i < count; …) {`
  static std::string EachLoop(const std::string& variable, const std::string& count) {
    return fmt::format(
        "  for (long long {0} = blockIdx.x * {1}ll + threadIdx.x; {0} < {2}; {0} += gridDim.x * "
        "{1}ll) {{\n",
        variable, kThreads, count);
  }
  static Expr GridOf(const std::string& count) {
    return Expr::MustParse(fmt::format("min(ceil_div({}, {}), 65536)", count, kThreads));
  }

  /// Layout operations and small sums of products: one thread per element.
  void EmitElements(const Node& node, NodeId id, const Buffer& to) {
    const Shape& shape = node.type.shape;
    const std::string count = ElementCount(shape).ToString();
    text_ += Head(fmt::format("elements{}", kernels_++), node, to, GridOf(count)) +
             EachLoop("i", count) + Coordinates(shape, "i", "i");
    ElementText writer = WriterFor(node);
    const ElementText::Value value = writer.Of(id, At(shape));
    text_ += writer.Scope(0) + writer.Scope(1) +
             fmt::format("    store(result[i], {});\n  }}\n}}\n", value.text);
  }

  /// The letters of a contraction: in both operands and the result, in one operand and the result,
  /// and summed.
  struct Matrices {
    Equation equation;
    std::string batch, rows, columns, depth;
  };
  /// nullopt if an operand has no matrix, or too few rows or columns for a tile.
  std::optional<Matrices> MatricesOf(const Node& node) const {
    const auto* contract = node.As<Contract>();
    if (contract == nullptr) return std::nullopt;
    Matrices found{ParsedEquation(contract->equation), "", "", "", ""};
    const Equation& e = found.equation;
    const auto in = [](const std::string& letters, char c) {
      return letters.find(c) != std::string::npos;
    };
    for (char c : e.left)
      (in(e.right, c) ? in(e.result, c) ? found.batch : found.depth : found.rows) += c;
    for (char c : e.right) {
      if (!in(e.left, c)) found.columns += c;
    }
    const auto broad = [&](const std::string& letters) {
      const Extent count = ElementCount(ShapeOfLetters(letters, node));
      return std::ranges::all_of(letters, [&](char c) { return in(e.result, c); }) &&
             (!count.constant() || count.factor() >= kLeastTile || OfNarrowFloats(node));
    };
    const bool matrices = broad(found.rows) && broad(found.columns) && !found.depth.empty();
    return matrices ? std::optional(found) : std::nullopt;
  }
  Shape ShapeOfLetters(const std::string& letters, const Node& node) const {
    const Equation e = ParsedEquation(node.As<Contract>()->equation);
    Shape shape;
    for (char c : letters) {
      const size_t at = e.left.find(c);
      const bool left = at != std::string::npos;
      shape.push_back(
          graph_.node(node.operands[left ? 0 : 1]).type.shape[left ? at : e.right.find(c)]);
    }
    return shape;
  }

  /// True if a result is float64.
  bool InDouble() const {
    return std::ranges::any_of(graph_.outputs(), [&](const auto& output) {
      return graph_.node(output.node).type.dtype == DType::kFloat64;
    });
  }

  /// True if a contraction adds products of 8-bit floats: most of its error comes from the way in
  /// which tensor cores add them.
  bool OfNarrowFloats(const Node& node) const {
    return !wide_ && !node.As<Contract>()->sparse && !InDouble() &&
           std::ranges::all_of(node.operands, [&](NodeId id) {
             return IsFloat(graph_.node(id).type.dtype) && SizeOf(graph_.node(id).type.dtype) == 1;
           });
  }

  /// A matrix product with one block per tile of 64 × 64 results.
  void EmitProduct(const Node& node, const Matrices& product, const Buffer& to) {
    const Equation& e = product.equation;
    const auto count = [&](const std::string& letters) {
      return ElementCount(ShapeOfLetters(letters, node)).ToString();
    };
    // The offset in a tensor of the element with these indices of batch, row, …. Symbols of the
    // graph may be called n.
    const auto offset =
        [&](const std::string& letters,
            std::initializer_list<std::pair<const std::string*, const char*>> groups) {
          const Shape shape = ShapeOfLetters(letters, node);
          std::string text = "0ll";
          for (const auto& [group, number] : groups) {
            const Shape own = ShapeOfLetters(*group, node);
            for (size_t i = 0; i < group->size(); ++i)
              text += fmt::format(" + {} / ({}) % ({}) * ({})", number, StrideOf(own, i),
                                  own[i].ToString(), StrideOf(shape, letters.find((*group)[i])));
          }
          return text;
        };
    const auto& [equation, batch, rows, columns, depth] = product;
    const std::string sum = CudaArithmetic(node.type.dtype, wide_);
    using Groups = std::initializer_list<std::pair<const std::string*, const char*>>;
    // The body of a function that returns an operand's element.
    const auto load = [&](int operand, const std::string& letters, Groups groups) {
      const NodeId from = node.operands[operand];
      if (!inlined_[from]) {
        return fmt::format("return ({})load<{}>(a{}[{}]);", sum,
                           CudaArithmetic(graph_.node(from).type.dtype, wide_), operand,
                           offset(letters, groups));
      }
      graph::Coordinates at(letters.size());
      for (const auto& [group, number] : groups) {
        const Shape own = ShapeOfLetters(*group, node);
        for (size_t i = 0; i < group->size(); ++i)
          at[letters.find((*group)[i])].text = own[i].one() ? "0"
                                                            : fmt::format("({} / ({}) % ({}))",
                                                                          number, StrideOf(own, i),
                                                                          own[i].ToString());
      }
      ElementText writer = WriterFor(node);
      const std::string value = writer.Of(from, at).text;
      return "\n" + writer.Scope(0) + writer.Scope(1) +
             fmt::format("    return ({})({});", sum, value);
    };
    const auto by_depth = [&](const std::string& letters) {
      return depth.find(letters.back()) != std::string::npos;
    };
    const bool exact = wide_ || SizeOf(graph_.node(node.operands[0]).type.dtype) <= 2;
    const bool sparse = node.As<Contract>()->sparse;
    const auto least = [&](int operand) {
      const DType dtype = graph_.node(node.operands[operand]).type.dtype;
      return !OfNarrowFloats(node) ? 0 : dtype == DType::kFloat8E4M3 ? 127 - 6 : 127 - 14;
    };
    const std::string tiles = fmt::format("({}) * ceil_div({}, 64) * ceil_div({}, 64)",
                                          count(batch), count(rows), count(columns));
    text_ += Head(fmt::format("product{}", kernels_++), node, to,
                  Expr::MustParse("min(" + tiles + ", 1048576)"));
    text_ += fmt::format("  contract_tiles<{}, {}, {}, {}, {}, {}, {}>({}, {}, {}, {},\n", sum,
                         sparse, exact, least(0), least(1), by_depth(e.left), by_depth(e.right),
                         count(batch), count(rows), count(columns), count(depth));
    text_ += fmt::format("    [&](long long b_, long long m_, long long k_) {{ {} }},\n",
                         load(0, e.left, {{&batch, "b_"}, {&rows, "m_"}, {&depth, "k_"}}));
    text_ += fmt::format("    [&](long long b_, long long k_, long long n_) {{ {} }},\n",
                         load(1, e.right, {{&batch, "b_"}, {&depth, "k_"}, {&columns, "n_"}}));
    text_ += fmt::format(
        "    [&](long long b_, long long m_, long long n_, {} sum) {{ store(result[{}], sum); "
        "}});\n}}\n",
        sum, offset(e.result, {{&batch, "b_"}, {&rows, "m_"}, {&columns, "n_"}}));
  }

  /// A scan: one thread per line.
  void EmitScan(const Node& node, const Scan& scan, const Buffer& to) {
    const Shape& shape = node.type.shape;
    const std::string extent = shape[scan.axis].ToString();
    const std::string inner = StrideOf(shape, scan.axis);
    const std::string lines = fmt::format("({}) / ({})", ElementCount(shape).ToString(), extent);
    const std::string type = CudaArithmetic(node.type.dtype, wide_);
    text_ += Head(fmt::format("scan{}", kernels_++), node, to,
                  GridOf(fmt::format("({}) // ({})", ElementCount(shape).ToString(), extent)));
    text_ += EachLoop("line", lines);
    text_ += fmt::format(
        "    const long long first = line / ({0}) * ({0}) * ({1}) + line % ({0});\n", inner,
        extent);
    text_ += fmt::format("    {} total = {};\n", type,
                         CudaLiteral(node.type.dtype, Neutral(scan.op, node.type.dtype), wide_));
    text_ += fmt::format("    for (long long k = 0; k < {}; ++k) {{\n", extent);
    text_ += fmt::format("      const long long at = first + {} * ({});\n",
                         scan.reverse ? fmt::format("({} - 1 - k)", extent) : "k", inner);
    text_ += fmt::format("      const {0} next = combine_{1}<{0}>(total, load<{0}>(a0[at]));\n",
                         type, Name(scan.op));
    text_ += fmt::format("      store(result[at], {});\n      total = next;\n    }}\n  }}\n}}\n",
                         scan.exclusive ? "total" : "next");
  }

  /// A sort: one thread per element counts the elements before it.
  void EmitSort(const Node& node, const Sort& sort, const Buffer& to) {
    const TensorType& from = graph_.node(node.operands[0]).type;
    const std::string extent = from.shape[sort.axis].ToString();
    const std::string inner = StrideOf(from.shape, sort.axis);
    const std::string count = ElementCount(from.shape).ToString();
    const std::string kept = node.type.shape[sort.axis].ToString();
    if (shared_ && kept == extent) return EmitWholeSort(node, sort, to);
    text_ += Head(fmt::format("sort{}", kernels_++), node, to, GridOf(count)) +
             EachLoop("i", count);
    text_ += fmt::format(
        "    const long long k = i / ({0}) % ({1});\n    const long long first = i - k * ({0});\n",
        inner, extent);
    text_ += fmt::format(
        "    const auto element = [&](long long at) {{ return load<{}>(a0[first + at * ({})]); "
        "}};\n",
        CudaArithmetic(from.dtype, wide_), inner);
    text_ += fmt::format("    const long long rank = rank_of<{}>(k, {}, {}, element);\n",
                         sort.descending, extent, kept);
    text_ += fmt::format(
        "    if (rank < {2}) store(result[(i / ({0} * {1}) * {2} + rank) * ({0}) + i % ({0})], "
        "k);\n  }}\n}}\n",
        inner, extent, kept);
  }

  /// One block sorts a whole line in n·log²(n) comparisons, where EmitSort makes n².
  void EmitWholeSort(const Node& node, const Sort& sort, const Buffer& to) {
    const TensorType& from = graph_.node(node.operands[0]).type;
    const std::string extent = from.shape[sort.axis].ToString();
    const std::string inner = StrideOf(from.shape, sort.axis);
    const std::string lines = fmt::format("({}) / ({})", ElementCount(from.shape).ToString(),
                                          extent);
    const std::string blocks = fmt::format("min(({}) // ({}), 65536)",
                                           ElementCount(from.shape).ToString(), extent);
    text_ += Head(fmt::format("sort{}", kernels_++), node, to, Expr::MustParse(blocks));
    text_ += fmt::format("  for (long long line = blockIdx.x; line < {}; line += gridDim.x) {{\n",
                         lines);
    text_ += fmt::format(
        "    const long long first = line / ({0}) * ({0}) * ({1}) + line % ({0});\n", inner,
        extent);
    text_ += fmt::format(
        "    const auto element = [&](long long at) {{ return load<{}>(a0[first + at * ({})]); "
        "}};\n",
        CudaArithmetic(from.dtype, wide_), inner);
    text_ += fmt::format(
        "    const auto place = [&](long long at) -> auto& {{ return result[first + at * ({})]; "
        "}};\n",
        inner);
    text_ += fmt::format("    sort_places<{}>({}, element, place);\n  }}\n}}\n", sort.descending,
                         extent);
  }

  /// A scatter: a copy, then one thread for each element of a slice applies all updates in order.
  void EmitScatter(const Node& node, const Scatter& scatter, const Buffer& to) {
    const Shape& shape = node.type.shape;
    const Shape& places = graph_.node(node.operands[1]).type.shape;
    const auto part = [](const Shape& from, int64_t begin, int64_t end) {
      return ElementCount({from.begin() + begin, from.begin() + end}).ToString();
    };
    const auto rank = static_cast<int64_t>(shape.size());
    const std::string inner = part(shape, scatter.axis + 1, rank);
    const std::string extent = shape[scatter.axis].ToString();
    // the number of slices that have common indices
    const std::string inside = part(shape, scatter.batch, scatter.axis);
    const std::string each = part(places, scatter.batch, static_cast<int64_t>(places.size()));
    const std::string count = ProductOf({part(shape, 0, scatter.axis), inner});
    const std::string type = CudaArithmetic(node.type.dtype, wide_);
    text_ += Head(fmt::format("scatter{}", kernels_++), node, to, GridOf(count)) +
             EachLoop("i", count);
    text_ += fmt::format("    const long long outer = i / ({0}), column = i % ({0});\n", inner);
    text_ += fmt::format(
        "    for (long long k = 0; k < {0}; ++k) {{\n      const long long at = (outer * ({0}) + "
        "k) * ({1}) + "
        "column;\n      store(result[at], load<{2}>(a0[at]));\n    }}\n",
        extent, inner, type);
    text_ += fmt::format(
        "    for (long long p = 0; p < {0}; ++p) {{\n      const long long place = a1[outer / "
        "({1}) * ({0}) + p];\n",
        each, inside);
    text_ += fmt::format("      if (place < 0 || place >= {}) continue;\n", extent);
    text_ += fmt::format("      auto& to = result[(outer * ({}) + place) * ({}) + column];\n",
                         extent, inner);
    text_ += fmt::format(
        "      const {0} update = load<{0}>(a2[(outer * ({1}) + p) * ({2}) + column]);\n", type,
        each, inner);
    text_ += fmt::format(
        "      store(to, {});\n    }}\n  }}\n}}\n",
        scatter.op == Combine::kSet
            ? "update"
            : fmt::format("combine_{0}<{1}>(load<{1}>(to), update)", Name(scatter.op), type));
  }
  static std::string ProductOf(const std::vector<std::string>& factors) {
    std::string text;
    for (const std::string& factor : factors)
      text += (text.empty() ? "" : " * ") + ("(" + factor + ")");
    return text;
  }

  const ValidGraph& graph_;
  bool wide_;
  bool shared_;
  std::vector<Buffer> places_;
  std::vector<bool> inlined_;                 ///< by node: it is not stored
  std::map<std::string, std::string> known_;  ///< names of kernels by the text behind the name
  std::string symbols_;
  std::string text_;
  RenderedKernel kernel_;
  std::vector<StepRounding> roundings_;
  int kernels_ = 0;
};

/// The graph of which each node becomes a step. Roundings that the graph itself asks for stay,
/// because every correct kernel has them.
ValidGraph StepsOf(const ValidGraph& graph, BaselineForm form) {
  const ValidGraph steps = WithSplitReductions(
      FuseMaps(graph, /*through_roundings=*/form == BaselineForm::kReference));
  return form == BaselineForm::kStoredDecisions ? WithDecisionOperandsStored(steps) : steps;
}

BaselineWriter WriterOf(const ValidGraph& steps, BaselineForm form) {
  return {steps, form == BaselineForm::kReference, form != BaselineForm::kNaive};
}

}  // namespace

Expr ExprOf(const Extent& extent) { return Expr::MustParse(extent.ToString()); }

std::string KernelPrelude(std::string_view text) {
  const bool float8 = text.find("__nv_fp8_e") != text.npos || text.find("float8_e") != text.npos;
  return "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\n" + std::string(embed::kElementCuh) +
         "\n" + std::string(embed::kScalarCuh) + std::string(float8 ? embed::kFloat8Cuh : "");
}

Result<RenderedKernel> BaselineKernels(const ValidGraph& graph, BaselineForm form) {
  const ValidGraph steps = StepsOf(graph, form);
  return WriterOf(steps, form).Run();
}

Result<std::vector<StepRounding>> BaselineRoundings(const ValidGraph& graph, BaselineForm form) {
  const ValidGraph steps = StepsOf(graph, form);
  BaselineWriter writer = WriterOf(steps, form);
  ATUNNER_TRY(const RenderedKernel written, writer.Run());
  return writer.TakeRoundings();
}

}  // namespace atunner::graph
