// The text of a kernel that computes a ReductionProgram.
#include "atunner/codegen/reduction_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/codegen/graph_layout.h"
#include "atunner/graph/cuda_text.h"
#include "atunner/graph/evaluate_sums.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::Node;
using graph::NodeId;
using graph::Reduce;
using graph::Shape;
using Kind = ReductionProgram::Kind;

bool AllOnes(const Shape& shape) {
  return std::ranges::all_of(shape, [](const graph::Extent& extent) { return extent.one(); });
}

GraphLayout RowLayout(const ReductionProgram& program) {
  std::vector<Shape> shapes;
  for (NodeId id : program.graph.inputs()) shapes.push_back(program.RowPart(program.graph.node(id).type.shape));
  return {program.RowSpace(), shapes};
}

class Writer {
 public:
  Writer(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule)
      : program_(program),
        spec_(spec),
        schedule_(schedule),
        row_layout_(RowLayout(program)),
        inputs_(RowInputsOf(program)),
        values_(program.graph.nodes().size()) {}

  std::string Run() {
    std::string text =
        "extern \"C\" __global__ void __launch_bounds__(BLOCK) kernel(" + KernelParameters(spec_) + ") {\n";
    text += "  const int thread = threadIdx.x % THREADS_PER_ROW;\n  int slot = 0;\n";
    text += fmt::format("  const long long all_rows = {};\n", graph::ElementCount(program_.RowSpace()).ToString());
    text += "  const long long group_step = (long long)gridDim.x * ROWS_PER_BLOCK;\n";
    text += FirstRows();
    text +=
        "  for (long long group = (long long)blockIdx.x * ROWS_PER_BLOCK; group < all_rows; group += group_step) {\n";
    text += "    // Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.\n";
    text += "    const bool active = group + threadIdx.x / THREADS_PER_ROW < all_rows;\n";
    text += "    const long long row = active ? group + threadIdx.x / THREADS_PER_ROW : group;\n";
    for (const std::string& line : row_layout_.Coordinates("row", row_layout_.rank(), false))
      text += "    " + line + "\n";
    text += Staged() + RowPointers() + Kept();
    // One after the other: each part knows the values of those before.
    for (int pass = 0; pass < program_.passes; ++pass) {
      text += RowValues(pass);
      text += ReducingPass(pass);
    }
    text += RowValues(program_.passes);
    text += WritingPass();
    text += RowOutputs();
    return text + "  }\n}\n";
  }

 private:
  const std::vector<Node>& nodes() const { return program_.graph.nodes(); }
  const graph::TensorType& TypeOf(NodeId id) const { return program_.graph.node(id).type; }

  const std::string& Name(NodeId id) { return program_.graph.node(id).name; }
  bool IsKept(const RowInput& input) const {
    return (schedule_.keeps && input.columns && input.rows && input.passes > 1) || IsPrefetched(input);
  }
  bool IsPrefetched(const RowInput& input) const { return schedule_.prefetch && HasRows(program_, input); }

  /// Asks for a chunk of the row `row`, if there is one of the group `group`.
  std::string Request(const std::string& indent, const std::string& group, const std::string& row) const {
    std::string text = fmt::format("{}if ({} < all_rows && (EXACT || column < COLS)) {{\n", indent, group);
    for (const RowInput& input : inputs_) {
      if (!IsPrefetched(input)) continue;
      const std::string& name = program_.graph.node(input.id).name;
      text +=
          fmt::format("{0}  copy_async({1}_next + chunk * BLOCK, in_{1} + {2} * COLS + column);\n", indent, name, row);
    }
    return text + indent + "}\n" + indent + "close_batch();\n";
  }
  /// Of the rows that a block serves next the copies go to shared memory, a batch for each chunk of a thread; each
  /// thread reads what it has copied itself.
  std::string FirstRows() const {
    if (!schedule_.prefetch) return "";
    std::string text = "  extern __shared__ __align__(16) unsigned char next_rows[];\n";
    std::string begin = "next_rows";
    for (const RowInput& input : inputs_) {
      if (!IsPrefetched(input)) continue;
      const std::string& name = program_.graph.node(input.id).name;
      const std::string type = fmt::format("Vector<{}>*", CudaName(TypeOf(input.id).dtype));
      text += fmt::format("  {0} const {1}_next = ({0})({2}) + threadIdx.x;\n", type, name, begin);
      begin = fmt::format("{}_next + CHUNKS * BLOCK - threadIdx.x", name);
    }
    text += "  const long long first_group = (long long)blockIdx.x * ROWS_PER_BLOCK;\n";
    text += "  const long long first_row = row_of(first_group, all_rows);\n";
    text += "#pragma unroll\n  for (int chunk = 0; chunk < CHUNKS; ++chunk) {\n";
    text += "    const int column = (chunk * THREADS_PER_ROW + thread) * VEC;\n";
    return text + Request("    ", "first_group", "first_row") + "  }\n";
  }

  bool IsStaged(const RowInput& input) const { return schedule_.staged && HasRows(program_, input); }
  std::string Staged() const {
    if (!schedule_.staged) return "";
    std::string areas;
    std::string text = "    const int staged = (int)min((long long)ROWS_PER_BLOCK, all_rows - group) * COLS;\n";
    text += "    __syncthreads();\n";
    for (const RowInput& input : inputs_) {
      if (!IsStaged(input)) continue;
      const std::string& name = program_.graph.node(input.id).name;
      areas += fmt::format("    __shared__ __align__(16) {} {}_stage[ROWS_PER_BLOCK * COLS];\n",
                           CudaName(TypeOf(input.id).dtype), name);
      text += fmt::format("    stage({0}_stage, in_{0} + group * COLS, staged);\n", name);
    }
    return areas + text + "    close_batch();\n    wait_for_batches<0>();\n    __syncthreads();\n";
  }

  /// Where the row begins in every input; values that all its elements share.
  std::string RowPointers() {
    std::string text;
    for (const RowInput& input : inputs_) {
      if (input.passes == 0) continue;
      std::string offset = row_layout_.Offset(input.number, row_layout_.rank());
      if (input.columns && offset != "0") offset = "(" + offset + ") * COLS";
      const std::string& name = Name(input.id);
      if (IsStaged(input)) {
        text += fmt::format("    const {0}* {1}_row = {1}_stage + (int)(row - group) * COLS;\n",
                            CudaName(TypeOf(input.id).dtype), name);
      } else if (input.columns) {
        text +=
            fmt::format("    const {}* {}_row = in_{} + {};\n", CudaName(TypeOf(input.id).dtype), name, name, offset);
      } else {
        const std::string type = graph::CudaArithmetic(TypeOf(input.id).dtype, false);
        text += fmt::format("    const {0} {1}_value = load<{0}>(in_{1}[{2}]);\n", type, name, offset);
        values_[input.id] = name + "_value";
      }
    }
    return text;
  }

  std::string Kept() {
    std::string text;
    std::string moves;
    for (const RowInput& input : inputs_) {
      if (!IsKept(input)) continue;
      text += fmt::format("    Vector<{}> {}_kept[CHUNKS];\n", CudaName(TypeOf(input.id).dtype), Name(input.id));
      if (IsPrefetched(input)) {
        moves += fmt::format("      if (EXACT || column < COLS) {0}_kept[chunk] = {0}_next[chunk * BLOCK];\n",
                             Name(input.id));
        continue;
      }
      text += "#pragma unroll\n    for (int chunk = 0; chunk < CHUNKS; ++chunk) {\n";
      text += "      const int column = (chunk * THREADS_PER_ROW + thread) * VEC;\n";
      text += fmt::format("      if (EXACT || column < COLS) read({0}_kept[chunk], {0}_row + column);\n    }}\n",
                          Name(input.id));
    }
    if (!schedule_.prefetch) return text;
    text += "    const long long next_row = row_of(group + group_step, all_rows);\n";
    text += "#pragma unroll\n    for (int chunk = 0; chunk < CHUNKS; ++chunk) {\n";
    text += "      const int column = (chunk * THREADS_PER_ROW + thread) * VEC;\n";
    text += "      wait_for_batches<CHUNKS - 1>();\n" + moves;
    return text + Request("      ", "group + group_step", "next_row") + "    }\n";
  }

  /// Values per row that what came before makes known, before the elements of this pass.
  std::string RowValues(int pass) {
    std::string text;
    for (size_t id = 0; id < nodes().size(); ++id) {
      const Node& node = nodes()[id];
      if (program_.steps[id].kind != Kind::kRow || node.As<graph::Input>() || node.As<Reduce>() ||
          program_.steps[id].pass != pass)
        continue;
      if (node.As<graph::Reshape>()) {
        values_[id] = values_[node.operands[0]];
        continue;
      }
      text += Statement(static_cast<NodeId>(id), "    ");
    }
    return text;
  }

  /// The node's name, with an underscore that no other name here ends in.
  std::string ValueName(NodeId id) {
    const std::string& name = Name(id);
    return (name.empty() ? "v" + std::to_string(id) : name) + "_";
  }

  /// `const float name = expression;` of a map.
  std::string Statement(NodeId id, const std::string& indent) {
    const Node& node = program_.graph.node(id);
    graph::CudaContext context{
        .operands = {}, .place = {}, .temporary = ValueName(id) + "t", .narrow = schedule_.narrow};
    for (NodeId operand : node.operands) context.operands.push_back(values_[operand]);
    const Shape& space = program_.space;
    context.place = [&](graph::ScalarOp op, int axis) {
      const size_t at = space.size() + axis;
      if (op == graph::ScalarOp::kExtent) return "(long long)(" + space[at].ToString() + ")";
      const bool in_row = at < program_.row_axes;
      const auto end = space.begin() + static_cast<int64_t>(in_row ? program_.row_axes : space.size());
      const std::string stride = graph::ElementCount({space.begin() + static_cast<int64_t>(at) + 1, end}).ToString();
      return fmt::format("{} / ({}) % ({})", in_row ? "row" : "(long long)(column + lane)", stride,
                         space[at].ToString());
    };
    const graph::CudaText value = graph::ToCuda(node.As<graph::Map>()->body, context);
    std::string text;
    for (const std::string& statement : value.statements) text += indent + statement + "\n";
    values_[id] = ValueName(id);
    return text + fmt::format("{}const {} {} = {};\n", indent, graph::CudaArithmetic(node.type.dtype, false),
                              values_[id], value.value);
  }

  /// The loop over a thread's elements, up to where values of one element are at hand.
  std::string OpenLoop(const std::vector<NodeId>& elements, const std::string& before_lanes) {
    std::string text = schedule_.keeps ? "#pragma unroll\n" : "#pragma unroll 4\n";
    text += "    for (int chunk = 0; chunk < CHUNKS; ++chunk) {\n";
    text += "      const int column = (chunk * THREADS_PER_ROW + thread) * VEC;\n";
    text += "      if (!EXACT && column >= COLS) continue;\n";
    for (const RowInput& input : inputs_) {
      const bool used = std::ranges::find(elements, input.id) != elements.end();
      if (!used || !input.columns || IsKept(input)) continue;
      text += fmt::format("      Vector<{}> {}_in;\n      read({}_in, {}_row + column);\n",
                          CudaName(TypeOf(input.id).dtype), Name(input.id), Name(input.id), Name(input.id));
    }
    text += before_lanes + "#pragma unroll\n      for (int lane = 0; lane < VEC; ++lane) {\n";
    for (const RowInput& input : inputs_) {
      const bool used = std::ranges::find(elements, input.id) != elements.end();
      if (!used || !input.columns) continue;
      const std::string type = graph::CudaArithmetic(TypeOf(input.id).dtype, false);
      values_[input.id] = Name(input.id) + "_value";
      text += fmt::format("        const {0} {1}_value = get<{0}>({1}_{2}, lane);\n", type, Name(input.id),
                          IsKept(input) ? "kept[chunk]" : "in");
    }
    for (NodeId id : elements) {
      if (program_.graph.node(id).As<graph::Map>()) text += Statement(id, "        ");
    }
    return text;
  }

  static std::string CloseLoop() { return "      }\n    }\n"; }

  std::string ReducingPass(int pass) {
    std::vector<NodeId> reductions;
    for (size_t id = 0; id < nodes().size(); ++id) {
      if (nodes()[id].As<Reduce>() && program_.steps[id].pass == pass) reductions.push_back(static_cast<NodeId>(id));
    }
    std::string text = fmt::format("    // Pass {}.\n", pass + 1);
    for (NodeId id : reductions) {
      const DType dtype = TypeOf(id).dtype;
      text += fmt::format("    {} {} = {};\n", graph::CudaArithmetic(dtype, false), ValueName(id),
                          graph::CudaLiteral(dtype, graph::Neutral(nodes()[id].As<Reduce>()->op, dtype), false));
    }
    text += OpenLoop(program_.ElementsFor(program_.WantedIn(pass)), "");
    for (NodeId id : reductions) {
      const std::string type = graph::CudaArithmetic(TypeOf(id).dtype, false);
      text += fmt::format("        {0} = {1}::of({0}, ({2}){3});\n", ValueName(id),
                          CombinerName(nodes()[id].As<Reduce>()->op), type, values_[nodes()[id].operands[0]]);
    }
    text += CloseLoop();
    for (NodeId id : reductions) {
      const Combine op = nodes()[id].As<Reduce>()->op;
      text += fmt::format("    {0} = row_reduce<{1}>({0}, slot){2};\n", ValueName(id), CombinerName(op),
                          op == Combine::kMean ? " / COLS" : "");
      values_[id] = ValueName(id);
    }
    return text;
  }

  std::string WritingPass() {
    const std::vector<NodeId> wanted = program_.WantedIn(program_.passes);
    if (wanted.empty()) return "";
    std::string vectors;
    for (const auto& output : program_.graph.outputs()) {
      if (program_.steps[output.node].kind == Kind::kElement)
        vectors += fmt::format("      Vector<{}> {}_out;\n", CudaName(TypeOf(output.node).dtype), output.name);
    }
    std::string text = "    // The results.\n" + OpenLoop(program_.ElementsFor(wanted), vectors);
    std::string writes;
    for (const auto& output : program_.graph.outputs()) {
      if (program_.steps[output.node].kind != Kind::kElement) continue;
      text += fmt::format("        store({}_out.element[lane], {});\n", output.name, values_[output.node]);
      writes += fmt::format("      if (active) write(out_{0} + row * COLS + column, {0}_out);\n", output.name);
    }
    return text + "      }\n" + writes + "    }\n";
  }

  std::string RowOutputs() {
    std::string text;
    for (const auto& output : program_.graph.outputs()) {
      if (program_.steps[output.node].kind == Kind::kRow)
        text +=
            fmt::format("    if (active && thread == 0) store(out_{}[row], {});\n", output.name, values_[output.node]);
    }
    return text;
  }

  const ReductionProgram& program_;
  const KernelSpec& spec_;
  ReductionSchedule schedule_;
  GraphLayout row_layout_;
  std::vector<RowInput> inputs_;
  std::vector<std::string> values_;  ///< the text of each node's value, where it is known so far
};

}  // namespace

std::vector<RowInput> RowInputsOf(const ReductionProgram& program) {
  std::vector<int> passes(program.graph.nodes().size(), 0);
  for (int pass = 0; pass <= program.passes; ++pass) {
    for (NodeId id : program.ElementsFor(program.WantedIn(pass))) ++passes[id];
  }
  std::vector<RowInput> inputs;
  for (size_t i = 0; i < program.graph.inputs().size(); ++i) {
    const NodeId id = program.graph.inputs()[i];
    const Shape& shape = program.graph.node(id).type.shape;
    const bool columns = !AllOnes(program.ColumnPart(shape)) || program.columns == 1;
    inputs.push_back({id, i, columns, !AllOnes(program.RowPart(shape)), passes[id]});
  }
  return inputs;
}

bool HasRows(const ReductionProgram& program, const RowInput& input) {
  return input.columns && input.passes > 0 && program.graph.node(input.id).type.shape == program.space;
}

std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule) {
  return Writer(program, spec, schedule).Run();
}

}  // namespace atunner
